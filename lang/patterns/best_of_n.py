"""Best of n with a judge: several candidates, each is judged, the best one stays.

    judge = user("How good is this answer, from 1 to 10?") + assistant(gen_int("score", minimum=1, maximum=10))
    best = best_of_n(s, assistant(gen("answer", temperature=0.8)), "answer", judge, "score", num_candidates=5)

Owns the comparison. The judge sees the candidate in its conversation; what it says stays on a fork of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .winners import append, check_number, ended_behind, read_all, take_over

if TYPE_CHECKING:
    from ..state import State
    from .winners import Part


@dataclass(frozen=True)
class Judged:
    """The best candidate, and all that were judged, the best first."""

    answer: Any
    score: Any
    ranking: tuple[tuple[Any, Any], ...]
    """(score, answer) of each."""


def best_of_n(
    s: State,
    candidate: Part,
    name: str,
    judge: Part,
    score: str = "score",
    *,
    num_candidates: int = 4,
) -> Judged:
    """Write candidates on forks, have each judged behind it, and go on with the one of the largest `score`; of equals the first.

    `candidate` sets the variable `name`, `judge` the variable `score` (a number, or whatever can be compared). A candidate without a
    value, or whose judgement has none, drops out. OutputError if all do.
    """
    check_number("num_candidates", num_candidates)
    with ended_behind() as opened:
        forks = s.fork(num_candidates)
        opened += forks
        for fork in forks:
            append(fork, candidate)
        written, _ = read_all(forks, name)
        trials = [forks[number].copy() for number, _ in written]
        opened += trials
        for trial in trials:
            append(trial, judge)
        scores, _ = read_all(trials, score)
        ranking = sorted(
            ((value, written[at]) for at, value in scores), key=lambda pair: pair[0], reverse=True
        )
        best, (number, answer) = ranking[0]
        take_over(s, forks[number])
    return Judged(answer, best, tuple((value, text) for value, (_, text) in ranking))
