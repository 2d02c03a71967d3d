"""Requests without an engine, for tests of the scheduler's parts."""

from __future__ import annotations

import itertools

from radixlm.runtime import messages as m
from radixlm.runtime.request import Request
from radixlm.runtime.submission import Submission
from radixlm.runtime.token_buffer import TokenBuffer

_keys = itertools.count()


def bare_request(
    prompt=(5,), *, arrival_step: int = 0, priority: int = 0, namespace: str = "", **sampling
) -> Request:
    parameters = m.SamplingParams(**sampling)
    key = next(_keys)
    message = m.Submit(
        f"r{key}", tuple(prompt), parameters, namespace=namespace, hints=m.Hints(priority=priority)
    )
    return Request(
        key=key,
        submission=Submission(message, seed=key),
        choice=0,
        tokens=TokenBuffer(prompt),
        num_prompt=len(prompt),
        max_new_tokens=100,
        sampling=parameters,
        arrival_step=arrival_step,
    )
