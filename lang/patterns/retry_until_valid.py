"""Retry until valid: draw again until a check passes, without telling the model (for telling it: `gen(max_reasks=, check=)`).

    text = retry_until_valid(s, assistant(gen("haiku", temperature=0.9)), "haiku", lambda text: text.count("\\n") == 2, max_attempts=5)

Owns the bound. Attempts are made `num_at_once` at a time on forks; the state goes on with the first good one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import OutputError
from ..reasking import refusal_of
from .winners import append, check_number, close_all, take_over

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..state import State
    from .winners import Part


def retry_until_valid(
    s: State,
    attempt: Part,
    name: str,
    check: Callable[[Any], object] = lambda value: True,
    *,
    max_attempts: int = 5,
    num_at_once: int = 1,
) -> Any:
    """The first value of `name` that `check` accepts, by the rule of `gen(check=)`: it returns None or True.

    It refuses by a ValueError or AssertionError, by returning the reason as a text, or by anything else.

    An output that is no value of its type counts as refused. After `max_attempts` OutputError, with each refusal in a note.
    """
    check_number("max_attempts", max_attempts)
    check_number("num_at_once", num_at_once)
    refused: list[str] = []
    while len(refused) < max_attempts:
        forks = s.fork(min(num_at_once, max_attempts - len(refused)))
        try:
            for fork in forks:
                append(fork, attempt)
            for fork in forks:
                reason = _refusal(fork, name, check)
                if reason is None:
                    take_over(s, fork)
                    return s[name]
                refused.append(reason)
        finally:
            close_all(forks)
    error = OutputError(f"no valid {name!r} in {max_attempts} attempts", place=name)
    for number, reason in enumerate(refused):
        error.add_note(f"attempt {number}: {reason}")
    raise error


def _refusal(fork: State, name: str, check: Callable[[Any], object]) -> str | None:
    try:
        value = fork[name]
    except OutputError as error:
        return str(error)
    refusal = refusal_of(check, value)
    return None if refusal is None else f"the check refuses {value!r:.200}: {refusal[0]}"
