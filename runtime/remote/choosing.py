"""`select` on a server that does not score: by log-probabilities of an echoed prompt, by an enforced choice, or by what the model writes.

    echo       one call with all texts; the tokens that reach into the choice count, so constant and choice are tokenized as a whole
    enforced   one call at temperature 0 whose output must be a choice: it has 0.0, the others minus infinity
    written    one call at temperature 0, and the choice that its text begins with, as whole words

Owns the reading of these answers. Knows no server.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

from ...errors import OutputError, ProgramError, ServiceError
from .. import messages as m

_ALONE = "choices_method='unconditional_likelihood_normalized' needs log-probabilities, which {} does not tell"
_CHARACTERS_PER_TOKEN = 3  # of a choice, at least; a bound for what the model may write


def logprobs_of_echo(
    prompt: str, choice: str, told: Mapping[str, Any], server: str
) -> tuple[float, ...]:
    """The log-probabilities of the tokens that reach into `choice`, of an echoed `prompt` that ends with it."""
    logprobs: Any = told.get("logprobs")
    if not isinstance(logprobs, Mapping):
        raise ServiceError(f"{server} told no log-probabilities of the prompt")
    parts = cast("Mapping[str, Any]", logprobs)
    tokens = cast("list[str]", parts.get("tokens") or [])
    values = cast("list[float | None]", parts.get("token_logprobs") or [])
    starts = cast("list[int]", parts.get("text_offset") or [])
    if not tokens or not len(tokens) == len(values) == len(starts):
        raise ServiceError(f"{server} told no log-probabilities of the prompt")
    # counted from the end: a beginning-of-text token may stand before the prompt and move all places
    last = len(tokens[-1]) if not tokens[-1].startswith("bytes:") else 1
    num_generated = max(len(told.get("text") or prompt) - len(prompt), 0)
    end = starts[-1] + last - num_generated
    border = end - len(choice)
    ends = [after for _, after in pairwise(starts)] + [starts[-1] + last]
    placed = zip(values, starts, ends, strict=True)
    found = [value for value, start, stop in placed if stop > border and start < end]
    if not found:
        raise ServiceError(f"{server} told no log-probabilities of the choice {choice!r}")
    return tuple(0.0 if value is None else value for value in found)


def refuse_alone(choose: m.Score, has_text: bool, server: str) -> None:
    """ProgramError where choices are to be judged by themselves."""
    if choose.branch is None or not has_text:
        raise ProgramError(_ALONE.format(server), place="choices_method")


def enforced(choose: m.Score, text: str, usage: m.Usage, server: str) -> m.Scored:
    """The answer where the output was the choice."""
    if text not in choose.choices:
        raise OutputError(f"{server} wrote {text[:80]!r}, which is no choice", place="choices")
    return _won(choose, choose.choices.index(text), usage)


def written(choose: m.Score, text: str, usage: m.Usage, server: str) -> m.Scored:
    """The answer where the model was free: the longest choice that its text begins with, quotes and white space aside.

    The choice must end there as a word or number does: "Answer" does not begin with "A", nor 20 or 2.5 with 2.
    """
    plain = text.strip().lstrip("\"'`*( ")
    fits = [choice for choice in choose.choices if _begins_with(plain, choice.strip())]
    if not fits:
        raise OutputError(
            f"{server} cannot be held to choices, and wrote {text[:80]!r}, which begins with none",
            place="choices",
            hint="Ask in the prompt for one of the choices and nothing else",
        )
    return _won(choose, choose.choices.index(max(fits, key=len)), usage)


def _begins_with(text: str, choice: str) -> bool:
    if not choice or not text.startswith(choice):
        return False
    rest = text[len(choice) :]
    if choice[-1].isdigit() and re.match(r"[.,]\d", rest):
        return False
    return not (re.match(r"\w", choice[-1]) and re.match(r"\w", rest))


def max_tokens_of(choices: Sequence[str]) -> int:
    """Enough tokens for any of the choices."""
    return 8 + max(len(choice.encode()) for choice in choices) // _CHARACTERS_PER_TOKEN


def _won(choose: m.Score, index: int, usage: m.Usage) -> m.Scored:
    num = len(choose.choices)
    logprobs = tuple((0.0,) if i == index else (-math.inf,) for i in range(num))
    return m.Scored(choose.request, ((),) * num, logprobs, usage)
