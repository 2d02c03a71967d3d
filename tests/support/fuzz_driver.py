"""Runs fuzz cases in processes of their own, with a deadline each, and makes what fails small.

Owns the deadlines and the shrinking. Knows nothing of what is generated or checked. A case that ends its process or does
not come back is a fault like any other.
"""

from __future__ import annotations

import json
import random
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
from fuzz_checks import Fault, check
from fuzz_inputs import fuzz_spec
from killable_process import KillableProcess, NoAnswerError

from radixlm.grammar.spec import JsonSchema, Regex, Spec

COMPILE_DEADLINE_S = 8.0  # an engine's compile worker ends a compile sooner
MATCH_DEADLINE_S = 20.0  # nothing ends a match but its own bounds
_SHRINK_S = 20.0
SLOW = "too slow to compile"


@dataclass(frozen=True)
class Finding:
    """One fault: what it is, where it arose, and the constraint that shows it."""

    what: str
    place: str
    detail: str
    kind: str
    seed: int
    spec: Spec

    @property
    def signature(self) -> str:
        """The same for faults that are likely one."""
        return f"{self.kind}: {self.what}" + (f" at {self.place}" if self.place else "")


Answer = tuple[str, str, str]  # outcome or fault, place in the code, detail
_COMPILED = ("compiled", "", "")


def answer(question: tuple[Spec, int], say: Callable[[Answer], None]) -> Answer:
    """What became of a constraint; says when it is compiled."""
    spec, seed = question
    try:
        return check(spec, random.Random(seed), lambda: say(_COMPILED)), "", ""
    except Fault as fault:
        return f"FAULT {fault.kind}", "", str(fault)[:400]
    except BaseException as error:  # noqa: BLE001 - every way to fail is what is looked for
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "/grammar/" in f.filename and "/tests/" not in f.filename]  # fmt: skip
        place = f"{frames[-1].filename.rpartition('/grammar/')[2]}:{frames[-1].name}" if frames else "?"  # fmt: skip
        return f"FAULT {type(error).__name__}", place, str(error)[:400]


def _asked(process: KillableProcess, spec: Spec, seed: int) -> Answer:
    is_compiled = False
    try:
        found = process.ask((spec, seed), COMPILE_DEADLINE_S)
        if found == _COMPILED:
            is_compiled = True
            found = process.receive(MATCH_DEADLINE_S)
    except NoAnswerError as error:
        if "in time" in str(error) and not is_compiled:
            return SLOW, "", ""
        return f"FAULT {error}", "matching" if is_compiled else "compiling", ""
    return found


def fuzz(
    kinds: list[str], first_seed: int, seconds: float, pool: list[Any]
) -> Iterator[tuple[str, Finding | None]]:
    """Outcomes of cases of all kinds in turn until the time is over; faults with their finding."""
    process = KillableProcess(answer)
    end = time.monotonic() + seconds
    seed = first_seed
    try:
        while time.monotonic() < end:
            for kind in kinds:
                spec = fuzz_spec(kind, seed, pool)
                outcome, place, detail = _asked(process, spec, seed)
                is_fault = outcome.startswith("FAULT")
                yield (
                    ("fault" if is_fault else outcome),
                    Finding(outcome[6:], place, detail, kind, seed, spec) if is_fault else None,
                )
                if time.monotonic() >= end:
                    break
            seed += 1
    finally:
        process.stop()


def shrink(finding: Finding) -> Finding:
    """A smaller constraint with the same fault, as far as half a minute of trying goes."""
    process = KillableProcess(answer)
    best = finding
    end = time.monotonic() + _SHRINK_S
    try:
        is_smaller = True
        while is_smaller and time.monotonic() < end:
            is_smaller = False
            for spec in _smaller(best.spec):
                if time.monotonic() >= end:
                    break
                for seed in (best.seed, best.seed + 1, best.seed + 2):
                    if time.monotonic() >= end:
                        break
                    outcome, place, detail = _asked(process, spec, seed)
                    if outcome[6:] == finding.what and place == finding.place:
                        best = Finding(finding.what, place, detail, finding.kind, seed, spec)
                        is_smaller = True
                        break
                if is_smaller:
                    break
    finally:
        process.stop()
    return best


def _smaller(spec: Spec) -> Iterator[Spec]:
    if isinstance(spec, Regex):
        for size in (16, 8, 4, 2, 1):
            for at in range(0, len(spec.pattern), size):
                yield Regex(spec.pattern[:at] + spec.pattern[at + size :])
    elif isinstance(spec, JsonSchema):
        for name, plain in (("any_order", False), ("best_effort", False), ("whitespace", "compact")):  # fmt: skip
            if getattr(spec, name) != plain:
                yield msgspec.structs.replace(spec, **{name: plain})
        try:
            tree = json.loads(spec.text)
        except (ValueError, RecursionError):
            return
        for smaller in _smaller_trees(tree):
            yield msgspec.structs.replace(spec, text=json.dumps(smaller))


def _smaller_trees(tree: Any) -> Iterator[Any]:
    """The tree without one part, or one of its parts instead of it; large steps first."""
    if isinstance(tree, dict):
        yield from (value for value in tree.values() if isinstance(value, (dict, bool)))
        yield from ({k: v for k, v in tree.items() if k != key} for key in tree)
        for key, value in tree.items():
            yield from ({**tree, key: smaller} for smaller in _smaller_trees(value))
    elif isinstance(tree, list):
        yield from (tree[:index] + tree[index + 1 :] for index in range(len(tree)))
        for index, value in enumerate(tree):
            yield from (
                [*tree[:index], smaller, *tree[index + 1 :]] for smaller in _smaller_trees(value)
            )
