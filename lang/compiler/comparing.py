"""Pass: what depends on what, found by comparing the graph with those of runs in which one thing was different.

Owns the alignment of two graphs, branch by branch and step by step. Where a text differs, the differing stretch depends on what was varied:
an argument, or the results. Where the steps themselves differ, the program took another way, and the rest of that branch is a guess. A
dependence that shows in no variant is not seen: what uses the answer must check it. Must not know how graphs are recorded.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from .folding import fold_parts
from .graph import AskStep, ForkStep, JoinStep, Part, RoleStep, TextStep

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .graph import Ask, BranchGraph, Graph, Step

RESULTS = "$"  # the source of a variant in which other results were played


@dataclass(slots=True)
class _Found:
    """What the variants say of one graph. Places are (branch, index of the step)."""

    stretches: dict[tuple[int, int], list[tuple[int, int, str]]] = field(
        default_factory=dict[tuple[int, int], list[tuple[int, int, str]]]
    )
    first_guess: dict[int, int] = field(default_factory=dict[int, int])
    may_go_on: set[int] = field(default_factory=set[int])


def annotate(graph: Graph, variants: Iterable[tuple[str, Graph]]) -> Graph:
    """The graph with sources and guesses. Each variant says what was different: an argument's name, or RESULTS. All are folded."""
    found = _Found()
    for source, other in variants:
        todo = [(0, 0)]
        while todo:
            todo += _compare(graph, other, todo.pop(), source, found)
    branches = tuple(_annotated(graph, branch, found) for branch in graph.branches)
    return replace(graph, branches=branches)


def _compare(
    graph: Graph, other: Graph, pair: tuple[int, int], source: str, found: _Found
) -> list[tuple[int, int]]:
    """Compare one branch; the pairs of children to compare next."""
    mine, theirs = graph.branches[pair[0]], other.branches[pair[1]]
    children: list[tuple[int, int]] = []
    for index, (a, b) in enumerate(zip(mine.steps, theirs.steps, strict=False)):
        if not _is_alike(graph.asks, a, other.asks, b):
            found.first_guess[mine.number] = min(index, found.first_guess.get(mine.number, index))
            found.may_go_on.add(mine.number)
            return children
        if isinstance(a, TextStep) and isinstance(b, TextStep) and a.text != b.text:
            stretch = (*_differing(a.text, b.text), source)
            found.stretches.setdefault((mine.number, index), []).append(stretch)
        if isinstance(a, ForkStep) and isinstance(b, ForkStep):
            children += zip(a.children, b.children, strict=False)
    num_mine, num_theirs = len(mine.steps), len(theirs.steps)
    if num_theirs > num_mine and not graph.stopped:
        found.may_go_on.add(mine.number)
    if num_mine > num_theirs and not other.stopped:
        end = found.first_guess.get(mine.number, num_theirs)
        found.first_guess[mine.number] = min(num_theirs, end)
    return children


def _is_alike(my_asks: tuple[Ask, ...], a: Step, their_asks: tuple[Ask, ...], b: Step) -> bool:
    """The same kind of step, whatever its text."""
    if isinstance(a, AskStep) and isinstance(b, AskStep):
        mine, theirs = my_asks[a.ask], their_asks[b.ask]
        return (mine.kind, mine.name) == (theirs.kind, theirs.name)
    if isinstance(a, RoleStep) and isinstance(b, RoleStep):
        return (a.role, a.begins) == (b.role, b.begins)
    if isinstance(a, ForkStep | JoinStep) and isinstance(b, ForkStep | JoinStep):
        return type(a) is type(b) and len(a.children) == len(b.children)
    return type(a) is type(b)


def _differing(a: str, b: str) -> tuple[int, int]:
    """Start and end, in `a`, of the shortest stretch outside of which both are equal."""
    shorter = min(len(a), len(b))
    start = next((i for i in range(shorter) if a[i] != b[i]), shorter)
    rest = shorter - start
    num_same = next((i for i in range(rest) if a[-1 - i] != b[-1 - i]), rest)
    return start, len(a) - num_same


def _annotated(graph: Graph, branch: BranchGraph, found: _Found) -> BranchGraph:
    first_guess = found.first_guess.get(branch.number, len(branch.steps))
    steps: list[Step] = []
    for index, step in enumerate(branch.steps):
        stretches = found.stretches.get((branch.number, index))
        if stretches and isinstance(step, TextStep):
            step = replace(step, parts=_parts(graph, step, stretches))
        steps.append(replace(step, is_guess=True) if index >= first_guess else step)
    may_go_on = branch.number in found.may_go_on or bool(graph.stopped)
    return replace(branch, steps=tuple(steps), may_go_on=may_go_on)


def _parts(graph: Graph, step: TextStep, stretches: list[tuple[int, int, str]]) -> tuple[Part, ...]:
    """The text cut where what it depends on changes."""
    text = step.text
    cuts = sorted({0, len(text), *(cut for start, end, _ in stretches for cut in (start, end))})
    parts: list[Part] = []
    for start, end in pairwise(cuts):
        sources = {source for a, b, source in stretches if a <= start and end <= b}
        piece = text[start:end]
        if RESULTS not in sources:
            parts.append(Part(piece, frozenset(sources)))
        else:
            parts += _of_results(graph, step, piece, frozenset(sources - {RESULTS}))
    return fold_parts(parts)


def _of_results(graph: Graph, step: TextStep, text: str, others: frozenset[str]) -> list[Part]:
    """Parts of a stretch that depends on results: those that stand in it as they came, and what Python made of the rest."""
    read = list(dict.fromkeys(graph.reads[: step.num_read]))
    named = frozenset(f"{RESULTS}{number}" for number in read)
    parts: list[Part] = []
    while text:
        places = (
            (text.find(result), -len(result), number, result)
            for number in read
            for result in graph.asks[number].result
            if result and result in text
        )
        at, _, number, result = min(places, default=(len(text), 0, -1, ""))
        parts.append(Part(text[:at], others | named, is_computed=True))
        if result:
            parts.append(Part(result, others | {f"{RESULTS}{number}"}))
        text = text[at + len(result) :]
    return parts
