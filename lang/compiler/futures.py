"""Pass: what follows each gen and select, as hints for the runtime: how many branches go on from it, or that none will.

A claim that nothing follows is made only where every way of the program that was seen ends there, since the runtime gives up what
nobody will use; how many follow may be a guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .graph import AskStep, ForkStep, RoleStep, TextStep

if TYPE_CHECKING:
    from .graph import Graph


def continuations(graph: Graph) -> tuple[int, ...]:
    """For each ask, the requests that continue right from it, on its branch or a fork of it; 0: none will, -1: none is known."""
    return tuple(_behind(graph, ask.branch, ask.number) for ask in graph.asks)


def _behind(graph: Graph, number: int, ask: int | None) -> int:
    """Requests that come first behind an ask (None: behind the beginning) on a branch and what is forked from it."""
    branch = graph.branches[number]
    steps = branch.steps
    start = 0
    if ask is not None:
        start = 1 + next(
            i for i, step in enumerate(steps) if isinstance(step, AskStep) and step.ask == ask
        )
    found = 0
    may_go_on = branch.may_go_on
    for step in steps[start:]:
        if isinstance(step, AskStep):
            return found + 1
        if isinstance(step, ForkStep):
            behind = [_behind(graph, child, None) for child in step.children]
            found += sum(max(each, 0) for each in behind)
            may_go_on |= -1 in behind
        elif isinstance(step, TextStep | RoleStep):
            continue
    return found if found or not may_go_on else -1
