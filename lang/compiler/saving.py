"""From a program and a sample of its arguments to a script that does the same without its Python.

Owns the runs that are compared, and what cannot be saved: a program whose steps were seen to differ, that looked into a text, whose text is more than
constants, arguments and results in a row, or whose results were used for something that no step shows. Each is refused with its place. What is
seen in no run is not seen: a program that hides what it decides by, from `str` and from all variants, is saved as it ran. Must not know files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ...errors import ProgramError
from .plan import argument_names
from .script import (
    AddText,
    Argument,
    ListValue,
    Result,
    ResultValue,
    Return,
    Script,
    SetValue,
    TextValue,
    Value,
)
from .templates import row_of
from .varying import varied
from .watching import watch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..function import Program
    from .script import Part, Step
    from .templates import Source
    from .watching import Log

_MOST_RESULTS = 16  # runs with other results; so many only where two results were the same in fewer
_HINT = "Only a program that does the same whatever its texts are can be saved; compile and run this one"


def script_of(program: Program, args: Sequence[Any], given: Mapping[str, Any]) -> Script:
    """The program as it ran. ProgramError, with the program's line where there is one, for what cannot be saved."""
    names = argument_names(program, len(args), given)
    values = {name: args[i] if i < len(args) else given[name] for i, name in enumerate(names)}
    for name, value in values.items():
        if not isinstance(value, str):
            raise ProgramError(
                f"the argument {name!r} is a {type(value).__name__}: what Python does with it cannot be seen",
                place=name,
                hint=f"Give it by bind({name}=...), which saves it as it is",
            )
    logs = [watch(program, args, given, variant) for variant in range(4)]
    _check_ways(logs)
    while len(logs) < _MOST_RESULTS and not _are_all_own(_results(logs)):
        logs += [watch(program, args, given, len(logs) + i) for i in range(4)]
    rows = {Argument(name): [value] * len(logs) for name, value in values.items()}
    for name, value in values.items():
        other = varied(value)
        changed = [other if names[i] == name else arg for i, arg in enumerate(args)]
        named = {key: other if key == name else each for key, each in given.items()}
        logs.append(watch(program, changed, named, 0))
        for source, row in rows.items():
            row.append(other if source.name == name else values[source.name])
    _check_ways(logs)
    sources: dict[Source, Sequence[str]] = {**rows, **_results(logs)}
    steps = tuple(_step(logs, index, sources) for index in range(len(logs[0].entries)))
    _check_used(logs, steps, values, sources)
    return Script(repr(program).strip("<>").removeprefix("program "), tuple(names), steps)


def _check_ways(logs: Sequence[Log]) -> None:
    first = logs[0]
    for log in logs:
        for what, place in log.decisions:
            raise ProgramError(f"what it does may depend on {what}", place=str(place), hint=_HINT)
        for mine, theirs in zip(first.entries, log.entries, strict=False):
            if mine.step != theirs.step:
                raise ProgramError(
                    "it goes another way with other texts", place=str(mine.place), hint=_HINT
                )
        if len(first.entries) != len(log.entries):
            longer = max(first, log, key=lambda each: len(each.entries))
            place = longer.entries[min(len(first.entries), len(log.entries))].place
            raise ProgramError("it does more with other texts", place=str(place), hint=_HINT)


def _results(logs: Sequence[Log]) -> dict[Source, list[str]]:
    """Every output of every ask, in each run."""
    found: dict[Source, list[str]] = {}
    for number, variable in enumerate(logs[0].asks):
        for output in range(variable.num_outputs):
            row: list[str] = []
            for log in logs:
                seen = log.asks[number]
                is_gen = seen.chosen is None and seen.meta is not None
                row.append(seen.meta.outputs[output].text if is_gen and seen.meta else seen.text)
            found[Result(number, output)] = row
    return found


def _are_all_own(results: Mapping[Source, Sequence[str]]) -> bool:
    rows = [tuple(row) for row in results.values()]
    return all(_is_own(row, rows) for row in rows)


def _step(logs: Sequence[Log], index: int, sources: Mapping[Source, Sequence[str]]) -> Step:
    entry = logs[0].entries[index]
    rows: list[tuple[Part, ...]] = []
    for texts in zip(*(log.entries[index].texts for log in logs), strict=True):
        row = row_of(texts, sources)
        if row is None:
            raise ProgramError(
                f"Python made this text of others: {texts[0]!r:.80}",
                place=str(entry.place),
                hint=_HINT,
            )
        rows.append(row)
    step = entry.step
    if isinstance(step, AddText):
        return msgspec.structs.replace(step, parts=rows[0])
    if isinstance(step, SetValue | Return):
        return msgspec.structs.replace(step, value=_filled(step.value, iter(rows)))
    return step


def _filled(value: Value, rows: Iterator[tuple[Part, ...]]) -> Value:
    if isinstance(value, TextValue):
        return TextValue(next(rows))
    if isinstance(value, ListValue):
        return ListValue(tuple(_filled(item, rows) for item in value.items))
    return value


def _check_used(
    logs: Sequence[Log],
    steps: Sequence[Step],
    values: Mapping[str, Any],
    sources: Mapping[Source, Sequence[str]],
) -> None:
    """Whatever the program had in hand stands in some step; else it decided by it, or nothing shows where it went."""
    used: set[int | str] = set()
    for step in steps:
        if isinstance(step, AddText):
            used.update(_drawn(step.parts))
        elif isinstance(step, SetValue | Return):
            used.update(_drawn_by(step.value))
    rows = [tuple(row) for row in sources.values()]
    own = {ask for ask in range(len(logs[0].asks)) if _is_own(tuple(sources[Result(ask)]), rows)}
    lost = [
        (ask, place) for ask, place in logs[0].read.items() if ask not in used or ask not in own
    ]
    lost += [(ask, place) for ask, place in logs[0].embedded.items() if ask not in own]
    for ask, place in lost:
        why = "is read, and stands nowhere afterwards" if ask in own else "has no placeholder of its own"  # fmt: skip
        raise ProgramError(
            f"the result of {logs[0].asks[ask].name!r} {why}", place=str(place), hint=_HINT
        )
    for name in values:
        if name not in used:
            raise ProgramError(
                f"the argument {name!r} stands in no text",
                place=name,
                hint=f"Give it by bind({name}=...), which saves it as it is",
            )


def _is_own(row: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> bool:
    """Whether a result can be told from constants and from other results."""
    return len(set(row)) > 1 and rows.count(row) == 1


def _drawn(parts: Sequence[Part]) -> list[int | str]:
    found: list[int | str] = [part.ask for part in parts if isinstance(part, Result)]
    return found + [part.name for part in parts if isinstance(part, Argument)]


def _drawn_by(value: Value) -> list[int | str]:
    if isinstance(value, TextValue):
        return _drawn(value.parts)
    if isinstance(value, ListValue):
        return [each for item in value.items for each in _drawn_by(item)]
    return [value.ask] if isinstance(value, ResultValue) else []
