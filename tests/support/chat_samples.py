"""What tests of the chat endpoint send and get: a greeting, a tool, a call of it in hermes text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2

Post = Callable[..., httpx2.Response]
HI: Any = [{"role": "user", "content": "Hi"}]
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Seoul"}}\n</tool_call>'
