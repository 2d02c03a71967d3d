"""The text format of tools: how a prompt tells of them, how calls and results stand in a conversation.

Owns the tags, and the rewriting of messages for chat templates that know no tools. Templates that do print tools themselves get the
messages as they are. A call of the history is written as the model wrote it (see `parser.py`): same tags, and its arguments' JSON text
verbatim, so that the prompt of the next turn begins with the prompt and the output of this one.

    system      ... the tools, each a line of JSON between <tools> and </tools>, and how to call them
    assistant   text \\n <tool_call> \\n {"name": ..., "arguments": ...} \\n </tool_call> ...
    tool        a user message: <tool_response> \\n result \\n </tool_response>; results in a row share one message
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from .custom import custom_call_text, input_begin, input_end
from .tags import CALL_BEGIN, CALL_END, CALL_SEPARATOR

RESULT_ROLES = ("tool", "function", "ipython")

_INTRODUCTION = """\
# Tools

You can call functions to answer the user. These are available, one JSON description a line:
<tools>
"""
_INSTRUCTION = f"""
</tools>

To call a function, write its name and a JSON object of its arguments like this:
{CALL_BEGIN}
{{"name": "the function's name", "arguments": {{"argument":"value"}}}}
{CALL_END}
The result comes back between <tool_response> and </tool_response>."""
_CUSTOM_INSTRUCTION = f"""

To call a tool of the type custom, write its name, and below it the input as plain text:
{input_begin("the tool's name")}the input{input_end()}"""


def call_begin(name: str) -> str:
    """What stands before the arguments of a call of `name`."""
    return f'{CALL_BEGIN}\n{{"name": {json.dumps(name, ensure_ascii=False)}, "arguments": '


def call_end() -> str:
    """What stands behind the arguments of a call."""
    return f"}}\n{CALL_END}"


def result_text(content: str) -> str:
    """The result of a call, as it stands in a user message."""
    return f"<tool_response>\n{content}\n</tool_response>"


def system_text(tools: Sequence[Mapping[str, Any]]) -> str:
    """What a system message says of `tools`, each as it stands in a request."""
    lines = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    has_custom = any(tool.get("type") == "custom" for tool in tools)
    return f"{_INTRODUCTION}{lines}{_INSTRUCTION}{_CUSTOM_INSTRUCTION if has_custom else ''}"


def without_tool_roles(
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] = (),
    *,
    has_system: bool = True,
) -> list[dict[str, Any]]:
    """The conversation in words that every chat template prints: tools in the system message, calls and results as text.

    Messages are as `chat_messages.flatten_message` leaves them: content is a string. Without a system role (has_system=False) the first
    user message tells of the tools.
    """
    rewritten: list[dict[str, Any]] = []
    is_result = False
    for message in messages:
        was_result, is_result = is_result, message["role"] in RESULT_ROLES
        if is_result:
            text = result_text(message["content"])
            if was_result:
                rewritten[-1]["content"] += f"\n{text}"
            else:
                rewritten.append({"role": "user", "content": text})
        elif message["role"] == "assistant":
            rewritten.append(_with_calls_as_text(message))
        else:
            rewritten.append(dict(message))
    if not tools:
        return rewritten
    text = system_text(tools)
    return _told_by_system(rewritten, text) if has_system else _told_by_user(rewritten, text)


def _told_by_system(messages: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    if messages[0]["role"] in ("system", "developer"):
        first, *others = messages
        told = f"{first['content']}\n\n{text}" if first["content"] else text
        return [first | {"content": told}, *others]
    return [{"role": "system", "content": text}, *messages]


def _told_by_user(messages: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    at = next((at for at, message in enumerate(messages) if message["role"] == "user"), None)
    if at is None:
        return [{"role": "user", "content": text}, *messages]
    told = messages[at] | {"content": f"{text}\n\n{messages[at]['content']}"}
    return [*messages[:at], told, *messages[at + 1 :]]


def _with_calls_as_text(message: Mapping[str, Any]) -> dict[str, Any]:
    rewritten = dict(message)
    calls = cast("list[Any]", rewritten.pop("tool_calls", None) or [])
    legacy = rewritten.pop("function_call", None)
    if legacy is not None and not calls:
        calls = [legacy]
    texts = [
        _call_text(cast("Mapping[str, Any]", call)) for call in calls if isinstance(call, dict)
    ]
    content = str(rewritten["content"])
    rewritten["content"] = CALL_SEPARATOR.join([content, *texts] if content else texts)
    return rewritten


def with_custom_calls_as_text(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message for templates that print calls of functions: calls of custom tools stand in its content, as the model wrote them."""
    listed = message.get("tool_calls")
    if not isinstance(listed, list):
        return message
    calls = [
        cast("dict[str, Any]", call) for call in cast("list[Any]", listed) if isinstance(call, dict)
    ]
    texts = [text for call in calls if (text := custom_call_text(call)) is not None]
    if not texts:
        return message
    others = [call for call in calls if custom_call_text(call) is None]
    content = str(message["content"])
    rewritten = dict(message) | {
        "content": CALL_SEPARATOR.join([content, *texts] if content else texts)
    }
    rewritten.pop("tool_calls")
    return rewritten | {"tool_calls": others} if others else rewritten


def _call_text(call: Mapping[str, Any]) -> str:
    custom = custom_call_text(call)
    if custom is not None:
        return custom
    function = call.get("function")
    fields = cast("Mapping[str, Any]", function) if isinstance(function, dict) else call
    arguments: Any = fields.get("arguments")
    if not isinstance(arguments, str):
        arguments = json.dumps({} if arguments is None else arguments, ensure_ascii=False)
    return f"{call_begin(str(fields.get('name', '')))}{arguments or '{}'}{call_end()}"
