"""Verdicts of the JSON Schema and pattern front ends on whole collections, against what was expected of them.

Run: .venv/bin/python tests/support/grammar_ratchet.py [--update] [--step N] [collection ...]
Prints a table for every collection, complete unless --step is given. --update writes the expected files (complete runs only).

A verdict is one of
    right    every valid instance is accepted, every invalid one refused
    order    so, but a valid instance has keys in another order than the schema declares them, and needs any_order
    layout   so, but flexible white space refuses a usual layout
    empty    the constraint is refused because nothing satisfies it, and no valid instance says otherwise
    refused  the constraint is refused, with another reason
    slow     no answer for the whole row within a minute
    over     a valid instance is refused
    under    an invalid instance is accepted
    crash    the process ended
No expected file may hold the last two.
An expected file names the members that are not right, by verdict. It holds no text of the collections.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from grammar_engine import Constraint, layouts, schema_constraint
from killable_process import KillableProcess, NoAnswerError
from shared_data import DATA, rows_of

from radixlm.errors import GrammarError
from radixlm.grammar.spec import Regex

EXPECTED = Path(__file__).resolve().parents[1] / "grammar" / "data" / "expected"
RANKS = {"right": 0, "order": 1, "layout": 1, "empty": 1, "refused": 2, "slow": 3, "over": 3, "under": 4, "crash": 4}  # fmt: skip
NEVER = ("under", "crash")
_ROW_DEADLINE_S = 60.0
_PROCESSES = 2

Verdicts = dict[str, str]


class _Schema:
    """One schema under the white space options, and in any order once that is asked for."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._compact = schema_constraint(schema)
        self._flexible = schema_constraint(schema, whitespace="flexible")
        self._any_order: Constraint | None = None

    def verdict_of_valid(self, value: Any) -> str:
        texts = layouts(value)
        if not self._compact.accepts(texts["compact"]):
            return "order" if self._in_any_order(texts["compact"]) else "over"
        return "right" if all(map(self._flexible.accepts, texts.values())) else "layout"

    def verdict_of_invalid(self, value: Any) -> str:
        texts = layouts(value)
        accepting = [self._compact, self._flexible]
        if self._any_order is not None:
            accepting.append(self._any_order)
        is_accepted = any(one.accepts(text) for one in accepting for text in texts.values())
        return "under" if is_accepted else "right"

    def _in_any_order(self, text: str) -> bool:
        if self._any_order is None:
            try:
                self._any_order = schema_constraint(self._schema, any_order=True)
            except GrammarError:
                return False
        return self._any_order.accepts(text)


def _schema_tests(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and verdict of each test of a row; valid ones first, so that an order found needed is held to the invalid ones too."""
    names = [f"valid {index}" for index in range(len(row["valid"]))]
    names += [f"invalid {index}" for index in range(len(row["invalid"]))]
    try:
        schema = _Schema(row["schema"])
    except GrammarError as error:
        verdict = _refusal(error, row["valid"])
        for name in names:
            yield name, "refused" if verdict == "over" and name.startswith("invalid") else verdict
        return
    found = [schema.verdict_of_valid(value) for value in row["valid"]]
    found += [schema.verdict_of_invalid(sample["data"]) for sample in row["invalid"]]
    yield from zip(names, found, strict=True)


def _refusal(error: GrammarError, valid: list[Any]) -> str:
    """The verdict of a refusal: that nothing satisfies a constraint is wrong where something does."""
    if error.keyword != "unsatisfiable":
        return "refused"
    return "over" if valid else "empty"


def schema_row(row: dict[str, Any]) -> Verdicts:
    """One verdict for a row: the worst of its tests."""
    found = (verdict for _, verdict in _schema_tests(row))
    return {str(row["id"]): max(found, key=RANKS.__getitem__, default="right")}


def suite_row(row: dict[str, Any], draft: str = "") -> Verdicts:
    """A verdict for each test of a group. Groups that need a remote document have none."""
    if row["remote"]:
        return {}
    if draft and isinstance(row["schema"], dict):
        row = {**row, "schema": {"$schema": draft, **row["schema"]}}
    return {f"{row['id']} {name}": verdict for name, verdict in _schema_tests(row)}


def pattern_row(row: dict[str, Any]) -> Verdicts:
    """One verdict for a pattern."""
    name = str(row["id"])
    try:
        constraint = Constraint(Regex(row["pattern"]))
    except GrammarError as error:
        return {name: _refusal(error, row["match"])}
    if any(constraint.accepts(text) for text in row["nomatch"]):
        return {name: "under"}
    # half a surrogate pair is no text: Python matches it, no output can hold it
    texts = [text for text in row["match"] if not re.search("[\ud800-\udfff]", text)]
    return {name: "right" if all(map(constraint.accepts, texts)) else "over"}


# collection -> its file, what gives the verdicts of a row, and every which row the tests take
COLLECTIONS: dict[str, tuple[Path, Callable[[dict[str, Any]], Verdicts], int]] = {
    "real_schemas": (DATA / "jsonschemabench_dev.jsonl", schema_row, 6),
    "suite_2020_12": (DATA / "jsts_draft2020-12.jsonl", suite_row, 1),
    "suite_7": (
        DATA / "jsts_draft7.jsonl",
        partial(suite_row, draft="http://json-schema.org/draft-07/schema#"),
        1,
    ),
    "patterns": (DATA / "regex_corpus.jsonl", pattern_row, 1),
}


def answer(question: tuple[str, dict[str, Any]], say: object) -> Verdicts:
    """The verdicts of one row of a collection."""
    name, row = question
    return COLLECTIONS[name][1](row)


def measure(name: str, step: int | None = None) -> Verdicts:
    """The verdicts of every `step`-th row of a collection (its own step by default), two rows at a time."""
    path, _, own_step = COLLECTIONS[name]
    rows = iter(rows_of(path)[:: step or own_step])
    found: Verdicts = {}
    with ThreadPoolExecutor(_PROCESSES) as threads:
        for part in threads.map(lambda _: _measured(name, rows), range(_PROCESSES)):
            found.update(part)
    return found


def _measured(name: str, rows: Iterator[dict[str, Any]]) -> Verdicts:
    """Takes rows until none is left."""
    process = KillableProcess(answer)
    found: Verdicts = {}
    try:
        for row in rows:
            try:
                found.update(process.ask((name, row), _ROW_DEADLINE_S))
            except NoAnswerError as error:
                found[str(row["id"])] = "slow" if "in time" in str(error) else "crash"
            except RuntimeError as error:
                raise AssertionError(f"{name}: row {row['id']}: {error}") from error
    finally:
        process.stop()
    return found


def expected(name: str) -> Verdicts:
    """What the expected file says of the members that are not right."""
    path = EXPECTED / f"{name}.json"
    by_verdict: dict[str, list[str]] = json.loads(path.read_text()) if path.exists() else {}
    return {member: verdict for verdict, members in by_verdict.items() for member in members}


def write_expected(name: str, found: Verdicts) -> None:
    """Make the expected file say what a complete run found. What must never be is no expectation: AssertionError."""
    by_verdict: dict[str, list[str]] = defaultdict(list)
    for member, verdict in sorted(found.items()):
        if verdict != "right":
            by_verdict[verdict].append(member)
    for verdict in NEVER:
        assert not by_verdict.get(verdict), f"{name}: {verdict}: {by_verdict[verdict]}"
    EXPECTED.mkdir(exist_ok=True)
    text = json.dumps(by_verdict, indent=0, ensure_ascii=False, sort_keys=True)
    (EXPECTED / f"{name}.json").write_text(text + "\n")


def differences(found: Verdicts, wanted: Verdicts) -> tuple[list[str], list[str]]:
    """Members that got worse than expected, and those that the expected file does not know as better yet."""
    worse: list[str] = []
    better: list[str] = []
    for member, verdict in found.items():
        before = wanted.get(member, "right")
        if verdict in NEVER or RANKS[verdict] > RANKS[before]:
            worse.append(f"{member}: {before} -> {verdict}")
        elif verdict != before:
            better.append(f"{member}: {before} -> {verdict}")
    return worse, better


def main() -> None:
    """The script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("collections", nargs="*", metavar="collection", help=", ".join(COLLECTIONS))
    parser.add_argument("--update", action="store_true", help="write the expected files")
    parser.add_argument("--step", type=int, default=1, help="every n-th row only")
    parser.add_argument("--out", type=Path, help="folder for all verdicts as JSON")
    options = parser.parse_args()
    if options.update and options.step != 1:
        sys.exit("expected files are written from complete runs only: leave out --step")
    for name in options.collections or COLLECTIONS:
        start = time.perf_counter()
        found = measure(name, options.step)
        counts = Counter(found.values())
        cells = "  ".join(f"{verdict} {counts[verdict]}" for verdict in RANKS)
        share = 100 * counts["right"] / max(len(found), 1)
        seconds = time.perf_counter() - start
        print(f"{name:<14} {len(found):5}  {cells}  ({share:.1f} % right, {seconds:.0f} s)")
        worse, better = differences(found, expected(name))
        if options.out:
            (options.out / f"{name}.json").write_text(json.dumps(found, indent=0))
        if options.update:
            write_expected(name, found)
        else:
            for line in worse:
                print("  worse: ", line)
            for line in better:
                print("  better:", line)


if __name__ == "__main__":
    main()
