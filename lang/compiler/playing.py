"""A script as a program again: its steps, done on a state.

Owns what each step does. Results are waited for where the saved program had them in hand, so requests go out as they did. Must not know files.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ...errors import ConfigError, ProgramError, UserError
from ...grammar.spec import Choice
from ..constraints import text_of
from ..function import Program
from ..ir import Text
from ..primitives.gen import Gen, choice_of
from ..primitives.roles import BeginRole, EndRole
from ..primitives.select import select
from ..primitives.typed_gen import reader_of
from ..sampling import clean_options
from .script import (
    AddText,
    Argument,
    AskGen,
    AskSelect,
    Branching,
    Constant,
    End,
    ListValue,
    Mark,
    PlainValue,
    ResultValue,
    Return,
    Scope,
    SetValue,
    TextValue,
    Wait,
    read,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from ...runtime.messages import Output
    from ..ir import Node
    from ..primitives.select import ChoicesMethod
    from ..state import State
    from ..variable import Variable
    from .script import Part, Script, Step, Value


def load(path: str | Path) -> Program[..., Any]:
    """The program in a file. ConfigError, with its place, for a file that is damaged or of another version."""
    script = read(path)
    try:
        return program_of(script)
    except (UserError, ValueError, TypeError) as error:
        raise ConfigError(f"the program is damaged: {error}", place=str(path)) from None


def program_of(script: Script) -> Program[..., Any]:
    """The program of a script: it takes the arguments that it was saved with, as texts. A UserError for what no gen or select takes."""
    nodes = {step.ask: _node(step) for step in script.steps if isinstance(step, AskGen | AskSelect)}

    def body(s: State, **arguments: Any) -> Any:
        for name, value in arguments.items():
            if not isinstance(value, str):
                raise ProgramError(
                    f"{name}={value!r:.80} is no text: a saved program takes what it was saved with",
                    place=name,
                )
        return _Player(s, arguments, nodes).play(script.steps)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind, annotation=str) for name in script.arguments]
    call = partial(_by_name, body, script.arguments)
    call.__signature__ = inspect.Signature([inspect.Parameter("s", kind), *parameters])  # type: ignore[attr-defined]
    call.__qualname__ = call.__name__ = script.program  # type: ignore[attr-defined]
    call.__doc__ = f"{script.program}, as it was saved."
    return Program(cast("Callable[..., Any]", call))


def _by_name(
    body: Callable[..., Any], names: Sequence[str], s: State, *args: Any, **kwargs: Any
) -> Any:
    return body(s, **dict(zip(names, args, strict=False)), **kwargs)


def _node(step: AskGen | AskSelect) -> Node:
    if isinstance(step, AskSelect):
        method = cast("ChoicesMethod", step.method)
        return select(step.name, step.choices, step.temperature, method)
    options = dict(step.options)
    if "logit_bias" in options:  # names in JSON are texts
        options["logit_bias"] = {int(key): value for key, value in options["logit_bias"].items()}
    decode: Callable[[Output], object] = text_of
    if step.value == "choice":
        if not isinstance(step.constraint, Choice):
            raise ProgramError(f"the gen {step.name!r} has a choice as its value, and no choices")
        decode = partial(choice_of, step.constraint.options)
    elif step.value != "text":
        decode = reader_of(step.value)
    return Gen(step.name, clean_options(options), step.constraint, decode, None, step.value)


class _Player:
    """One run of a script."""

    def __init__(self, s: State, arguments: Mapping[str, str], nodes: Mapping[int, Node]) -> None:
        self._arguments = arguments
        self._nodes = nodes
        self._states = {0: s}
        self._results: dict[int, tuple[State, Variable]] = {}
        self._scopes: dict[tuple[int, str], list[AbstractContextManager[Any]]] = {}

    def play(self, steps: Sequence[Step]) -> Any:
        """All steps; what the saved program returned."""
        for step in steps:
            if isinstance(step, Return):
                return self._value(step.value)
            self._do(step, self._states[step.branch])
        return None

    def _do(self, step: Step, s: State) -> None:
        match step:
            case AddText(parts=parts):
                s += Text(self._text(parts))
            case Mark(role=role, begins=begins):
                s += BeginRole(role) if begins else EndRole(role)
            case AskGen(ask=ask) | AskSelect(ask=ask):
                s += self._nodes[ask]
                self._results[ask] = (s, s.last_result())
            case Branching(children=children):
                self._states.update(zip(children, s.fork(len(children)), strict=True))
            case Scope(branch=branch, name=name, begins=True):
                scope = s.var_scope(name)
                scope.__enter__()
                self._scopes.setdefault((branch, name), []).append(scope)
            case Scope(branch=branch, name=name):
                self._scopes[branch, name].pop().__exit__(None, None, None)
            case SetValue(name=name, value=value):
                s[name] = self._value(value)
            case Wait():
                s.sync()
            case End():
                s.close()
            case Return():
                return

    def _text(self, parts: Sequence[Part]) -> str:
        texts: list[str] = []
        for part in parts:
            if isinstance(part, Constant):
                texts.append(part.text)
            elif isinstance(part, Argument):
                texts.append(self._arguments[part.name])
            else:
                state, variable = self._results[part.ask]
                texts.append(state.output_text(variable, part.output))
        return "".join(texts)

    def _value(self, value: Value) -> Any:
        if isinstance(value, TextValue):
            return self._text(value.parts)
        if isinstance(value, ListValue):
            return [self._value(item) for item in value.items]
        if isinstance(value, PlainValue):
            return value.value
        assert isinstance(value, ResultValue)
        state, variable = self._results[value.ask]
        if value.output >= 0:
            return state.output_text(variable, value.output)
        return state.value_of(variable)
