"""One Submit from the gateway: a prompt, and the n samples that share it. Owns the answer, which is sent exactly once.

The samples are `Request`s. The first one computes the prompt; when it samples its first token, the other n - 1 are drawn
from the same logits row and continue as siblings on the committed prompt. What was forced before that is common to all.

Streaming: the tokens of the step in which a sample ends are not streamed but come with Done, because a stop string may
have cut them; everything streamed before is final. Knows nothing of pages, batches or sockets.
"""

from __future__ import annotations

import time

from ..errors import InvariantError, RadixError
from .messages import Done, EngineFailed, Progress, Sample, Submit, TokenLogprob, Usage, WireError
from .request import Request


class Submission:
    """A live Submit. `name` is the caller's id, `seed` the one in use (drawn by the engine when none was given)."""

    __slots__ = (
        "_has_ended", "_received_s", "_samples", "is_forked", "message", "num_cached", "prompt_logprobs", "queue_s",
        "requests", "seed",
    )  # fmt: skip

    def __init__(self, message: Submit, seed: int) -> None:
        self.message = message
        self.seed = seed
        self.requests: list[
            Request
        ] = []  # by choice; grows from 1 to n when the first token is sampled
        self.is_forked = message.sampling.n == 1
        self.num_cached = (
            -1
        )  # prompt tokens found in the cache when the first sample started, -1 before
        self.queue_s = 0.0  # from receipt until the first sample started
        self._received_s = time.monotonic()
        self.prompt_logprobs: list[TokenLogprob | None] | None = None
        if message.sampling.prompt_logprobs is not None:
            self.prompt_logprobs = [None for _ in message.token_ids]
        self._samples: dict[int, Sample] = {}
        self._has_ended = False

    def start(self, num_cached: int) -> None:
        """A sample holds pages and found `num_cached` prompt tokens there; the first one counts."""
        if self.num_cached < 0:
            self.num_cached = num_cached
            self.queue_s = time.monotonic() - self._received_s

    @property
    def name(self) -> str:
        """The caller's id of the request."""
        return self.message.request

    @property
    def num_choices_to_sample(self) -> int:
        """Samples to draw from the row of the first request when it catches up: n the first time, then 1."""
        return 1 if self.is_forked else self.message.sampling.n

    @property
    def is_live(self) -> bool:
        """Is the answer still owed?"""
        return not self._has_ended

    def unfinished(self) -> list[Request]:
        """Requests whose sample is not finished yet."""
        return [r for r in self.requests if r.choice not in self._samples]

    def record_score(self, request: Request, position: int, logprob: TokenLogprob) -> None:
        """The logprob of the known token at `position` has arrived."""
        if position < request.num_prompt:
            if self.prompt_logprobs is not None:
                self.prompt_logprobs[position] = logprob
        elif request.logprobs is not None:
            request.logprobs[position - request.num_prompt] = logprob

    def progress(self, request: Request) -> Progress | None:
        """New tokens of `request` that can be streamed, or None. Tokens wait for their logprob when it was asked."""
        if not self.message.stream or request.ending is not None:
            return None
        start, stop = request.num_sent, request.num_output
        logprobs: tuple[TokenLogprob, ...] = ()
        if request.logprobs is not None:
            ready: list[TokenLogprob] = []
            for logprob in request.logprobs[start:stop]:
                if logprob is None:
                    break
                ready.append(logprob)
            logprobs, stop = tuple(ready), start + len(ready)
        if stop == start:
            return None
        request.num_sent = stop
        ids = request.tokens.view(request.num_prompt + start, request.num_prompt + stop)
        return Progress(self.name, request.choice, tuple(ids.tolist()), logprobs)

    def finish_sample(self, request: Request) -> Done | None:
        """Take the sample of a request that is over. Returns the answer when it was the last one owed."""
        ending = request.ending
        if ending is None or self._has_ended:
            raise InvariantError(f"request {self.name!r} was finished too early or twice")
        logprobs = None
        if request.logprobs is not None:
            logprobs = tuple(logprob for logprob in request.logprobs if logprob is not None)
        sample = Sample(
            token_ids=tuple(request.tokens.view(request.num_prompt).tolist()),
            finish_reason=ending.reason.value,
            matched_stop=ending.matched_stop,
            cut_byte=ending.cut_byte,
            logprobs=logprobs,
            grammar_complete=ending.grammar_complete,
        )
        self._samples[request.choice] = sample
        num_samples = self.message.sampling.n
        if not self.is_forked:  # it ended before anything was sampled: all samples are this one
            self._samples = dict.fromkeys(range(num_samples), sample)
        if len(self._samples) < num_samples:
            return None
        self._has_ended = True
        samples = tuple(self._samples[choice] for choice in range(num_samples))
        scores = tuple(self.prompt_logprobs) if self.prompt_logprobs is not None else None
        usage = self._usage(samples, request)
        return Done(self.name, samples, usage, self.seed, scores, self.queue_s)

    def fail(self, error: RadixError) -> EngineFailed:
        """The answer that ends everything: an error, with what sample 0 had so far."""
        if self._has_ended:
            raise InvariantError(f"request {self.name!r} was failed after its end")
        self._has_ended = True
        ids: tuple[int, ...] = ()
        if self.requests:
            first = self.requests[0]
            ids = tuple(first.tokens.view(first.num_prompt).tolist())
        return EngineFailed(self.name, WireError.of(error), ids)

    def _usage(self, samples: tuple[Sample, ...], last: Request) -> Usage:
        num_forced = sum(r.num_forced for r in self.requests)
        if not self.is_forked:
            num_forced = last.num_forced * len(samples)
        return Usage(
            prompt_tokens=len(self.message.token_ids),
            cached_tokens=max(self.num_cached, 0),
            completion_tokens=sum(len(sample.token_ids) for sample in samples),
            forced_tokens=num_forced,
        )
