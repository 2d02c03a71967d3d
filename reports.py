"""Tables of the command line: a program's state, a trace, a bench, an examination, an explained constraint; each as text or as JSON.

Owns their looks, nothing of what they say.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from radixlm.errors import OutputError

if TYPE_CHECKING:
    from radixlm.bench import Report
    from radixlm.doctor import Finding
    from radixlm.grammar.explain import Explanation
    from radixlm.lang.state import State
    from radixlm.lang.trace import TracingBackend

_INK = {"text": "", "role": "\x1b[36m", "gen": "\x1b[32m", "select": "\x1b[33m"}
_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"


def print_state(state: State, *, as_json: bool) -> None:
    """A finished state: its messages (or text), its variables, the value its function returned, and usage.

    A variable that is no value of its type is shown as null; when all is shown, its error is raised.
    """
    refused: list[OutputError] = []
    values = {name: _value_of(state, name, refused) for name in state.keys()}  # noqa: SIM118  a state is no dict
    returned = jsonable(state.ret_value)
    usage = {name: getattr(state.usage(), name) for name in state.usage().__struct_fields__}
    if as_json:
        _print_json(
            {"text": state.text(), "variables": values, "returned": returned, "usage": usage}
        )
    else:
        _print_state(state, values, returned, usage)
    for error in refused:
        raise error


def _value_of(state: State, name: str, refused: list[OutputError]) -> Any:
    try:
        return jsonable(state[name])
    except OutputError as error:
        refused.append(error)
        return None


def _print_state(
    state: State, values: dict[str, Any], returned: Any, usage: dict[str, int]
) -> None:
    messages = state.messages()
    if messages:
        for message in messages:
            print(f"[{message['role']}] {message['content'].strip()}")
    else:
        print(state.text())
    if values:
        print()
    for name, value in values.items():
        print(f"{name} = {json.dumps(value, ensure_ascii=False)}")
    if returned is not None:
        print(f"returned {json.dumps(returned, ensure_ascii=False)}")
    print(f"({', '.join(f'{value} {name}' for name, value in usage.items())})", file=sys.stderr)


def print_trace(trace: TracingBackend) -> None:
    """The tree of prefixes, in colours on a terminal."""
    if not sys.stdout.isatty():
        print(f"\n{trace.render()}")
        return
    print()
    for line in trace.lines():
        counts = f"  {_DIM}[{line.counts}]{_PLAIN}" if line.counts else ""
        print(f"{_DIM}{line.stem}{_PLAIN}{_INK[line.kind]}{line.label}{_PLAIN}{counts}")
    print(trace.summary())


def print_bench(report: Report, *, as_json: bool) -> None:
    """The rows by group, and the machine."""
    if as_json:
        _print_json(dataclasses.asdict(report))
        return
    for group, rows in groupby(report.rows, key=lambda row: row.group):
        print(group)
        for row in rows:
            remark = f"  ({row.remark})" if row.remark else ""
            print(f"  {row.name:<32}{row.value:>10.1f} {row.unit}{remark}")
    machine = report.machine
    print(
        f"{report.model} on {machine['processor']}, {machine['threads']} threads, {machine['instructions']},"
        f" torch {machine['torch']}"
    )


def print_examination(findings: Sequence[Finding], *, as_json: bool) -> bool:
    """All findings by section, problems last. Returns whether there was none."""
    problems = [finding for finding in findings if finding.problem]
    if as_json:
        _print_json([dataclasses.asdict(finding) for finding in findings])
        return not problems
    for section, rows in groupby(findings, key=lambda finding: finding.section):
        print(section)
        for row in rows:
            print(f"  {row.name:<20} {row.value}{'   <-- see below' if row.problem else ''}")
    for finding in problems:
        print(f"problem: {finding.section}, {finding.name}: {finding.problem}")
    return not problems


def print_explanation(explanation: Explanation, *, as_json: bool) -> None:
    """What a constraint means."""
    if as_json:
        _print_json(dataclasses.asdict(explanation))
        return
    needed = explanation.max_tokens_needed
    empty = ", or nothing at all" if explanation.may_be_empty else ""
    rows: list[tuple[str, str]] = [
        ("compiled", f"{explanation.num_states} states, {explanation.num_bytes} bytes, {1e3 * explanation.compile_s:.0f} ms"),
        ("always begins with", _quoted(explanation.forced_text) if explanation.forced_text else "(nothing fixed)"),
        ("first tokens", f"{explanation.num_first_tokens}{empty}: {_listed(explanation.first_tokens)}"),
        ("shortest", _quoted(explanation.shortest)),
        ("max_tokens needed", "no number suffices" if needed is None else f"{needed} suffice for the shortest"),
        ("a sample", _quoted(explanation.sample)),
        ("of it forced", f"{explanation.sample_forced_bytes} of {len(explanation.sample.encode())} bytes"),
    ]  # fmt: skip
    for name, value in rows:
        print(f"{name:<20} {value}")
    for loose in explanation.loose_objects:
        print(f"{'loose':<20} {loose.advice()}")
    for note in explanation.unknown_formats:
        print(f"{'unknown format':<20} {note.value!r} at {note.place}: any string passes")
    for note in explanation.annotations:
        print(f"{'ignored':<20} {note.keyword} at {note.place}")


def jsonable(value: Any) -> Any:
    """`value` as what JSON can hold: models and dataclasses as objects, unknown things as their repr."""
    if isinstance(value, dict):
        entries = cast("dict[Any, Any]", value)
        return {str(key): jsonable(each) for key, each in entries.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(each) for each in cast("Sequence[Any]", value)]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return jsonable(dataclasses.asdict(cast("Any", value)))
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else repr(value)


def _quoted(text: str) -> str:
    shown = text if len(text) <= 200 else f"{text[:200]}..."
    return json.dumps(shown, ensure_ascii=False)


def _listed(texts: Iterable[str]) -> str:
    return " ".join(json.dumps(text, ensure_ascii=False) for text in texts)


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False))
