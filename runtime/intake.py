"""What a Submit must satisfy before it becomes a request. Owns the refusals: prompt, context, pool, ids, sampling arguments.

Each raises the error a user can act on, with the offending value. Knows nothing of scheduling; everything refused here has
touched no page.
"""

from __future__ import annotations

import numpy as np

from ..errors import ContextOverflow, PromptError, SamplingError
from .messages import Submit
from .request import Request, RequestStatus
from .stop_strings import StopStrings
from .submission import Submission
from .token_buffer import TokenBuffer
from .token_counts import TokenCounts
from .vocab_facts import VocabFacts


def check_submit(message: Submit, facts: VocabFacts, num_pages: int, page_size: int) -> None:
    """Raise PromptError or SamplingError when `message` can never run on this engine."""
    message.sampling.check()
    _check_prompt(message, facts, num_pages, page_size)
    sampling = message.sampling
    for name, ids in (
        ("logit_bias", tuple(sampling.logit_bias)),
        ("stop_token_ids", sampling.stop_token_ids),
    ):
        for token_id in ids:
            if not 0 <= token_id < facts.vocab_size:
                raise SamplingError(
                    f"{name} names token {token_id}, the vocabulary ends at {facts.vocab_size - 1}",
                    place=name,
                )
    start = sampling.prompt_logprobs_start
    if sampling.prompt_logprobs is not None and start > len(message.token_ids):
        raise SamplingError(
            f"prompt_logprobs_start={start} lies behind the prompt of {len(message.token_ids)} tokens",
            place="prompt_logprobs_start",
        )
    if any(not stop for stop in message.stop_bytes):
        raise SamplingError("a stop string is empty", place="stop")


def _check_prompt(message: Submit, facts: VocabFacts, num_pages: int, page_size: int) -> None:
    num_prompt = len(message.token_ids)
    if not num_prompt:
        raise PromptError("the prompt is empty: at least one token is needed to continue from")
    if min(message.token_ids) < 0 or max(message.token_ids) >= facts.vocab_size:
        wrong = next(t for t in message.token_ids if not 0 <= t < facts.vocab_size)
        raise PromptError(f"token {wrong} is not in the vocabulary of {facts.vocab_size} tokens")
    # A prompt that fills the context can be scored, but nothing can follow it.
    wants_output = message.sampling.max_tokens != 0
    if num_prompt + wants_output > facts.context_length:
        raise ContextOverflow(
            f"the prompt has {num_prompt} tokens, the context holds {facts.context_length}"
            + (" and one must be left for the output" if wants_output else ""),
            hint="Shorten the prompt",
        )
    capacity = num_pages * page_size
    if num_prompt > capacity:
        raise ContextOverflow(
            f"the prompt has {num_prompt} tokens, the page pool holds {capacity}",
            hint="Shorten the prompt or give the engine more pages",
        )


def first_request(
    submission: Submission, key: int, facts: VocabFacts, arrival_step: int
) -> Request:
    """The request of sample 0, which computes the prompt for all samples."""
    message, sampling = submission.message, submission.message.sampling
    num_prompt = len(message.token_ids)
    room = facts.context_length - num_prompt
    request = Request(
        key=key,
        submission=submission,
        choice=0,
        tokens=TokenBuffer(message.token_ids),
        num_prompt=num_prompt,
        max_new_tokens=room if sampling.max_tokens is None else min(sampling.max_tokens, room),
        sampling=sampling,
        arrival_step=arrival_step,
        status=RequestStatus.WAITING_GRAMMAR if message.program else RequestStatus.QUEUED,
        stop_strings=StopStrings(message.stop_bytes) if message.stop_bytes else None,
        logprobs=[] if sampling.logprobs is not None else None,
    )
    if sampling.repetition_penalty != 1.0:
        request.counts = TokenCounts(request.tokens.view())
    elif sampling.frequency_penalty or sampling.presence_penalty:
        request.counts = TokenCounts(np.empty(0, dtype=np.int32))
    if sampling.prompt_logprobs is not None:
        request.pending_scores.extend(range(max(sampling.prompt_logprobs_start, 1), num_prompt))
    return request
