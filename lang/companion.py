"""What goes along with a branch while its program runs: the tracer that writes a graph, or the guide that reads one.

Owns the Protocol between a branch and its companion. A companion hears what the program does, in the program's order and under the run's
lock; it never changes what is done. Must not know messages' transport or how anyone waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..grammar.spec import Spec
    from ..runtime.messages import Hints, SamplingParams
    from .variable import Variable


class Companion(Protocol):
    """Follows one branch. Nothing here waits."""

    def text(self, text: str) -> None:
        """Constant text was appended."""
        ...

    def role(self, role: str, begins: bool) -> None:
        """A chat message was opened or closed."""
        ...

    def generating(
        self, variable: Variable, sampling: SamplingParams, constraint: Spec | None
    ) -> Hints | None:
        """A gen was appended. What is known of what follows it, None if nothing is."""
        ...

    def choosing(self, variable: Variable, choices: Sequence[str]) -> Hints | None:
        """A select was appended. What is known of what follows it, None if nothing is."""
        ...

    def forked(self, num_children: int) -> Sequence[Companion]:
        """A fork was made; the companions of its children."""
        ...

    def closed(self) -> None:
        """The branch has ended, by a join or with the run."""
        ...


class Unaccompanied:
    """The companion of a branch that nobody follows."""

    def text(self, text: str) -> None:
        """Nothing."""

    def role(self, role: str, begins: bool) -> None:
        """Nothing."""

    def generating(
        self, variable: Variable, sampling: SamplingParams, constraint: Spec | None
    ) -> Hints | None:
        """Nothing is known."""
        return None

    def choosing(self, variable: Variable, choices: Sequence[str]) -> Hints | None:
        """Nothing is known."""
        return None

    def forked(self, num_children: int) -> Sequence[Companion]:
        """Nobody follows the children either."""
        return [self] * num_children

    def closed(self) -> None:
        """Nothing."""


ALONE = Unaccompanied()  # it holds nothing: one serves all
