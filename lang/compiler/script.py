"""A traced program as data that can be written down: what it does, step by step, in the order in which it did it.

Owns the steps and the file: JSON with a format name and a version, read back with every fault at its place. A step names its branch by
number, 0 is the program's own. Text is a row of parts: constant, an argument, or the output of an earlier gen or select. Must not know how a
script is made or played.
"""

from __future__ import annotations

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
    """ConfigError at the first step that speaks of a branch, result or argument that is not there by then."""
    branches, asks = {0}, set[int]()
    for index, step in enumerate(script.steps):
        place = f"{path}: $.steps[{index}]"
        if not isinstance(step, Return) and step.branch not in branches:
            raise ConfigError(f"the program is damaged: there is no branch {step.branch}", place=place)  # fmt: skip
        if isinstance(step, Branching):
            branches.update(step.children)
        elif isinstance(step, End):
            branches.discard(step.branch)
        elif isinstance(step, AskGen | AskSelect):
            if step.ask in asks:
                raise ConfigError(f"the program is damaged: two results are number {step.ask}", place=place)  # fmt: skip
            asks.add(step.ask)
        for source in _sources(step):
            if isinstance(source, int) and source not in asks:
                raise ConfigError(f"the program is damaged: there is no result {source}", place=place)  # fmt: skip
            if isinstance(source, str) and source not in script.arguments:
                raise ConfigError(f"the program is damaged: there is no argument {source!r}", place=place)  # fmt: skip


def _sources(step: Step) -> list[int | str]:
    """Results and arguments that a step draws on."""
    if isinstance(step, AddText):
        return _of_parts(step.parts)
    return _of_value(step.value) if isinstance(step, SetValue | Return) else []


def _of_parts(parts: tuple[Part, ...]) -> list[int | str]:
    return [
        part.ask if isinstance(part, Result) else part.name
        for part in parts
        if not isinstance(part, Constant)
    ]


def _of_value(value: Value) -> list[int | str]:
    if isinstance(value, TextValue):
        return _of_parts(value.parts)
    if isinstance(value, ListValue):
        return [source for item in value.items for source in _of_value(item)]
    return [value.ask] if isinstance(value, ResultValue) else []
