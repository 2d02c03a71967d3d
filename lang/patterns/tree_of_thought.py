"""Tree of thought: every line of thought goes on in several ways, a judge values them, the best ones are kept (Yao et al. 2023, arXiv:2305.10601).

    tree_of_thought(
        s,
        lambda depth: user(f"Step {depth + 1}?") + assistant(gen("step", temperature=0.8, stop="\\n")),
        user("How promising is this, from 1 to 10?") + assistant(gen_int("value", minimum=1, maximum=10)), "value",
        depth=3, num_ways=3, num_kept=3,
    )

Owns the search, breadth first with a beam. Lines share their beginnings, so most of the tree is computed once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .winners import append, check_number, ended_behind, read_all, take_over

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..state import State
    from .winners import Part


@dataclass(frozen=True)
class Thought:
    """A line of thought."""

    states: tuple[State, ...]
    """Its branches from depth 0 on, each of which goes on from the one before; ended, they stay readable."""
    path: tuple[int, ...]
    """Which way was taken at each depth."""
    value: Any
    """What the judge said of it in the end."""


def tree_of_thought(
    s: State,
    step: Callable[[int], Part],
    judge: Part,
    value: str = "value",
    *,
    depth: int = 3,
    num_ways: int = 3,
    num_kept: int = 1,
) -> list[Thought]:
    """Search: at each depth every kept line goes on in `num_ways` ways (`step(depth)`, from 0), `judge` sets `value`, the best are kept.

    The state goes on with the best line. The lines kept at the end, the best first; of equals the earlier way. A way whose judgement is
    no value drops out; OutputError if all of a depth do.
    """
    for name, number in (("depth", depth), ("num_ways", num_ways), ("num_kept", num_kept)):
        check_number(name, number)
    kept = [Thought((), (), None)]
    with ended_behind() as opened:
        for level in range(depth):
            lines: list[tuple[tuple[State, ...], tuple[int, ...]]] = []
            for thought in kept:
                ways = (thought.states[-1] if thought.states else s).fork(num_ways)
                opened += ways
                for number, way in enumerate(ways):
                    append(way, step(level))
                    lines.append(((*thought.states, way), (*thought.path, number)))
            trials = [states[-1].copy() for states, _ in lines]
            opened += trials
            for trial in trials:
                append(trial, judge)
            values, _ = read_all(trials, value)
            found = [Thought(*lines[at], worth) for at, worth in values]
            kept = sorted(found, key=lambda thought: thought.value, reverse=True)[:num_kept]
        for state in kept[0].states:
            take_over(s, state)
    return kept
