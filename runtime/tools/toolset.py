"""The tools of one request: checked, shown to the model, and made into the constraint of its output.

Owns the reading of the fields `tools`, `tool_choice` and `parallel_tool_calls` of a chat request. Knows the text format through
`hermes` only, and nothing of HTTP.

    tool_choice   the output is
    none          text; the tools are not shown
    auto          text with calls in it, at most one without parallel calls; with a response schema: calls, or an answer under the schema
    required      calls and nothing else
    a name        one call of that tool
    allowed_tools as auto or required, with calls of the listed tools only; all tools are shown
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from ...errors import GrammarError, PromptError, RadixError
from ...grammar.spec import Choice, Gbnf, JsonSchema, Lark, Regex, StructuralTag, Tag
from .custom import Input, input_begin, input_end, read_format
from .hermes import call_begin, call_end
from .parser import ToolTextParser, new_call_id
from .schemas import arguments_schema, loosened
from .tags import CALL_BEGIN, CALL_SEPARATOR

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MODES = ("none", "auto", "required")
_KINDS = ("function", "custom")
_MAX_TOOLS = 1024

Answer = Regex | JsonSchema | Lark | Gbnf | Choice


@dataclass(frozen=True, slots=True)
class Tool:
    """One function that the model may call. `parameters` is the schema of its arguments.

    Of a custom tool, `input` is what its text may be; `parameters` are the fields of the request, as the model sees them.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    is_strict: bool
    place: str  # in the request
    input: Input | None = None
    input_place: str = ""

    @property
    def on_the_wire(self) -> dict[str, Any]:
        """The tool as chat templates print it."""
        if self.input is not None:
            return {"type": "custom", "custom": dict(self.parameters)}
        described = {"description": self.description} if self.description else {}
        function = {"name": self.name, **described, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A tool set without the constraint that was refused, and what to tell the caller."""

    toolset: ToolSet
    warning: str


@dataclass(frozen=True, slots=True)
class ToolSet:
    """The tools of a request and which calls its output may, or must, hold."""

    tools: tuple[Tool, ...] = ()
    shown: tuple[Tool, ...] = ()  # as the model sees them: `tools` before any was relaxed
    callable_names: frozenset[str] = frozenset()
    is_required: bool = False
    is_parallel: bool = True

    @classmethod
    def of(
        cls,
        tools: Sequence[Any] | None,
        tool_choice: str | Mapping[str, Any] | None = None,
        parallel: bool | None = None,
    ) -> ToolSet:
        """Read the fields of a request. PromptError with the place of what is wrong, such as "tools[0].function.name"."""
        read = _read_tools(tools)
        mode, names, is_single = _read_choice(tool_choice, [tool.name for tool in read])
        if not read or mode == "none":
            return cls()
        return cls(
            read,
            read,
            frozenset(names),
            is_required=mode == "required",
            is_parallel=parallel is not False and not is_single,
        )

    @property
    def is_active(self) -> bool:
        """Whether the model may call tools in this request; where not, its output is text as it stands."""
        return bool(self.tools)

    @property
    def is_open_ended(self) -> bool:
        """Whether the output may be free text, unless there is a response schema: a free text is complete to its grammar wherever it is cut."""
        return self.is_active and not self.is_required

    @property
    def wire_tools(self) -> tuple[dict[str, Any], ...]:
        """The tools for the chat template."""
        return tuple(tool.on_the_wire for tool in self.shown)

    def constraint(self, answer: Answer | None = None) -> Answer | StructuralTag | None:
        """What the output must be. `answer`: what it must be where it calls no tool; plain text if None."""
        if not self.is_active:
            return answer
        tags = tuple(_tag(tool) for tool in self.tools if tool.name in self.callable_names)
        return StructuralTag(
            tags,
            free_text=answer is None and not self.is_required,
            at_least_one=self.is_required,
            at_most_one=not self.is_parallel,
            separator=CALL_SEPARATOR,
            answer=None if self.is_required else answer,
        )

    def parser(self, new_id: Callable[[], str] = new_call_id) -> ToolTextParser:
        """A parser for one output."""
        names = frozenset(tool.name for tool in self.tools if tool.input is not None)
        return ToolTextParser(is_active=self.is_active, new_id=new_id, custom_names=names)

    def relaxed(self, error: RadixError) -> Relaxed | None:
        """The same tools with the refused argument unconstrained, if `error` is the grammar's refusal of one that is not strict.

        May be called again with the next error: each call removes a constraint, and None ends it.
        """
        if not isinstance(error, GrammarError):
            return None
        for index, tool in enumerate(self.tools):
            head, found, pointer = error.place.partition(f"{tool.place}.parameters")
            if found and not head and pointer[:1] in ("#", "/", "") and not tool.is_strict:
                parameters = loosened(tool.parameters, pointer)
                if parameters == tool.parameters:
                    return None
                tools = list(self.tools)
                tools[index] = replace(tool, parameters=parameters)
                warning = f"tool {tool.name!r}: arguments are not fully constrained: {error}"
                return Relaxed(replace(self, tools=tuple(tools)), warning)
        return None


def _tag(tool: Tool) -> Tag:
    if tool.input is not None:
        return Tag(
            begin=input_begin(tool.name),
            content=tool.input,
            end=input_end(),
            trigger=CALL_BEGIN,
            name=f"tool {tool.name!r}",
            place=tool.input_place,
        )
    return Tag(
        begin=call_begin(tool.name),
        content=arguments_schema(tool.parameters),
        end=call_end(),
        trigger=CALL_BEGIN,
        name=f"tool {tool.name!r}",
        place=f"{tool.place}.parameters",
    )


def _read_tools(tools: Any) -> tuple[Tool, ...]:
    if tools is None:
        return ()
    if not isinstance(tools, list | tuple):
        raise PromptError(f"tools is a list, not {type(tools).__name__}", place="tools")
    items = cast("Sequence[Any]", tools)
    if len(items) > _MAX_TOOLS:
        raise PromptError(f"{len(items)} tools; at most {_MAX_TOOLS} are taken", place="tools")
    read = tuple(_read_tool(tool, f"tools[{index}]") for index, tool in enumerate(items))
    seen: set[str] = set()
    for tool in read:
        if tool.name in seen:
            raise PromptError(f"two tools are called {tool.name!r}", place=f"{tool.place}.name")
        seen.add(tool.name)
    return read


def _read_tool(tool: Any, place: str) -> Tool:
    fields = _object(tool, place)
    kind = fields.get("type", "function")
    if kind not in _KINDS:
        raise PromptError(
            f"tools of type {kind!r} are not supported",
            place=f"{place}.type",
            hint='"function" and "custom" are',
        )
    place = f"{place}.{kind}"
    described = _object(fields.get(kind), place)
    name = described.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise PromptError(
            f"a tool's name has 1 to 64 of the characters a-z, A-Z, 0-9, _ and -, not {name!r}",
            place=f"{place}.name",
        )
    description = described.get("description")
    if description is not None and not isinstance(description, str):
        raise PromptError("a description is text", place=f"{place}.description")
    if kind == "custom":
        wanted, input_place = read_format(described, place)
        return Tool(name, description or "", described, True, place, wanted, input_place)
    strict = described.get("strict")
    if strict is not None and not isinstance(strict, bool):
        raise PromptError("strict is true or false", place=f"{place}.strict")
    return Tool(name, description or "", _read_parameters(described, place), bool(strict), place)


def _read_parameters(function: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    if function.get("parameters") is None:
        return {"type": "object", "properties": {}}
    parameters = _object(function["parameters"], f"{place}.parameters")
    kind = parameters.get("type", "object")
    if kind != "object":
        raise PromptError(
            f"a tool's parameters are an object's schema, not {kind!r}",
            place=f"{place}.parameters.type",
        )
    return parameters


def _read_choice(choice: Any, names: list[str]) -> tuple[str, list[str], bool]:
    """(mode, the tools that may be called, whether by one call only)."""
    if choice is None:
        return "auto", names, False
    if isinstance(choice, str):
        if choice not in _MODES:
            raise PromptError(
                f"tool_choice is none, auto, required or a tool, not {choice!r}",
                place="tool_choice",
            )
        if choice == "required" and not names:
            raise PromptError("a call is required, but there are no tools", place="tool_choice")
        return choice, names, False
    fields = _object(choice, "tool_choice")
    kind = fields.get("type")
    if kind in _KINDS:
        return "required", [_read_named(fields, "tool_choice", names)], True
    if kind == "allowed_tools":
        return (*_read_allowed(fields, names), False)
    raise PromptError(
        f"a tool_choice of type {kind!r} is not supported",
        place="tool_choice.type",
        hint='"function", "custom" and "allowed_tools" are',
    )


def _read_allowed(fields: Mapping[str, Any], names: list[str]) -> tuple[str, list[str]]:
    place = "tool_choice.allowed_tools"
    allowed = _object(fields.get("allowed_tools"), place)
    mode, listed = allowed.get("mode"), allowed.get("tools")
    if mode not in ("auto", "required"):
        raise PromptError(f"the mode is auto or required, not {mode!r}", place=f"{place}.mode")
    if not isinstance(listed, list) or not listed:
        raise PromptError("the allowed tools are a list that is not empty", place=f"{place}.tools")
    places = [f"{place}.tools[{index}]" for index in range(len(cast("list[Any]", listed)))]
    pairs = zip(cast("list[Any]", listed), places, strict=True)
    return mode, [_read_named(_object(item, where), where, names) for item, where in pairs]


def _read_named(fields: Mapping[str, Any], place: str, names: list[str]) -> str:
    kind = "custom" if fields.get("type") == "custom" else "function"
    place = f"{place}.{kind}"
    name = _object(fields.get(kind), place).get("name")
    if name not in names:
        raise PromptError(
            f"there is no tool {name!r}",
            place=f"{place}.name",
            hint=f"Tools: {', '.join(names)}" if names else "The request has no tools",
        )
    return name


def _object(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise PromptError(f"an object is needed, not {type(value).__name__}", place=place)
    return cast("Mapping[str, Any]", value)
