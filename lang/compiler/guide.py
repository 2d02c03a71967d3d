"""Follows a plan along a running program, to say with each request what will come behind it.

Owns the place in the plan, one per branch. What the program does decides: when it asks something else than planned, the plan is dropped for
the rest of that branch and its forks, and nothing else changes. Text is not compared, it does not matter here. Must not know graphs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .plan import PlannedAsk, PlannedFork

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...grammar.spec import Spec
    from ...runtime.messages import Hints, SamplingParams
    from ..variable import Variable
    from .plan import PlannedStep


class Guide:
    """The companion of one branch of a compiled run."""

    __slots__ = ("_place", "_steps")

    def __init__(self, steps: Sequence[PlannedStep]) -> None:
        self._steps = steps
        self._place = 0

    def text(self, text: str) -> None:
        """Any text fits."""

    def role(self, role: str, begins: bool) -> None:
        """Any role fits."""

    def generating(
        self, variable: Variable, sampling: SamplingParams, constraint: Spec | None
    ) -> Hints | None:
        """What the plan knows of a gen."""
        return self._asked("gen", variable.name)

    def choosing(self, variable: Variable, choices: Sequence[str]) -> Hints | None:
        """What the plan knows of a select."""
        return self._asked("select", variable.name)

    def forked(self, num_children: int) -> Sequence[Guide]:
        """A guide for each child. More children than were planned are taken to do as the last one."""
        step = self._next()
        if not isinstance(step, PlannedFork):
            self._lose()
            return [Guide(()) for _ in range(num_children)]
        last = len(step.children) - 1
        return [Guide(step.children[min(i, last)]) for i in range(num_children)]

    def closed(self) -> None:
        """It may end earlier than planned."""

    def _asked(self, kind: str, name: str) -> Hints | None:
        step = self._next()
        if isinstance(step, PlannedAsk) and (step.kind, step.name) == (kind, name):
            return step.hints
        self._lose()
        return None

    def _next(self) -> PlannedStep | None:
        if self._place == len(self._steps):
            return None
        self._place += 1
        return self._steps[self._place - 1]

    def _lose(self) -> None:
        self._steps, self._place = (), 0
