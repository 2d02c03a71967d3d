"""Pass: which requests of a batch are the same for several items, because they depend on few arguments or none.

Whether two requests are equal is decided when they are sent (`sharing.py`); this says for which it is worth to keep the place behind the
result, so that an item that comes later can continue there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .comparing import RESULTS
from .graph import AskStep, TextStep

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .graph import Graph


def needs(graph: Graph) -> tuple[frozenset[str] | None, ...]:
    """For each ask the arguments it was seen to depend on, also through earlier results. None: equal text may give another result."""
    found: list[frozenset[str] | None] = []
    for ask in graph.asks:
        sources: set[str] = set()
        is_repeatable = ask.is_repeatable
        for step in graph.path(ask):
            if isinstance(step, AskStep):
                sources.add(f"{RESULTS}{step.ask}")
            elif isinstance(step, TextStep):
                sources.update(source for part in step.parts for source in part.sources)
        named: set[str] = set()
        for source in sources:
            if not source.startswith(RESULTS):
                named.add(source)
                continue
            earlier = found[int(source.removeprefix(RESULTS))]
            is_repeatable &= earlier is not None
            named |= earlier or frozenset()
        found.append(frozenset(named) if is_repeatable else None)
    return tuple(found)


def repeated_names(
    graph: Graph,
    needed_by: Sequence[frozenset[str] | None],
    items: Sequence[Mapping[str, Any]] | None,
) -> frozenset[str]:
    """Names of the asks that several of the items share. Without a list of items: those that need no argument."""
    names: set[str] = set()
    for ask, needed in zip(graph.asks, needed_by, strict=True):
        if needed is None:
            continue
        if not needed or (items is not None and _num_distinct(items, needed) < len(items)):
            names.add(ask.name)
    return frozenset(names)


def _num_distinct(items: Sequence[Mapping[str, Any]], names: frozenset[str]) -> int:
    ordered = sorted(names)
    return len({repr([item.get(name) for name in ordered]) for item in items})
