"""A traced program as data that can be written down: what it does, step by step, in the order in which it did it.

Owns the steps and the file: JSON with a format name and a version, read back with every fault at its place. A step names its branch by
number, 0 is the program's own. Text is a row of parts: constant, an argument, or the output of an earlier gen or select. Must not know how a
script is made or played.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from ...errors import ConfigError
from ...grammar.spec import Spec
from ..constraints import ValueKind

FORMAT = "radixlm program"
VERSION = 1


class Constant(msgspec.Struct, frozen=True, tag="constant"):
    """Text that is always the same."""

    text: str


class Argument(msgspec.Struct, frozen=True, tag="argument"):
    """`str(...)` of an argument."""

    name: str


class Result(msgspec.Struct, frozen=True, tag="result"):
    """The text of a gen or select; `output` counts those of a gen with n > 1."""

    ask: int
    output: int = 0


Part = Constant | Argument | Result


class AddText(msgspec.Struct, frozen=True, tag="text"):
    """Text at the end of a branch."""

    branch: int
    parts: tuple[Part, ...]


class Mark(msgspec.Struct, frozen=True, tag="role"):
    """A chat message begins or ends."""

    branch: int
    role: str
    begins: bool


class AskGen(msgspec.Struct, frozen=True, tag="gen"):
    """A gen: its own sampling arguments, its constraint, and what a value is made of."""

    branch: int
    ask: int
    name: str | None
    options: dict[str, Any]
    constraint: Spec | None = None
    value: ValueKind = "text"


class AskSelect(msgspec.Struct, frozen=True, tag="select"):
    """A select."""

    branch: int
    ask: int
    name: str | None
    choices: tuple[str, ...]
    method: str
    temperature: float


class Branching(msgspec.Struct, frozen=True, tag="fork"):
    """Branches that continue from here."""

    branch: int
    children: tuple[int, ...]


class End(msgspec.Struct, frozen=True, tag="close"):
    """A branch ends."""

    branch: int


class Wait(msgspec.Struct, frozen=True, tag="wait"):
    """All results of a branch are waited for."""

    branch: int


class Scope(msgspec.Struct, frozen=True, tag="scope"):
    """A `var_scope` begins or ends."""

    branch: int
    name: str
    begins: bool


class TextValue(msgspec.Struct, frozen=True, tag="text_value"):
    """A text."""

    parts: tuple[Part, ...]


class ResultValue(msgspec.Struct, frozen=True, tag="result_value"):
    """A gen's or select's value as it is read. `output` -1 is all of them, or the only one."""

    ask: int
    output: int = -1


class PlainValue(msgspec.Struct, frozen=True, tag="plain_value"):
    """None, a truth or a number that is always the same."""

    value: bool | int | float | None


class ListValue(msgspec.Struct, frozen=True, tag="list_value"):
    """A list or tuple."""

    items: tuple[Value, ...]


Value = TextValue | ResultValue | PlainValue | ListValue


class SetValue(msgspec.Struct, frozen=True, tag="set"):
    """A variable that the program set by hand, or a join gathered."""

    branch: int
    name: str
    value: Value


class Return(msgspec.Struct, frozen=True, tag="return"):
    """What the function returned."""

    value: Value


Step = AddText | Mark | AskGen | AskSelect | Branching | Wait | End | Scope | SetValue | Return


class Script(msgspec.Struct, frozen=True):
    """See the module."""

    program: str
    arguments: tuple[str, ...]
    steps: tuple[Step, ...]
    format: str = FORMAT
    version: int = VERSION


def write(script: Script, path: str | Path) -> None:
    """Write a file of JSON, whole or not at all."""
    path = Path(path)
    text = msgspec.json.format(msgspec.json.encode(script), indent=1)
    beside = path.with_name(f"{path.name}.part")
    beside.write_bytes(text + b"\n")
    beside.replace(path)


def read(path: str | Path) -> Script:
    """The script in a file. ConfigError with its place for what is none, is damaged, or is of another version."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"the program cannot be read: {error.strerror}", place=str(path)
        ) from None
    try:
        head = msgspec.json.decode(data, type=_Head)
        if (head.format, head.version) != (FORMAT, VERSION):
            raise ConfigError(
                f"this is {head.format or 'something else'!r} of version {head.version}, not {FORMAT!r} of version {VERSION}",
                place=f"{path}: $.version" if head.format == FORMAT else f"{path}: $.format",
                hint="Save the program anew with this version",
            )
        script = msgspec.json.decode(data, type=Script)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"the program is damaged: {error}", place=str(path)) from None
    _check(script, path)
    return script


class _Head(msgspec.Struct):
    format: str = ""
    version: int = 0


def _check(script: Script, path: Path) -> None:
    """ConfigError at the first step that speaks of a branch, scope, result or argument that is not there by then."""
    known = _Known(script.arguments)
    for index, step in enumerate(script.steps):
        fault = known.fault_of(step)
        if fault:
            raise ConfigError(f"the program is damaged: {fault}", place=f"{path}: $.steps[{index}]")


class _Known:
    """What there is at a step."""

    def __init__(self, arguments: tuple[str, ...]) -> None:
        self._arguments = arguments
        self._branches = {0}
        self._num_outputs: dict[int, int] = {}  # by result
        self._scopes: Counter[tuple[int, str]] = Counter()

    def fault_of(self, step: Step) -> str:
        """What is wrong with the next step, or nothing."""
        if not isinstance(step, Return) and step.branch not in self._branches:
            return f"there is no branch {step.branch}"
        if isinstance(step, Branching):
            self._branches.update(step.children)
        elif isinstance(step, End):
            self._branches.discard(step.branch)
        elif isinstance(step, Scope):
            return self._fault_of_scope(step)
        elif isinstance(step, AskGen | AskSelect):
            if step.ask in self._num_outputs:
                return f"two results are number {step.ask}"
            self._num_outputs[step.ask] = _num_outputs(step)
        faults = (self._fault_of_source(source) for source in _sources(step))
        return next(filter(None, faults), "")

    def _fault_of_scope(self, step: Scope) -> str:
        scope = (step.branch, step.name)
        self._scopes[scope] += 1 if step.begins else -1
        return f"the scope {step.name!r} ends and did not begin" if self._scopes[scope] < 0 else ""

    def _fault_of_source(self, source: Argument | Result | ResultValue) -> str:
        if isinstance(source, Argument):
            is_known = source.name in self._arguments
            return "" if is_known else f"there is no argument {source.name!r}"
        if source.ask not in self._num_outputs:
            return f"there is no result {source.ask}"
        least = -1 if isinstance(source, ResultValue) else 0
        if not least <= source.output < self._num_outputs[source.ask]:
            return f"result {source.ask} has no output {source.output}"
        return ""


def _num_outputs(step: AskGen | AskSelect) -> int:
    number = step.options.get("n", 1) if isinstance(step, AskGen) else 1
    return number if type(number) is int else 1  # what is no number is refused with the options


def _sources(step: Step) -> list[Argument | Result | ResultValue]:
    """Results and arguments that a step draws on."""
    if isinstance(step, AddText):
        return _of_parts(step.parts)
    return _of_value(step.value) if isinstance(step, SetValue | Return) else []


def _of_parts(parts: tuple[Part, ...]) -> list[Argument | Result | ResultValue]:
    return [part for part in parts if not isinstance(part, Constant)]


def _of_value(value: Value) -> list[Argument | Result | ResultValue]:
    if isinstance(value, TextValue):
        return _of_parts(value.parts)
    if isinstance(value, ListValue):
        return [source for item in value.items for source in _of_value(item)]
    return [value] if isinstance(value, ResultValue) else []
