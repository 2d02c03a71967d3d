"""What a model's output with calls becomes: text, and calls whose arguments are Python values.

Owns the two value types and the text of a call, for scripts of tests. Must not know how an output is parsed or a call carried out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

from ...errors import ProgramError
from ...runtime.tools import call_begin, call_end

if TYPE_CHECKING:
    from ...errors import OutputError
    from .signature import FunctionTool


@dataclass(frozen=True)
class Call:
    """One call that the model wrote. Calling it, `call()`, carries it out."""

    tool: FunctionTool = field(repr=False)
    text: str
    """The arguments as the model wrote them, JSON."""
    given: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    refusal: OutputError | None = None
    """Why the arguments are none: a validator refused them. None in what `s["x"]` gives, which raises instead."""

    @property
    def name(self) -> str:
        """Of the tool."""
        return self.tool.name

    @property
    def arguments(self) -> dict[str, Any]:
        """By name, as Python values of the annotated types; those left out are not there. Raises the refusal."""
        if self.refusal is not None:
            raise self.refusal
        return self.given

    def __call__(self) -> Any:
        """The tool's result; of an async tool a coroutine. What the tool raises comes through."""
        return self.tool.call(self.arguments)

    def __str__(self) -> str:
        return f"{self.name}({self.text})"


@dataclass(frozen=True)
class ToolReply(Sequence[Call]):
    """An output that may call tools: a sequence of its calls, false if there is none."""

    calls: tuple[Call, ...]
    text: str
    """What stands beside the calls."""
    answer: Any = None
    """Where there is no call: the text, or the value of the gen's own constraint (`schema=` and others). None beside calls."""

    def __len__(self) -> int:
        return len(self.calls)

    def __iter__(self) -> Iterator[Call]:
        return iter(self.calls)

    @overload
    def __getitem__(self, index: int) -> Call: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Call, ...]: ...
    def __getitem__(self, index: int | slice) -> Call | tuple[Call, ...]:
        return self.calls[index]


def call_text(name: str, /, **arguments: Any) -> str:
    """A call as a model writes it: an answer for a `ScriptedBackend`. Several, joined by a line break, are several calls."""
    try:
        text = json.dumps(arguments, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise ProgramError(f"arguments of {name} are not JSON: {error}", place=name) from None
    return f"{call_begin(name)}{text}{call_end()}"
