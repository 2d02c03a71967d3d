"""The OpenAI dialect of the server: bodies, answers and the two generating endpoints. Nothing outside `runtime.http` imports it."""
