"""Tables of the command line: a program's state, a trace, a bench, an examination, an explained constraint, a
checked text; each as text or as JSON.

Owns their looks, nothing of what they say; the words about constraints stand in `grammar.explain.wording`.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from radixlm.errors import ConfigError, GrammarError, OutputError

if TYPE_CHECKING:
    from radixlm.bench import Report
    from radixlm.bench_programs import ProgramRow
    from radixlm.doctor import Finding
    from radixlm.grammar.constraint_file import ConstraintOptions
    from radixlm.grammar.explain import Explanation, Verdict
    from radixlm.lang.state import State
    from radixlm.lang.trace import TracingBackend
    from radixlm.runtime.messages import Usage
    from radixlm.runtime.tokenizer import Tokenizer

_INK = {"text": "", "role": "cyan", "gen": "green", "select": "yellow"}
_WIDTH_OF_FILE = 160  # characters: a table that goes into a file keeps all its columns
_UNUSABLE = 2  # the exit status of a check whose constraint or text cannot be used


def print_state(state: State, *, as_json: bool) -> None:
    """A finished state: its messages (or text), its variables, the value its function returned, and usage.

    A variable that is no value of its type is shown as null; when all is shown, its error is raised.
    """
    refused: list[OutputError] = []
    values = {name: _value_of(state, name, refused) for name in state.keys()}  # noqa: SIM118  a state is no dict
    returned = jsonable(state.ret_value)
    usage = _counts_of(state.usage())
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


def show_trace(
    trace: TracingBackend,
    *,
    as_text: bool,
    html: Path | None,
    svg: Path | None,
    as_json: bool = False,
) -> None:
    """The tree of prefixes, on the terminal and as files, as asked."""
    if as_text:
        print_trace(trace)
    if as_json:
        lines = [dataclasses.asdict(line) for line in trace.lines()]
        _print_json({"lines": lines, "usage": _counts_of(trace.usage())})
    for path, draw in ((html, trace.html), (svg, trace.svg)):
        if path is not None:
            path.write_text(draw(), encoding="utf-8")


def print_trace(trace: TracingBackend) -> None:
    """The tree of prefixes, in colours on a terminal. Lines are not broken."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    console.print()
    for line in trace.lines():
        counts = f"  [{line.counts}]" if line.counts else ""
        console.print(
            Text.assemble((line.stem, "dim"), (line.label, _INK[line.kind]), (counts, "dim"))
        )
    console.print(trace.summary(), markup=False)


def _counts_of(usage: Usage) -> dict[str, int]:
    return {name: getattr(usage, name) for name in usage.__struct_fields__}


def print_programs(rows: Iterable[ProgramRow], *, as_json: bool) -> None:
    """A line of JSON for each measurement as it comes, or one table of all; a bar that says what is measured where there is a terminal."""
    if as_json:
        for row in rows:
            _print_json(row.as_dict())
            sys.stdout.flush()
        return
    from rich.console import Console
    from rich.table import Table

    console = Console(stderr=True)
    found: list[ProgramRow] = []
    with console.status("measuring"):
        found += rows
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in _PROGRAM_COLUMNS:
        is_text = column in _PROGRAM_COLUMNS[:1]
        table.add_column(column, justify="left" if is_text else "right", no_wrap=is_text)
    whole = found[0] if found else None
    for row in found:
        whole = row if not row.without else whole
        table.add_row(*_program_cells(row, whole or row), style="" if not row.without else "dim")
    width = None if sys.stdout.isatty() else _WIDTH_OF_FILE
    out = Console(highlight=False, width=width)
    out.print(table)
    out.print(_PROGRAM_LEGEND, style="dim")


_PROGRAM_LEGEND = """
Below each workload: the same without one part. whole is x: programs/s of the whole in multiples of this row's. computed, x fewest: tokens through the
model, and in multiples of the fewest that any cache and order need. of best hits: hit rate over the best possible. of clairvoyant: computed by a cache of
this size that knows the future and takes requests in order, over ours. fcfs: a plain queue. texts: "others" where they differ from the whole's.
Times of --quick are of one cold run: read the counts."""
_PROGRAM_COLUMNS = (
    "workload", "programs/s", "whole is x", "p50 s", "computed", "x fewest", "of best hits", "of clairvoyant", "forced",
    "requests", "steps", "texts",
)  # fmt: skip


def _program_cells(row: ProgramRow, whole: ProgramRow) -> list[str]:
    speed = f"{whole.programs_per_s / row.programs_per_s:.2f}" if row.without else ""
    return [
        row.title,
        f"{row.programs_per_s:.2f}", speed, f"{row.latency_p50_s:.2f}", str(row.computed), f"{row.ratio:.3f}",
        f"{row.hit_share:.1%}", f"{row.clairvoyant / row.computed:.2f}", str(row.forced), str(row.requests), str(row.steps),
        "" if row.same_texts else "others",
    ]  # fmt: skip


def print_bench(report: Report, *, as_json: bool) -> None:
    """The rows by group, and the machine."""
    if as_json:
        _print_json(dataclasses.asdict(report))
        return
    for group, rows in groupby(report.rows, key=lambda row: row.group):
        print(group)
        for row in rows:
            remark = f"  ({row.remark})" if row.remark else ""
            digits = 1 if row.value >= 10 else 2
            print(f"  {row.name:<32}{row.value:>10.{digits}f} {row.unit}{remark}")
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


def explain_constraint(
    file: Path | None, options: ConstraintOptions, model: str | None, *, as_json: bool
) -> bool:
    """Print what a constraint means, in tokens of `model` or in bytes, or why it is refused. Returns whether it is not refused."""
    from radixlm.grammar.constraint_file import read_constraint
    from radixlm.grammar.explain import explain, refusal
    from radixlm.grammar.explain.wording import explanation_lines, refusal_lines
    from radixlm.grammar.vocabulary import Vocabulary

    spec = read_constraint(file, options)
    tokenizer = None if model is None else _tokenizer(model)
    vocabulary = tokenizer and Vocabulary(tokenizer.token_bytes, tokenizer.eos_token_ids)
    try:
        found = explain(spec, vocabulary)
    except GrammarError as error:
        refused = refusal(spec, error)
        _print_report({"refused": refused}, refusal_lines(refused), as_json=as_json)
        return False
    lines = explanation_lines(found, unit="bytes" if tokenizer is None else "tokens")
    _print_report({"refused": None, **_fields(found)}, lines, as_json=as_json)
    return True


def check_against(
    file: Path | None,
    options: ConstraintOptions,
    text_file: Path | None,
    model: str | None,
    *,
    as_json: bool,
) -> int:
    """Print whether a text (of a file, or standard input) is an output of a constraint. Returns 0 if it is, 1 if not, 2 if a file is unusable.

    JSON may have any layout and order that the options do not exclude.
    """
    from radixlm.grammar.constraint_file import loosened, read_constraint
    from radixlm.grammar.explain import check_text, refusal
    from radixlm.grammar.explain.wording import refusal_lines, verdict_lines

    try:
        spec = loosened(read_constraint(file, options), options)
        text = _read_text(text_file)
    except ConfigError as error:
        print(f"radixlm: {error}", file=sys.stderr)
        return _UNUSABLE
    try:
        verdict = check_text(spec, text)
    except GrammarError as error:
        refused = refusal(spec, error)
        _print_report({"refused": refused}, refusal_lines(refused), as_json=as_json)
        return _UNUSABLE
    num_tokens = None if model is None else len(_tokenizer(model).encode(text).ids)
    lines = verdict_lines(verdict, num_tokens)
    _print_report({**_fields(verdict), "num_tokens": num_tokens}, lines, as_json=as_json)
    return 0 if verdict.outcome == "accepted" else 1


def _read_text(path: Path | None) -> str:
    """A text with its line breaks as they are. ConfigError when it cannot be read."""
    try:
        data = sys.stdin.buffer.read() if path is None else path.read_bytes()
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"it is not UTF-8: {error}"
        place = "standard input" if path is None else str(path)
        raise ConfigError(f"the text cannot be read: {reason}", place=place) from None


def _tokenizer(model: str) -> Tokenizer:
    from radixlm.runtime.config import EngineConfig
    from radixlm.runtime.model_files import resolve_model
    from radixlm.runtime.tokenizer import load_tokenizer

    return load_tokenizer(resolve_model(model, Path(EngineConfig.create().cache_dir)))


def _print_report(value: dict[str, Any], lines: Iterable[str], *, as_json: bool) -> None:
    if as_json:
        _print_json(jsonable(value))
        return
    for line in lines:
        print(line)


def _fields(report: Explanation | Verdict) -> dict[str, Any]:
    return dataclasses.asdict(report)


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


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False))
