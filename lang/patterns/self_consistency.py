"""Self-consistency: many attempts, the answer that most of them agree on (Wang et al. 2022, arXiv:2203.11171).

    s += question
    vote = self_consistency(s, "Reasoning:" + gen("why", temperature=0.7, stop="\\n") + "\\nAnswer:" + gen_int("answer"), "answer", num_attempts=20)
    vote.answer, vote.counts

Owns the vote. Attempts need a temperature above 0, or they are all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .winners import append, check_number, ended_behind, read_all, take_over

if TYPE_CHECKING:
    from ...errors import OutputError
    from ..state import State
    from .winners import Part


@dataclass(frozen=True)
class Vote:
    """How the attempts voted."""

    answer: Any
    counts: Counter[Hashable]
    """Votes by answer, as `key` has it."""
    failed: tuple[OutputError, ...]
    """Attempts without a value."""


def self_consistency(
    s: State,
    attempt: Part,
    name: str,
    *,
    num_attempts: int = 10,
    key: Callable[[Any], Hashable] = lambda answer: answer,
) -> Vote:
    """Make attempts on forks of the state and take the answer `name` that most agree on; of equals the first that came up.

    The state goes on with the first attempt that gave it. `key` says which answers are the same. OutputError if no attempt has a value.
    """
    check_number("num_attempts", num_attempts)
    with ended_behind() as opened:
        forks = s.fork(num_attempts)
        opened += forks
        for fork in forks:
            append(fork, attempt)
        values, failed = read_all(forks, name)
        counts: Counter[Hashable] = Counter(key(value) for _, value in values)
        winner = counts.most_common(1)[0][0]
        number, answer = next((n, value) for n, value in values if key(value) == winner)
        take_over(s, forks[number])
    return Vote(answer, counts, tuple(failed))
