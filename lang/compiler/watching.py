"""A traced run under observation: every node, fork and value in the program's order, and whether Python decided anything by a text.

Owns the watched state and the log. The log is what the state was told, so it holds what each gen and select was asked for itself. Texts that the
program gets in hand are watched ones (`watched_text.py`). Must not know files or how a log is compared.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any, cast

from ...errors import ProgramError
from ..fork_group import ForkGroup
from ..interpreter import Call, execute
from ..ir import Concat, Text
from ..place import user_place
from ..primitives.gen import Gen
from ..primitives.roles import BeginRole, EndRole, Role
from ..primitives.select import Select
from ..state import State
from ..variable import Known, Span, Variable
from .script import (
    AddText,
    AskGen,
    AskSelect,
    Branching,
    End,
    ListValue,
    Mark,
    PlainValue,
    ResultValue,
    Return,
    Scope,
    SetValue,
    Step,
    TextValue,
    Value,
    Wait,
)
from .tracing import MAX_STEPS, TooLong, Tracer
from .watched_text import WatchedText

if TYPE_CHECKING:
    from collections.abc import Generator

    from ...runtime.messages import Usage
    from ..branch import Branch, Piece
    from ..constraints import ValueKind
    from ..function import Program
    from ..ir import Node
    from ..place import Place
    from ..variable import Meta

_HINT = "Only a program that does the same whatever its texts are can be saved; compile and run this one"
_LANG = str(Path(__file__).parents[1])
_READERS = {__file__, f"{_LANG}/reading.py"}


def _is_read_by_user() -> bool:
    """Whether a value goes to the user's code; a join only passes it on."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and frame.f_code.co_filename in _READERS:
        frame = frame.f_back
    return not frame.f_code.co_filename.startswith(_LANG)


@dataclass(frozen=True, slots=True)
class _Handed:
    """A value that is no text, on its way through a join."""

    ask: int
    value: Any


def _texts_in(value: object) -> list[str] | None:
    """A list that holds texts only."""
    items = cast("list[object]", value) if isinstance(value, list) else []
    texts = [item for item in items if isinstance(item, str)]
    return texts if texts and len(texts) == len(items) else None


def _is_packed(value: object) -> bool:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return isinstance(value, _Handed) or any(map(_is_packed, items))


def _unpacked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpacked(item) for item in cast("list[Any]", value)]
    return value.value if isinstance(value, _Handed) else value


@dataclass(frozen=True, slots=True)
class Entry:
    """One step. Its texts are apart from it, in the order in which they stand in it, so that steps can be compared."""

    step: Step
    texts: tuple[str, ...]
    place: Place


@dataclass(slots=True)
class Log:
    """What one run did."""

    entries: list[Entry] = field(default_factory=list[Entry])
    asks: list[Variable] = field(default_factory=list[Variable])
    read: dict[int, Place] = field(default_factory=dict[int, "Place"])
    """Results that the program had in hand, and where first."""
    embedded: dict[int, Place] = field(default_factory=dict[int, "Place"])
    """Results that the program had in hand as part of a longer text."""
    packed: dict[int, tuple[Known, Any]] = field(default_factory=dict[int, "tuple[Known, Any]"])
    """By the identity of a variable that was set: it, and its value with results that are no texts still marked as such."""
    decisions: list[tuple[str, Place]] = field(default_factory=list[tuple[str, "Place"]])
    branches: dict[Branch, int] = field(default_factory=dict["Branch", int])

    def add(self, step: Step, *texts: str) -> None:
        """One more step."""
        self.entries.append(Entry(step, tuple(map(str.__str__, texts)), user_place()))

    def number(self, branch: Branch) -> int:
        """A number for a branch, in the order in which they are met."""
        return self.branches.setdefault(branch, len(self.branches))

    def saw(self, ask: int) -> None:
        """The program has a result in hand."""
        self.read.setdefault(ask, user_place())

    def decided(self, what: str) -> None:
        """Python looked into a text."""
        self.decisions.append((what, user_place()))


def _value_kind(node: Gen) -> ValueKind:
    """What the value of a gen is made of. ProgramError if the file has no word for it, or for how the gen is asked."""
    what = ""
    if node.beside is not None:
        what = "with max_reasks= or check="
    elif node.value is None:
        what = "whose value a function makes (tools= does so)"
    if what or node.value is None:
        raise ProgramError(f"a gen {what} cannot be saved", place=str(user_place()), hint=_HINT)
    return node.value


class WatchedState(State):
    """A state that tells the log what the program does with it."""

    log: Log

    @staticmethod
    def of(state: State, log: Log) -> WatchedState:
        """The same state, watched from here on."""
        state.__class__ = WatchedState
        watched = cast("WatchedState", state)
        watched.log = log
        return watched

    @property
    def _number(self) -> int:
        return self.log.number(self._branch)

    def _append(self, node: Node) -> None:
        if isinstance(node, Concat):
            for item in node.items:
                self._append(item)
        elif isinstance(node, Role):
            self._append(BeginRole(node.role))
            try:
                self._append(node.content)
            finally:
                self._append(EndRole(node.role))
        else:
            super()._append(node)
            self._log_node(node)

    def _log_node(self, node: Node) -> None:
        log, number = self.log, self._number
        if isinstance(node, Text):
            log.add(AddText(number, ()), node.text)
        elif isinstance(node, BeginRole | EndRole):
            log.add(Mark(number, node.role, isinstance(node, BeginRole)))
        elif isinstance(node, Gen | Select):
            ask = len(log.asks)
            log.asks.append(cast("Variable", self._branch.last))
            if isinstance(node, Select):
                asked: Step = AskSelect(
                    number, ask, node.name, node.choices, node.method, node.temperature
                )
            else:
                value = _value_kind(node)
                options = dict(node.options)
                if (num_outputs := log.asks[ask].num_outputs) > 1:
                    options["n"] = (
                        num_outputs  # what was bound counts too: steps tell outputs apart
                    )
                asked = AskGen(number, ask, node.name, options, node.constraint, value)
            log.add(asked)
        else:
            raise ProgramError(
                f"a {type(node).__name__} cannot be saved", place=str(user_place()), hint=_HINT
            )

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        readable = self._branch.variables.get(name)
        _, packed = self.log.packed.get(id(readable), (None, value))
        if packed is not value and not _is_read_by_user():
            return packed
        if packed is not value:
            self.log.decided(f"the {type(value).__name__} of {name!r}")
        if isinstance(readable, Span):
            self._embed(readable.pieces[readable.start : readable.end])
        return WatchedText.of(value, self.log) if type(value) is str else value

    def _embed(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            if isinstance(piece, Variable):
                self.log.embedded.setdefault(self.log.asks.index(piece), user_place())

    def value_of(self, variable: Variable) -> Any:
        """As of a state, watched."""
        value: Any = super().value_of(variable)
        ask = self.log.asks.index(variable)
        texts = _texts_in(value) if variable.num_outputs > 1 else None
        if type(value) is str:
            self.log.saw(ask)
            return WatchedText.of(value, self.log, (ask, 0))
        if texts is not None:
            self.log.saw(ask)
            return [WatchedText.of(text, self.log, (ask, i)) for i, text in enumerate(texts)]
        if not _is_read_by_user():
            return _Handed(ask, value)
        self.log.decided(f"the {type(value).__name__} of {variable.name!r}")
        return value

    def output_text(self, variable: Variable, output: int = 0) -> str:
        """As of a state, watched."""
        ask = self.log.asks.index(variable)
        self.log.saw(ask)
        return WatchedText.of(super().output_text(variable, output), self.log, (ask, output))

    def text(self) -> str:
        """As of a state, watched."""
        self._embed(self._branch.all_pieces())
        text = super().text()
        self.log.add(Wait(self._number))
        return WatchedText.of(text, self.log)

    def sync(self) -> State:
        """As of a state; the text goes nowhere."""
        super().text()
        self.log.add(Wait(self._number))
        return self

    def messages(self) -> list[dict[str, str]]:
        """As of a state."""
        self.log.decided("messages()")
        return super().messages()

    def get_meta(self, name: str) -> Meta:
        """As of a state."""
        self.log.decided("get_meta()")
        return super().get_meta(name)

    def usage(self) -> Usage:
        """As of a state."""
        self.log.decided("usage()")
        return super().usage()

    def error(self) -> BaseException | None:
        """As of a state."""
        self.log.decided("error()")
        return super().error()

    def __setitem__(self, name: str, value: Any) -> None:
        texts: list[str] = []
        self.log.add(SetValue(self._number, name, self._raw(value, texts)), *texts)
        plain = _unpacked(value)
        super().__setitem__(name, plain)
        if _is_packed(value):
            known = cast("Known", self._branch.variables[name])
            self.log.packed[id(known)] = (known, value)

    @contextmanager
    def var_scope(self, name: str) -> Generator[State]:
        """As of a state."""
        self.log.add(Scope(self._number, name, begins=True))
        with super().var_scope(name):
            yield self
        self.log.add(Scope(self._number, name, begins=False))

    def fork(self, num_forks: int = 1, *, size: int | None = None) -> ForkGroup[State]:
        """As of a state."""
        group = super().fork(num_forks, size=size)
        children = [WatchedState.of(child, self.log) for child in group]
        self.log.add(Branching(self._number, tuple(child._number for child in children)))
        return group

    def copy(self) -> State:
        """As of a state."""
        child = WatchedState.of(super().copy(), self.log)
        self.log.add(Branching(self._number, (child._number,)))
        return child

    def close(self) -> None:
        """As of a state."""
        self.log.add(End(self._number))
        super().close()

    def own_nodes(self) -> list[Node]:
        """As of a state: its results become text of the parent."""
        for piece in self._branch.pieces:
            if isinstance(piece, Variable):
                self.log.saw(self.log.asks.index(piece))
        return super().own_nodes()

    def begin(self) -> None:
        """This is the program's own branch: number 0."""
        self.log.number(self._branch)

    def returned(self, value: Any) -> None:
        """The program is over."""
        texts: list[str] = []
        self.log.add(Return(self._raw(value, texts)), *texts)

    def _raw(self, value: Any, texts: list[str]) -> Value:
        if isinstance(value, WatchedText) and value.source is not None:
            ask, output = value.source
            is_one = self.log.asks[ask].num_outputs == 1
            return ResultValue(ask, -1 if is_one else output)
        if isinstance(value, _Handed):
            return ResultValue(value.ask)
        if isinstance(value, str):
            texts.append(str.__str__(value))
            return TextValue(())
        if value is None or isinstance(value, bool | int | float):
            return PlainValue(value)
        if isinstance(value, list | tuple):
            items = cast("Sequence[Any]", value)
            return ListValue(tuple(self._raw(item, texts) for item in items))
        for ask, variable in enumerate(self.log.asks):
            if variable.done.done() and variable.failure is None and variable.value() is value:
                return ResultValue(ask)
        raise ProgramError(
            f"a {type(value).__name__} that Python made cannot be saved",
            place=str(user_place()),
            hint=_HINT,
        )


def watch(program: Program, args: Sequence[Any], given: Mapping[str, Any], variant: int) -> Log:
    """One run on placeholders, under observation. ProgramError where it cannot go on with them, or does what cannot be written down."""
    log = Log()
    tracer = Tracer(variant, is_mixed=True)
    watched = [WatchedText.of(arg, log) if type(arg) is str else arg for arg in args]
    named = {
        name: WatchedText.of(value, log) if type(value) is str else value
        for name, value in given.items()
    }
    call = program._call(  # pyright: ignore[reportPrivateUsage]
        tuple(watched), {**named, "backend": tracer}, tracer.wait, tracer.new_recorder(None)
    )

    def body(state: State) -> Any:
        seen = WatchedState.of(state, log)
        seen.begin()
        value = call.body(seen)
        seen.returned(value)
        return value

    try:
        execute(Call(call.run, call.state, tracer.recorded(body)))
    except ProgramError:
        raise
    except TooLong:
        raise ProgramError(f"it takes more than {MAX_STEPS} steps", hint=_HINT) from None
    except Exception as error:
        own = [f for f in extract_tb(error.__traceback__) if not f.filename.startswith(_LANG)]
        raise ProgramError(
            f"it cannot go on with a placeholder: {type(error).__name__}: {error}",
            place=f"{own[-1].filename}:{own[-1].lineno}" if own else "",
            hint=_HINT,
        ) from error
    return log
