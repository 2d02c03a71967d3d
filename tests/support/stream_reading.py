"""A stream of server-sent events as a test looks at it."""

from __future__ import annotations

import json
from typing import Any


def events_of(text: str) -> list[Any]:
    """The JSON of every data frame; the end marker as it stands. Comments are left out."""
    frames = [frame for frame in text.split("\n\n") if frame and not frame.startswith(":")]
    assert all(frame.startswith("data: ") for frame in frames), text
    payloads = [frame.removeprefix("data: ") for frame in frames]
    return [payload if payload == "[DONE]" else json.loads(payload) for payload in payloads]
