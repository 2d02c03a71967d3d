"""One sequence on its way: a cursor that catches up with its tokens. Owns the state machine and the counters of one sample.

    num_computed .. num_tokens     the tokens whose K/V is still to be computed: prompt, chunk, forced span, sampled token alike

There are no phases. When the cursor reaches the end, a token is sampled and the end moves. A preempted request sets its
cursor back to what the cache still holds and catches up again; its tokens are never rewritten, so the continuation is exact.

    WAITING_GRAMMAR --> QUEUED --> RUNNING <--> PREEMPTED        from each of them --> FINISHED, once
    (a request without a grammar, or with a loaded one, starts as QUEUED)

Knows nothing of the scheduler's lists, of other requests, or of how tokens are sampled.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from ..errors import InvariantError
from .constraint import Constraint
from .messages import SamplingParams, TokenLogprob
from .stop_strings import StopStrings
from .token_buffer import TokenBuffer
from .token_counts import TokenCounts

if TYPE_CHECKING:
    from ..radix_cache.cache import Lease
    from .submission import Submission


class RequestStatus(Enum):
    """Where a request stands."""

    WAITING_GRAMMAR = "waiting_grammar"  # its grammar is not loaded yet
    QUEUED = "queued"  # ready, holds no pages
    RUNNING = "running"  # holds a lease on pages
    PREEMPTED = "preempted"  # ready again, gave its pages back
    FINISHED = "finished"


class FinishReason(Enum):
    """Why a request ended."""

    STOP = "stop"  # EOS, a stop token or string, or a complete grammar
    LENGTH = "length"  # max_tokens, the context, or a page pool that holds no more
    ABORT = "abort"
    ERROR = "error"


LEGAL_TRANSITIONS: dict[RequestStatus, frozenset[RequestStatus]] = {
    RequestStatus.WAITING_GRAMMAR: frozenset({RequestStatus.QUEUED, RequestStatus.FINISHED}),
    RequestStatus.QUEUED: frozenset({RequestStatus.RUNNING, RequestStatus.FINISHED}),
    RequestStatus.RUNNING: frozenset({RequestStatus.PREEMPTED, RequestStatus.FINISHED}),
    RequestStatus.PREEMPTED: frozenset({RequestStatus.RUNNING, RequestStatus.FINISHED}),
    RequestStatus.FINISHED: frozenset(),
}


@dataclass(slots=True)
class Ending:
    """How a sample ends, decided before the request leaves: tokens may still have to be scored."""

    reason: FinishReason
    matched_stop: bytes | int | None = None
    cut_byte: int = -1  # kept bytes of the output when a stop cut it, else -1
    grammar_complete: bool | None = None  # under a grammar: is the kept text a sentence of it


@dataclass(slots=True, eq=False)
class Request:
    """One sample of a submission. `key` is unique within the engine; `choice` is the sample's index, 0 .. n-1."""

    key: int
    submission: Submission
    choice: int
    tokens: TokenBuffer  # prompt, then output
    num_prompt: int
    max_new_tokens: int  # output budget: max_tokens, or less where the context ends
    sampling: SamplingParams
    arrival_step: int
    status: RequestStatus = RequestStatus.QUEUED
    constraint: Constraint | None = None
    stop_strings: StopStrings | None = None
    counts: TokenCounts | None = None
    num_computed: int = 0
    num_forced: int = 0
    num_output_bytes: int = 0
    tail_bytes: bytes = b""  # the last three bytes of the output, to see an open code point
    pending_scores: deque[int] = field(
        default_factory=deque[int]
    )  # positions whose logprob is still asked, ascending
    logprobs: list[TokenLogprob | None] | None = (
        None  # of the output, None where still pending; None: not asked
    )
    num_sent: int = 0  # output tokens already streamed
    ending: Ending | None = None
    lease: Lease | None = None
    slot: int = -1  # row in the per-sequence tables while running
    num_tabled_pages: int = 0  # pages of the lease that stand in the plan builder's table
    is_streaming: bool = False  # the cursor caught up once since the lease was opened

    def move_to(self, status: RequestStatus) -> None:
        """Change the status; InvariantError when the step is not legal."""
        if status not in LEGAL_TRANSITIONS[self.status]:
            raise InvariantError(
                f"request {self.submission.name!r} cannot go from {self.status.value} to {status.value}"
            )
        self.status = status

    @property
    def num_tokens(self) -> int:
        """Prompt and output tokens known so far."""
        return self.tokens.length

    @property
    def num_output(self) -> int:
        """Output tokens so far, forced ones included."""
        return self.tokens.length - self.num_prompt

    @property
    def num_remaining(self) -> int:
        """Output tokens that may still come."""
        return self.max_new_tokens + self.num_prompt - self.tokens.length

    @property
    def compute_target(self) -> int:
        """Tokens that have to be computed: all, or, once the ending is decided, those that scores still need.

        The logits of position p - 1 score the token at p, so a pending score at p asks for p computed tokens. With
        max_tokens=0 and no scores the whole prompt is computed, so that it stands in the cache afterwards; with scores its last token
        is not: of the choices of a select only one goes on.
        """
        if self.ending is None:
            return self.num_tokens
        if self.max_new_tokens == 0 and self.sampling.prompt_logprobs is None:
            return self.num_prompt
        return self.pending_scores[-1] if self.pending_scores else 0

    @property
    def num_pending(self) -> int:
        """Tokens still to be computed before the next sample (or before the end)."""
        target = self.tokens.length if self.ending is None else self.compute_target
        return max(0, target - self.num_computed)

    @property
    def max_match(self) -> int:
        """Most tokens a cache hit may cover: at least one token is computed where logits are needed."""
        if self.pending_scores:
            return self.pending_scores[0] - 1
        return self.num_tokens if self.ending is not None else self.num_tokens - 1

    @property
    def is_over(self) -> bool:
        """Is nothing left to do for this sample?"""
        return self.ending is not None and not self.num_pending and not self.pending_scores

    @property
    def samples_at_end(self) -> bool:
        """Does reaching the last token ask for a sample?"""
        return self.ending is None

    def sibling(self, key: int, choice: int) -> Request:
        """Another sample that continues from the same tokens. It opens its own lease on what this one committed."""
        return Request(
            key=key,
            submission=self.submission,
            choice=choice,
            tokens=self.tokens.copy(),
            num_prompt=self.num_prompt,
            max_new_tokens=self.max_new_tokens,
            sampling=self.sampling,
            arrival_step=self.arrival_step,
            constraint=self.constraint.fork() if self.constraint else None,
            stop_strings=self.stop_strings.copy() if self.stop_strings else None,
            counts=self.counts.copy() if self.counts else None,
            num_forced=self.num_forced,
            num_output_bytes=self.num_output_bytes,
            tail_bytes=self.tail_bytes,
            logprobs=list(self.logprobs) if self.logprobs is not None else None,
        )
