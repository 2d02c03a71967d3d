"""The promise behind one gen or select: its value when it comes, its error if it fails.

Owns the life of a variable (open, then once settled or failed), the notes an error carries, and what is known of a result besides its
value. Must not know messages' transport, branches or how a thread or greenlet waits.

A variable knows the one before it on its branch: what follows a failure cannot be trusted, so it fails with the same error.
"""

from __future__ import annotations

import copy
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from ..errors import RadixError
from ..runtime.messages import Finished, Output, TokenLogprob, Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from .place import Place

_NUM_STATE_CHARS = 200


@dataclass(frozen=True, slots=True)
class Attempt:
    """One output of a gen that is asked again when its value is refused."""

    text: str
    error: Exception | None
    """Why it was refused; None of the good one."""
    usage: Usage


@dataclass(frozen=True, slots=True)
class Meta:
    """What is known of one gen or select besides its value."""

    name: str
    finish_reason: str
    """ "stop", "length" (max_tokens cut it) or "choice" (a select)."""
    usage: Usage
    token_ids: tuple[int, ...]
    """All sampled ids of the first output, or the ids of the chosen text."""
    outputs: tuple[Output, ...] = ()
    """All n outputs of a gen."""
    logprobs: tuple[TokenLogprob, ...] | None = None
    prompt_logprobs: tuple[TokenLogprob | None, ...] | None = None
    matched_stop: str | int | None = None
    seed: int = 0
    replaced: tuple[str, ...] = ()
    """Characters of the prompt that no token spells."""
    scores: dict[str, float] = field(default_factory=dict[str, float])
    """Of a select: each choice's score; at temperature 0 the largest won."""
    num_retries: int = 0
    """How often it was asked anew because a request had failed."""
    attempts: tuple[Attempt, ...] = ()
    """Of a gen with `max_reasks`: every output, the last one included; `usage` is that of all."""
    reasoning: str = ""
    """Of `separate_reasoning`: what the model thought."""

    @staticmethod
    def of(name: str, finished: Finished, num_retries: int = 0) -> Meta:
        """The meta data of a gen."""
        first = finished.outputs[0]
        return Meta(
            name=name,
            finish_reason=first.finish_reason,
            usage=finished.usage,
            token_ids=first.token_ids,
            outputs=finished.outputs,
            logprobs=first.logprobs,
            prompt_logprobs=finished.prompt_logprobs,
            matched_stop=first.matched_stop,
            seed=finished.seed,
            replaced=finished.replaced,
            num_retries=num_retries,
        )


@dataclass(slots=True, eq=False)
class Failure:
    """An error and whether the program has seen it."""

    error: BaseException
    seen: bool = False
    is_of_the_run: bool = False
    """The result was stopped because the run ended; the run's own error says why."""

    def throw(self) -> None:
        """Raise the error."""
        self.seen = True
        raise self.error.with_traceback(None)


class Variable:
    """One gen or select of a branch."""

    __slots__ = (
        "_cached",
        "_refusal",
        "before",
        "chosen",
        "decode",
        "done",
        "failure",
        "is_json",
        "is_refusal_met",
        "meta",
        "name",
        "num_outputs",
        "num_retries",
        "place",
        "request",
        "streamed",
        "turn",
    )

    def __init__(
        self,
        name: str,
        place: Place,
        before: Variable | None,
        decode: Callable[[Output], object],
        num_outputs: int,
        is_json: bool = False,
    ) -> None:
        self.name = name
        self.place = place
        self.before = before
        self.decode = decode
        self.num_outputs = num_outputs
        self.request = ""  # the wire's name once sent
        self.done: Future[None] = Future()
        self.failure: Failure | None = None
        self.meta: Meta | None = None
        self.chosen: str | None = None
        self.is_json = is_json  # of a gen: its text is constrained to JSON
        self.streamed: list[str] | None = (
            None  # of a live run: new text of the first output as it came
        )
        self.turn: Future[None] | None = (
            None  # of a result that needs the program's thread: kept when there is something to do
        )
        self.num_retries = 0
        self.is_refusal_met = False  # the program itself has met the error of its value
        self._cached: list[Any] = []
        self._refusal: Exception | None = None

    @property
    def text(self) -> str:
        """The text on the branch: the choice, or the first output. Only once settled."""
        if self.chosen is not None:
            return self.chosen
        return self.meta.outputs[0].text if self.meta is not None else ""

    def value(self) -> object:
        """The value to read: decoded, a list if n > 1. Only once done; raises what made it fail."""
        if self.failure is not None:
            self.failure.throw()
        refusal = self.refusal()
        if refusal is not None:
            raise refusal
        return self._cached[0]

    def refusal(self) -> Exception | None:
        """Why the result is no value of its type, if so. Only once done and not failed."""
        if not self._cached and self._refusal is None:
            try:
                self._cached.append(self._decoded())
            except Exception as error:  # noqa: BLE001  raised where the value is read
                error.add_note(f"reading {self.name!r}, set at {self.place}")
                self._refusal = error
        return self._refusal

    def settle(self, meta: Meta, chosen: str | None = None) -> None:
        """The result came. It counts as failed if what stood before it failed."""
        if self.done.done():
            return
        self.meta, self.chosen = meta, chosen
        if self.before is not None:
            self.failure = self.before.failure
        self._be_done()

    def fail(self, failure: Failure) -> None:
        """No result will come. An error before it on the branch is the cause that counts."""
        if self.done.done():
            return
        earlier = self.before.failure if self.before is not None else None
        self.failure = earlier or failure
        self._be_done()

    def judge(self, value: object, refusal: Exception | None) -> None:
        """The value is known before the result is settled, or why there is none."""
        if refusal is None:
            self._cached.append(value)
        else:
            refusal.add_note(f"reading {self.name!r}, set at {self.place}")
            self._refusal = refusal

    def pending_before(self) -> list[Variable]:
        """Those before it on the branch that need the program's thread and are not done, oldest first."""
        found: list[Variable] = []
        before = self.before
        while before is not None and not before.done.done():
            if before.turn is not None:
                found.append(before)
            before = before.before
        return found[::-1]

    def ring(self) -> None:
        """Who waits for it has something to do."""
        if self.turn is not None and not self.turn.done():
            self.turn.set_result(None)

    def _be_done(self) -> None:
        self.done.set_result(None)
        self.ring()

    def _decoded(self) -> object:
        if self.chosen is not None:
            return self.chosen
        outputs = self.meta.outputs if self.meta is not None else ()
        values = [self.decode(output) for output in outputs]
        return values if self.num_outputs > 1 else values[0]


@dataclass(frozen=True, slots=True)
class Known:
    """A variable that the program set itself, or a join gathered."""

    value: object


@dataclass(frozen=True, slots=True)
class Span:
    """What stands in a branch's own pieces from `start` to `end` (None: the end), the value of a `var_scope`."""

    pieces: list[Any]
    start: int
    end: int | None

    def until_now(self) -> Span:
        """The same span, closed where the branch stands."""
        return Span(self.pieces, self.start, len(self.pieces) if self.end is None else self.end)


@dataclass(frozen=True, slots=True)
class Derived:
    """Something known of a gen besides its value, as a variable of its own."""

    variable: Variable
    read: Callable[[Meta], object]

    def value(self) -> object:
        """Only once the gen is done; raises what made it fail."""
        if self.variable.failure is not None:
            self.variable.failure.throw()
        return self.read(self.variable.meta) if self.variable.meta is not None else None


Readable = Variable | Known | Span | Derived


def explain(error: BaseException, doing: str, place: Place, text_so_far: str) -> BaseException:
    """A copy of `error` with notes: what was done, on which line of the program, and the end of the text so far.

    A copy, because a backend may fail many requests with one exception object.
    """
    own = _copy_of(error)
    own.add_note(f"{doing} at {place}")
    cut = "..." if len(text_so_far) > _NUM_STATE_CHARS else ""
    own.add_note(f"text so far: {cut}{text_so_far[-_NUM_STATE_CHARS:]!r}")
    return own


def _copy_of(error: BaseException) -> BaseException:
    if not isinstance(error, RadixError):
        return error
    own = copy.copy(error)
    own.__cause__ = error.__cause__
    notes = cast("list[str]", getattr(error, "__notes__", []))
    own.__notes__ = list(notes)
    return own
