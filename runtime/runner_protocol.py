"""The seam below the engine: what runs one step. Two methods and the model's facts, so that the model can be faked and the core tested without one.

Owns the Protocol only. `launch` may return before the device is done; the engine fills grammar masks meanwhile and gives
them to `finish`, which waits for the logits, samples, and returns the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from .plan import U32, BatchPlan, StepResult


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What the rest of the engine must know of the model that was loaded."""

    vocab_size: int  # columns of the logits
    context_length: int  # tokens
    num_pages: int
    page_size: int  # tokens
    page_bytes: int  # keys and values of a page, all layers
    kernels: str  # name of the backend that serves
    dtype: str
    kv_dtype: str  # type of keys and values


class Pending(Protocol):
    """A step that was started. Opaque: only the runner that made it looks inside."""


class Runner(Protocol):
    """Runs plans over its own K/V store of pages."""

    @property
    def facts(self) -> ModelFacts:
        """What was loaded."""
        ...

    def launch(self, plan: BatchPlan) -> Pending:
        """Start the step: page copies first, then the forward pass. Any exception fails the requests of the plan."""
        ...

    def finish(self, pending: Pending, masks: U32 | None) -> StepResult:
        """Wait, apply `masks` [M, ceil(V / 32)] to the rows of `plan.sampling.mask_rows` in order, sample, return.

        `masks` is None when the plan has no constrained row. A row that cannot be sampled is reported in
        `StepResult.errors`; an exception fails every request of the plan.
        """
        ...
