"""The torch and the native sampler behind one function, for tests that both must pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from native_models import native_sampler
from sampling_oracle import NO_SCORES, Row, build_batch

from radixlm.runtime import sampler
from radixlm.runtime.plan import StepResult

SAMPLERS = ("torch", "native")
_chosen = [sampler.sample]


@contextmanager
def using(name: str) -> Iterator[None]:
    """Within the block `sample` and `run` call that sampler. torch gets one thread: with small tensors more only wait for one another."""
    _chosen[0] = sampler.sample if name == "torch" else native_sampler()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def use_threads(count: int) -> None:
    """So many for the rest of the block."""
    if _chosen[0] is sampler.sample:
        torch.set_num_threads(count)
    else:
        _chosen[0] = native_sampler(num_threads=count)


def sample(logits: torch.Tensor, *rest) -> StepResult:
    """One call of the sampler under test."""
    is_torch = _chosen[0] is sampler.sample
    return _chosen[0](logits if is_torch else logits.numpy(), *rest)


def run(logits: np.ndarray, rows: list[Row], **kwargs) -> StepResult:
    """The rows, each on the row of logits of its number, and nothing to score."""
    batch, masks = build_batch(rows, logits.shape[1], **kwargs)
    return sample(torch.from_numpy(logits.astype(np.float32)), batch, masks, NO_SCORES)
