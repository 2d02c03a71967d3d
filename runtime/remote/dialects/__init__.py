"""One module a kind of OpenAI-compatible server; each has `DIALECTS`. See `runtime.remote.dialect`."""
