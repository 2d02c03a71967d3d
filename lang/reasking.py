"""Ask again when a value is refused: by the validator of its type, by a `check` of the program, or because max_tokens cut it.

Owns the rule what a refusal is, how the model is told of it, and the bound. Attempts are made on a copy of the branch, so the branch holds the
accepted output only (the last one, if none was accepted). Must not know messages' transport or how the copy is made.

    assistant: {"age": 212}
    user:      Your answer was refused: 'age' ... Answer again, corrected.
    assistant: {"age": 21}
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from ..errors import OutputError, ProgramError
from ..runtime.messages import RoleBegin, RoleEnd, SamplingParams, Text
from .beside import More, Outcome
from .plain_text import check_text
from .sampling import derive_seed
from .variable import Attempt

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..grammar.spec import Spec
    from ..runtime.messages import Finished, Output, Segment
    from .beside import MessageSoFar

    Check = Callable[[Any], object]
    ReaskPrompt = Callable[[Exception], str]

_MAX_REASKS = 100
_NUM_ERROR_CHARS = 1000


@dataclass(frozen=True)
class Reasking:
    """What a gen says of it: how often at most, and what is a refusal beside those of its type."""

    max_reasks: int
    check: Check | None
    prompt: ReaskPrompt
    decode: Callable[[Output], object] = field(repr=False)

    def __post_init__(self) -> None:
        is_number = isinstance(self.max_reasks, int) and not isinstance(self.max_reasks, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not is_number or not 0 <= self.max_reasks <= _MAX_REASKS:
            raise ProgramError(
                f"max_reasks={self.max_reasks!r} is not within 0 .. {_MAX_REASKS}",
                place="max_reasks",
            )
        for name, given in (("check", self.check), ("reask_prompt", self.prompt)):
            if given is not None and not callable(given):
                raise ProgramError(f"{name}={given!r:.80} is no function", place=name)

    def __call__(self) -> Attempts:
        """The attempts of one gen in one run."""
        return Attempts(self)


class Attempts:
    """The attempts of one gen in one run; a `Beside`."""

    def __init__(self, rule: Reasking) -> None:
        self._rule = rule
        self._made: list[Attempt] = []
        self._constraint: Spec | None = None
        self._sampling = SamplingParams()

    def begin(self, sampling: SamplingParams, constraint: Spec | None) -> More:
        """The first attempt, as the gen says. ProgramError if it has several outputs."""
        if sampling.n > 1:
            raise ProgramError(f"a gen with n={sampling.n} cannot be asked again", place="n")
        self._sampling, self._constraint = sampling, constraint
        return More((), constraint, sampling)

    def answered(self, finished: Finished, message: MessageSoFar) -> More | Outcome:
        """The value, or the next attempt, or after the last one why there is none."""
        output = finished.outputs[0]
        value, error = self._judged(output)
        self._made.append(Attempt(output.text, error, finished.usage))
        if error is None:
            return Outcome(output.text, value, attempts=tuple(self._made))
        if len(self._made) > self._rule.max_reasks:
            if self._rule.max_reasks:
                error.add_note(f"refused {len(self._made)} times, this is the last one")
            return Outcome(output.text, None, error, tuple(self._made))
        told = self._rule.prompt(error)
        check_text(told)
        return More(self._segments(told, message), self._constraint, self._next_sampling())

    def _judged(self, output: Output) -> tuple[object, Exception | None]:
        try:
            value = self._rule.decode(output)
        except OutputError as error:
            return None, error
        if self._rule.check is None:
            return value, None
        refusal = refusal_of(self._rule.check, value)
        return (value, None) if refusal is None else (None, _refused(output, *refusal))

    def _segments(self, told: str, message: MessageSoFar) -> list[Segment]:
        if message.role is None:
            return [Text(f"\n\n{told}\n")]
        asked = [RoleEnd(message.role), RoleBegin("user"), Text(told), RoleEnd("user")]
        begun = [Text(message.text)] if message.text else []
        return [*asked, RoleBegin(message.role), *begun]

    def _next_sampling(self) -> SamplingParams:
        sampling = self._sampling
        if sampling.seed is None:
            return sampling
        return msgspec.structs.replace(
            sampling, seed=derive_seed(sampling.seed, (), len(self._made))
        )


def refusal_of(check: Check, value: object) -> tuple[str, Exception | None] | None:
    """Why a check refuses a value, and what it raised if it did; None if it accepts it.

    It accepts by returning None or True. It refuses by raising a ValueError, AssertionError or OutputError, by returning the reason as a
    text, or by returning anything else.
    """
    try:
        verdict = check(value)
    except (ValueError, AssertionError, OutputError) as error:
        return str(error) or repr(error), error
    if verdict is None or verdict is True:
        return None
    return verdict if isinstance(verdict, str) else "it does not pass the check", None


def default_prompt(error: Exception) -> str:
    """What the model is told of a refusal."""
    reason = str(error)
    if isinstance(error, OutputError):
        at = f" (at {error.place})" if error.place else ""
        reason = f"{error.message}{at}"
    return f"Your answer was refused: {reason[:_NUM_ERROR_CHARS]}\nAnswer again, corrected."


def _refused(output: Output, reason: str, cause: Exception | None = None) -> OutputError:
    if isinstance(cause, OutputError):
        return cause
    error = OutputError(f"the check refuses {output.text[:200]!r}: {reason}")
    error.__cause__ = cause
    return error
