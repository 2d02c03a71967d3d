"""`select`: append the choice that the model finds most likely.

Owns the Select node and the three ways to compare choices. The backend gives each choice's tokens and their log-probabilities as the
continuation of the branch, constant text and choice tokenized as a whole; nothing is sampled. Let l(t) be a token's log-probability:

    token_length_normalized               mean of l over the choice's tokens; the largest mean wins
    greedy_token_selection                position by position, the choices whose token has the largest l stay; a choice that has ended
                                          competes with its mean. The score is the number of positions survived, then the mean decides
    unconditional_likelihood_normalized   mean of l(t | text) - l(t | nothing): corrects for choices that are common anywhere
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from ...errors import ProgramError, SamplingError
from ..constraints import check_choices
from ..ir import Node
from .gen import checked_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...runtime.messages import Scored
    from ..ir import BranchOps

ChoicesMethod = Literal[
    "token_length_normalized", "greedy_token_selection", "unconditional_likelihood_normalized"
]
token_length_normalized: ChoicesMethod = "token_length_normalized"
greedy_token_selection: ChoicesMethod = "greedy_token_selection"
unconditional_likelihood_normalized: ChoicesMethod = "unconditional_likelihood_normalized"


@dataclass(frozen=True)
class Select(Node):
    """One of `choices`, by likelihood. At temperature 0 the best; above, drawn from softmax(score / temperature)."""

    name: str | None
    choices: tuple[str, ...]
    method: ChoicesMethod
    temperature: float

    def submit(self, branch: BranchOps) -> None:
        """Ask the branch to score the choices and append one."""
        alone = self.method == "unconditional_likelihood_normalized"
        branch.choose(self.name, self.choices, self.decide, unconditional=alone)

    def decide(
        self, scored: Scored, alone: Scored | None, seed: int | None
    ) -> tuple[int, tuple[float, ...]]:
        """The index taken and each choice's score."""
        if self.method == "greedy_token_selection":
            scores = greedy_scores(scored.token_ids, scored.logprobs)
        elif alone is not None:
            pairs = zip(scored.logprobs, alone.logprobs, strict=True)
            scores = tuple((sum(a) - sum(b)) / max(len(a), 1) for a, b in pairs)
        else:
            scores = tuple(mean(each) for each in scored.logprobs)
        best = max(range(len(scores)), key=scores.__getitem__)
        if self.temperature == 0:
            return best, scores
        weights = [math.exp((score - scores[best]) / self.temperature) for score in scores]
        return random.Random(seed).choices(range(len(scores)), weights)[0], scores


def select(
    name: str | None = None,
    choices: Sequence[str] = (),
    temperature: float = 0.0,
    choices_method: ChoicesMethod = "token_length_normalized",
) -> Select:
    """Append the likeliest of `choices` and keep it in `s[name]`; `s.get_meta(name).scores` has each choice's score.

    Raises ProgramError for an empty list, an empty choice or an unknown method, SamplingError for a temperature below 0.
    """
    if choices_method not in get_args(ChoicesMethod):
        known = ", ".join(get_args(ChoicesMethod))
        raise ProgramError(
            f"unknown choices_method {choices_method!r}",
            place="choices_method",
            hint=f"Known: {known}",
        )
    if not isinstance(temperature, int | float) or not 0.0 <= temperature <= 100.0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SamplingError(
            f"temperature={temperature!r} is not within 0.0 .. 100.0", place="temperature"
        )
    return Select(checked_name(name), check_choices(choices), choices_method, temperature)


def mean(logprobs: Sequence[float]) -> float:
    """The mean, 0.0 of nothing."""
    return sum(logprobs) / len(logprobs) if logprobs else 0.0


def greedy_scores(
    token_ids: Sequence[Sequence[int]], logprobs: Sequence[Sequence[float]]
) -> tuple[float, ...]:
    """Positions survived in token-by-token comparison, plus the mean's exp (below 1 apart from certainty) to order equals."""
    survived = [0] * len(token_ids)
    alive = list(range(len(token_ids)))
    for position in range(max(map(len, token_ids), default=0)):
        value = {
            i: logprobs[i][position] if position < len(token_ids[i]) else mean(logprobs[i])
            for i in alive
        }
        best = max(value.values())
        alive = [i for i in alive if value[i] >= best]
        for i in alive:
            survived[i] = position + 1
        if len(alive) == 1:
            break
    return tuple(
        count + math.exp(mean(values)) for count, values in zip(survived, logprobs, strict=True)
    )
