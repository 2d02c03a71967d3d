"""Pass: constants that stand next to one another become one text, which is one piece of one message."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .graph import Part, TextStep

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .graph import Graph, Step


def fold(graph: Graph) -> Graph:
    """The graph with adjacent texts folded, and in each text adjacent parts of the same sources."""
    branches = (replace(each, steps=_fold_steps(each.steps)) for each in graph.branches)
    return replace(graph, branches=tuple(branches))


def _fold_steps(steps: Iterable[Step]) -> tuple[Step, ...]:
    folded: list[Step] = []
    for step in steps:
        before = folded[-1] if folded else None
        is_text = isinstance(step, TextStep)
        if is_text and isinstance(before, TextStep) and before.is_guess == step.is_guess:
            parts = fold_parts((*before.parts, *step.parts))
            folded[-1] = TextStep(parts, step.num_read, step.is_guess)
        else:
            folded.append(step)
    return tuple(folded)


def fold_parts(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Adjacent parts that depend on the same joined, empty ones left out."""
    folded: list[Part] = []
    for part in parts:
        before = folded[-1] if folded else None
        if not part.text:
            continue
        if before is not None and (before.sources, before.is_computed) == (
            part.sources,
            part.is_computed,
        ):
            folded[-1] = replace(before, text=before.text + part.text)
        else:
            folded.append(part)
    return tuple(folded)
