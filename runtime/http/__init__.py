"""The HTTP server: OpenAI-compatible endpoints over a client of the gateway. The only folder that knows Starlette, uvicorn and Prometheus."""
