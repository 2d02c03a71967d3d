"""Tools a model may call: what a request offers, what constrains the output, how its text becomes calls.

Pure text and data: no HTTP, tokens or processes. The calls' text format is that of Hermes models:

    <tool_call>
    {"name": "get_weather", "arguments": {"city":"Paris"}}
    </tool_call>

    toolset = ToolSet.of(tools, tool_choice, parallel_tool_calls)     checks, PromptError with the place in the request
    toolset.wire_tools          for `messages.Chat(messages, tools)`; () when the tools are not shown
    toolset.constraint(answer)  the output's grammar; `answer` is the response schema of the request, if any
    toolset.relaxed(error)      the tools with the argument unconstrained that the grammar compiler refused, and a warning; or None
    parser = toolset.parser()   parser.push(text) -> events, parser.finish() -> events; one parser per output
    collect(events)             (content, calls) of an answer that is not streamed
    system_text, call_begin, call_end, result_text     the same text, for who writes conversations
"""

from __future__ import annotations

from .events import CallArguments, CallBegin, TextPiece, ToolCall, ToolEvent, collect
from .hermes import call_begin, call_end, result_text, system_text
from .parser import ToolTextParser
from .tags import CALL_BEGIN, CALL_SEPARATOR
from .toolset import Relaxed, Tool, ToolSet

__all__ = [
    "CALL_BEGIN",
    "CALL_SEPARATOR",
    "CallArguments",
    "CallBegin",
    "Relaxed",
    "TextPiece",
    "Tool",
    "ToolCall",
    "ToolEvent",
    "ToolSet",
    "ToolTextParser",
    "call_begin",
    "call_end",
    "collect",
    "result_text",
    "system_text",
]
