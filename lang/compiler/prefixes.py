"""Pass: the constant beginning that all runs of a program share, and the one that all children of a fork share.

The first is opened once for a batch, ahead of its items, and each item continues a copy of it (`sharing.py`), so that it is sent and
tokenized once. Computed once it is anyway, and so is the second: the engine lets a request wait whose prefix another one is computing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...runtime.messages import RoleBegin, RoleEnd, Text
from .graph import ForkStep, RoleStep, TextStep

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...runtime.messages import Segment
    from .graph import Graph, Step


def constant_prefix(graph: Graph) -> tuple[Segment, ...]:
    """What every run begins with, as far as it was seen. Empty if that is no text at all."""
    segments = tuple(_constants(graph.branches[0].steps))
    has_text = any(isinstance(segment, Text) for segment in segments)
    return segments if has_text else ()


def shared_by_children(graph: Graph, step: ForkStep) -> str:
    """The constant text with which all children of a fork begin."""
    texts = [
        "".join(s.text for s in _constants(graph.branches[child].steps) if isinstance(s, Text))
        for child in step.children
    ]
    first, last = min(texts), max(texts)
    pairs = zip(first, last, strict=False)
    return first[: next((i for i, (a, b) in enumerate(pairs) if a != b), len(first))]


def _constants(steps: tuple[Step, ...]) -> Iterator[Segment]:
    for step in steps:
        if isinstance(step, RoleStep) and not step.is_guess:
            yield RoleBegin(step.role) if step.begins else RoleEnd(step.role)
        elif isinstance(step, TextStep) and not step.is_guess:
            is_whole = not any(part.sources for part in step.parts)
            if step.parts and not step.parts[0].sources:
                yield Text(step.parts[0].text)
            if not is_whole:
                return
        else:
            return
