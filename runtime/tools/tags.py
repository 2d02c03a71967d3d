"""The tags around a call in an output. Owns their spelling, which is that of Hermes models."""

from __future__ import annotations

CALL_BEGIN = "<tool_call>"
CALL_END = "</tool_call>"
CALL_SEPARATOR = "\n"
