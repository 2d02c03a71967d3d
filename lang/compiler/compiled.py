"""A program with a plan: run as any other, and followed along the plan.

Owns when the plan is used: a guide for each run, a sharing backend for each batch. Must not know passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from ..function import P, Program, R
from .drawing import Drawing
from .guide import Guide
from .needs import repeated_names
from .plan import plan_of
from .sharing import SharingBackend

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ..backend import Backend
    from ..companion import Companion
    from .plan import Plan


class CompiledProgram(Program[P, R]):
    """What `program.compile(...)` returns: run, arun, run_batch, arun_batch and bind are those of the program."""

    def __init__(
        self,
        body: Callable[..., Any],
        bound: Mapping[str, Any],
        sample: tuple[Sequence[Any], Mapping[str, Any]] | Plan,
    ) -> None:
        """`sample` is what to trace it with, or a plan that is there. ProgramError for arguments that the program does not take."""
        super().__init__(body, bound)
        self.plan: Plan = (
            plan_of(Program(body, bound), *sample) if isinstance(sample, tuple) else sample
        )
        """The graph, and what was found in it."""
        self._steps = [self.plan.steps(in_batch=False), self.plan.steps(in_batch=True)]

    @property
    def drawing(self) -> Drawing:
        """The plan as text or SVG."""
        return Drawing(self.plan)

    @property
    def stopped(self) -> str:
        """Why the program could not be traced to its end; "" if it could. Behind that place it runs as any other."""
        return self.plan.graph.stopped

    def _with(self, bound: Mapping[str, Any]) -> CompiledProgram[..., R]:
        return CompiledProgram(self._body, bound, self.plan)

    def _companion(self, backend: Backend) -> Companion:
        return Guide(self._steps[isinstance(backend, SharingBackend)])

    @contextmanager
    def _sharing(self, backend: Backend, batch: object) -> Generator[Backend]:
        items = cast("Sequence[Mapping[str, Any]]", batch) if isinstance(batch, Sequence) else None
        names = repeated_names(self.plan.graph, self.plan.needs, items)
        sharing = SharingBackend(backend, self.plan.prefix, names)
        try:
            yield sharing
        finally:
            sharing.complete()
