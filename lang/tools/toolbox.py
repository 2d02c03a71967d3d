"""The tools of one gen: the constraint of its output, the way from the output to calls, and the text that tells the model of them.

Owns the meaning of `tools=`, `tool_choice=` and `parallel_tool_calls=`. The text format and the grammar are `runtime.tools`'. Must not know
requests, branches or how a call is carried out.

    tool_choice   the output is
    "auto"        text with calls in it; with another constraint on the gen: calls, or a text of that constraint
    "required"    calls and nothing else
    a function    one call of it (also by its name)
    "none"        text without a call (or of the gen's other constraint)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ...errors import OutputError, ProgramError, PromptError
from ...grammar.spec import Regex, StructuralTag
from ...runtime.tools import CALL_BEGIN, ToolSet, collect, system_text
from ..constraints import Decode, text_of
from .calls import Call, ToolReply
from .signature import FunctionTool, tool_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ...grammar.spec import Choice, Gbnf, JsonSchema, Lark, Spec
    from ...runtime.messages import Output

    Answer = Regex | JsonSchema | Lark | Gbnf | Choice
    ToolChoice = str | Callable[..., Any] | FunctionTool

_MODES = ("auto", "required", "none")
WITHOUT_CALLS = Regex(rf"(?!(?s:.*){CALL_BEGIN})(?s:.*)")


class Toolbox:
    """Several tools, by name."""

    def __init__(self, tools: Iterable[Any]) -> None:
        """`tools` are functions (see `signature`). ProgramError if there is none, two have one name, or one cannot be a tool."""
        if isinstance(tools, str) or not hasattr(tools, "__iter__"):
            raise ProgramError(f"tools={tools!r:.80} is not a list of functions", place="tools")
        self.tools: tuple[FunctionTool, ...] = tuple(map(tool_of, tools))
        if not self.tools:
            raise ProgramError("there are no tools", place="tools", hint="Leave tools= out")
        self._by_name = {tool.name: tool for tool in self.tools}
        self.constraint("auto")  # names and schemas are checked where they are given

    def __getitem__(self, name: str) -> FunctionTool:
        return self._by_name[name]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the tools, in the order they were given."""
        return tuple(self._by_name)

    def describe(self) -> str:
        """What a system message tells the model: the tools, and how to call them."""
        return system_text([tool.on_the_wire for tool in self.tools])

    def constraint(
        self, choice: ToolChoice = "auto", *, parallel: bool = True, answer: Answer | None = None
    ) -> Spec:
        """What the output must be. `answer`: what it must be where it calls no tool; free text if None."""
        mode = self._mode(choice)
        if mode == "none":
            return answer or WITHOUT_CALLS
        if mode == "required" and answer is not None:
            raise ProgramError(
                "a gen that must call a tool has no place for another constraint",
                place="tool_choice",
                hint='tool_choice="auto" takes either',
            )
        wire = [tool.on_the_wire for tool in self.tools]
        try:
            spec = ToolSet.of(wire, cast("Any", mode), parallel).constraint(answer)
        except PromptError as error:
            raise ProgramError(error.message, place=error.place, hint=error.hint) from None
        return cast("StructuralTag", spec)

    def decode(
        self, output: Output, answer: Decode = text_of, *, is_strict: bool = True
    ) -> ToolReply:
        """The calls and the text of an output. OutputError if it was cut inside a call, or (is_strict) a validator refuses arguments."""
        if output.grammar_complete is False:
            raise OutputError(
                f"the output was cut by max_tokens before it was complete: {output.text[-80:]!r}",
                hint="Allow more tokens",
            )
        parser = ToolSet.of([tool.on_the_wire for tool in self.tools]).parser()
        text, found = collect([*parser.push(output.text), *parser.finish()])
        calls = tuple(self._call(each.name, each.arguments, is_strict) for each in found)
        value = None if calls else answer(output)
        return ToolReply(calls, text or "", value)

    def _call(self, name: str, text: str, is_strict: bool) -> Call:
        tool = self._by_name.get(name)
        if tool is None:
            known = f"Tools: {', '.join(self._by_name)}"
            raise OutputError(f"there is no tool {name!r} to call", place=name, hint=known)
        try:
            return Call(tool, text, tool.arguments_of(text))
        except OutputError as error:
            error.place = f"{name}{error.place}"
            if is_strict:
                raise
            return Call(tool, text, refusal=error)

    def _mode(self, choice: ToolChoice) -> str | dict[str, Any]:
        if isinstance(choice, str) and choice in _MODES:
            return choice
        name = choice if isinstance(choice, str) else tool_of(choice).name
        if name not in self._by_name:
            known = ", ".join([*_MODES, *self._by_name])
            raise ProgramError(
                f"tool_choice={name!r} is no tool of this gen",
                place="tool_choice",
                hint=f"Known: {known}",
            )
        return {"type": "function", "function": {"name": name}}


def describe_tools(tools: Sequence[Any]) -> str:
    """The text for a system message that tells a model of Python functions and how to call them."""
    return Toolbox(tools).describe()
