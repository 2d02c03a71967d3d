"""A JSON response written by msgspec: structs, dicts, lists and raw JSON alike."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

encode_json = msgspec.json.Encoder().encode


class JsonAnswer(Response):
    """`content` as JSON. Structs with `omit_defaults` leave their defaults out."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The body."""
        return encode_json(content)
