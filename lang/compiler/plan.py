"""A compiled program's prediction: the graph, and what all passes found in it.

Owns the order of tracing and passes. Nothing in a plan decides what a program does: a run follows it as far as it fits, and is the same run
without it. Must not know runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...runtime.messages import Hints
from .comparing import RESULTS, annotate
from .critical_path import remaining_lengths
from .folding import fold
from .futures import continuations
from .graph import AskStep, ForkStep
from .needs import needs
from .prefixes import constant_prefix
from .tracing import trace
from .varying import varied

if TYPE_CHECKING:
    from ...runtime.messages import Segment
    from ..function import Program
    from .graph import Graph

_MAX_VARIED = 8  # arguments looked at one by one; the others are changed together


@dataclass(frozen=True, slots=True)
class PlannedAsk:
    """A gen or select that is expected, and what to tell the runtime with it."""

    kind: str
    name: str
    hints: Hints


@dataclass(frozen=True, slots=True)
class PlannedFork:
    """A fork that is expected: the steps of each child."""

    children: tuple[tuple[PlannedStep, ...], ...]


PlannedStep = PlannedAsk | PlannedFork


@dataclass(frozen=True, slots=True)
class Plan:
    """See the module."""

    graph: Graph
    num_continuations: tuple[int, ...]
    """Of each ask; see `futures.continuations`."""
    remaining: tuple[int, ...]
    """Tokens on the longest chain from each ask on."""
    needs: tuple[frozenset[str] | None, ...]
    """Arguments that each ask depends on; see `needs.needs`."""
    prefix: tuple[Segment, ...]
    """The constant beginning of every run."""

    def steps(self, *, in_batch: bool) -> tuple[PlannedStep, ...]:
        """What the program's own branch is expected to ask and fork. In a batch its last result is used by nobody."""
        return self._steps(0, in_batch)

    def _steps(self, number: int, in_batch: bool) -> tuple[PlannedStep, ...]:
        planned: list[PlannedStep] = []
        for step in self.graph.branches[number].steps:
            if isinstance(step, AskStep):
                ask = self.graph.asks[step.ask]
                planned.append(PlannedAsk(ask.kind, ask.name, self._hints(ask.number, in_batch)))
            elif isinstance(step, ForkStep):
                planned.append(
                    PlannedFork(tuple(self._steps(child, in_batch) for child in step.children))
                )
        return tuple(planned)

    def _hints(self, ask: int, in_batch: bool) -> Hints:
        behind = self.num_continuations[ask]
        is_forked = self.graph.branches[self.graph.asks[ask].branch].parent is not None
        return Hints(
            num_forks=max(behind, 0),
            last_use=behind == 0 and (in_batch or is_forked),
            priority=self.remaining[ask],
        )


def plan_of(program: Program, args: Sequence[Any], given: Mapping[str, Any]) -> Plan:
    """Trace the program on the sample arguments and on variants of them, and run the passes. ProgramError for wrong arguments."""
    graph = fold(trace(program, args, given, 0))
    names = argument_names(program, len(args), given)
    changeable = [
        name
        for name in names
        if varied(_value(names, name, args, given)) is not _value(names, name, args, given)
    ]
    groups = [[name] for name in changeable[:_MAX_VARIED]]
    if changeable[_MAX_VARIED:]:
        groups.append(changeable[_MAX_VARIED:])
    variants = [(RESULTS, fold(trace(program, args, given, 1)))]
    for group in groups:
        other_args = [
            varied(value) if name in group else value
            for name, value in zip(names, args, strict=False)
        ]
        other = {name: varied(value) if name in group else value for name, value in given.items()}
        variants.append((", ".join(group), fold(trace(program, other_args, other, 0))))
    graph = replace(annotate(graph, variants), arguments=tuple(names))
    return Plan(
        graph, continuations(graph), remaining_lengths(graph), needs(graph), constant_prefix(graph)
    )


def argument_names(program: Program, num_args: int, given: Mapping[str, Any]) -> list[str]:
    """Names of the arguments that were given to the function, those by position first."""
    parameters = list(inspect.signature(program).parameters.values())[1:]
    names = [p.name for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD][:num_args]
    names += [f"{names[-1]}[{i}]" for i in range(num_args - len(names))]  # more of `*args`
    return names + [p.name for p in parameters if p.name in given]


def _value(names: Sequence[str], name: str, args: Sequence[Any], given: Mapping[str, Any]) -> Any:
    place = names.index(name)
    return args[place] if place < len(args) else given[name]
