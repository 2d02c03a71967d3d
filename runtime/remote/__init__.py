"""Backends that are reached over HTTP: our own server, OpenAI-compatible ones, Anthropic's. See README.md."""
