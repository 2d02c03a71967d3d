"""Custom tools: called with a text of their own instead of JSON arguments.

    {"type": "custom", "custom": {"name", "description", "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": ...}}}}

Owns the reading of such a tool, how its call stands in an output, and how chat templates that only know functions are told of it:

    <tool_call>
    {"name": "calculate"}
    1 + 2
    </tool_call>

The input is the text between the two line breaks, as it stands. It ends at the first `</tool_call>`, so an input never holds that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from ...errors import PromptError
from ...grammar.spec import Gbnf, Lark, Regex
from .tags import CALL_BEGIN, CALL_END

ANY_INPUT = Regex(rf"(?!(?s:.*){CALL_END})(?s:.*)")
_SYNTAXES = {"lark": Lark, "regex": Regex, "gbnf": Gbnf}

Input = Regex | Lark | Gbnf


def input_begin(name: str) -> str:
    """What stands before the input of a call of `name`."""
    return f'{CALL_BEGIN}\n{{"name": {json.dumps(name, ensure_ascii=False)}}}\n'


def input_end() -> str:
    """What stands behind the input of a call."""
    return f"\n{CALL_END}"


def read_format(custom: Mapping[str, Any], place: str) -> tuple[Input, str]:
    """What the input of a tool may be, and the place of its grammar. PromptError for a format that is none."""
    wanted = custom.get("format")
    place = f"{place}.format"
    if wanted is None:
        return ANY_INPUT, place
    fields = _object(wanted, place)
    kind = fields.get("type")
    if kind == "text":
        return ANY_INPUT, place
    if kind != "grammar":
        raise PromptError(f"a format is text or grammar, not {kind!r:.80}", place=f"{place}.type")
    if "grammar" in fields:
        place = f"{place}.grammar"
        fields = _object(fields["grammar"], place)
    syntax, definition = fields.get("syntax"), fields.get("definition")
    if not isinstance(syntax, str) or syntax not in _SYNTAXES:
        raise PromptError(
            f"the syntax of a grammar is {', '.join(_SYNTAXES)}, not {syntax!r:.80}",
            place=f"{place}.syntax",
        )
    if not isinstance(definition, str):
        raise PromptError("the definition of a grammar is text", place=f"{place}.definition")
    return _SYNTAXES[syntax](definition), f"{place}.definition"


def as_function(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """A tool of a request for templates that know functions only: a custom one takes a text `input`. Others stay as they are."""
    custom = tool.get("custom")
    if tool.get("type") != "custom" or not isinstance(custom, Mapping):
        return tool
    fields = cast("Mapping[str, Any]", custom)
    function = {
        "name": fields.get("name"),
        **({"description": fields["description"]} if fields.get("description") else {}),
        "parameters": {
            "type": "object",
            "properties": {"input": {"type": "string"}},
            "required": ["input"],
        },
    }
    return {"type": "function", "function": function}


def custom_call_text(call: Mapping[str, Any]) -> str | None:
    """A call of a conversation as the model wrote it, if it is one of a custom tool."""
    custom = call.get("custom")
    if not isinstance(custom, Mapping):
        return None
    fields = cast("Mapping[str, Any]", custom)
    return f"{input_begin(str(fields.get('name', '')))}{fields.get('input') or ''}{input_end()}"


def _object(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise PromptError(f"an object is needed, not {type(value).__name__}", place=place)
    return cast("Mapping[str, Any]", value)
