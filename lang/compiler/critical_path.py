"""Pass: how long the chain of requests is that begins with each gen and select, in tokens, so that long chains begin first.

A request waits for the one before it on its branch (or before the fork), and for every result that the program had read before it came
there. Lengths are what max_tokens allows; without it, and for selects, a guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .graph import AskStep

if TYPE_CHECKING:
    from .graph import Ask, Graph

_NUM_UNBOUNDED = 256  # tokens of a gen without max_tokens
_NUM_SELECT = 8
_MOST = 1 << 20


def remaining_lengths(graph: Graph) -> tuple[int, ...]:
    """Tokens from each ask to the end of the longest chain through it, its own included."""
    own = [_length(ask) for ask in graph.asks]
    behind = [0] * len(own)
    for ask in reversed(graph.asks):  # those that wait for an ask come later in the program
        total = own[ask.number] + behind[ask.number]
        for earlier in {*ask.reads, *_before(graph, ask)}:
            behind[earlier] = max(behind[earlier], total)
    return tuple(min(a + b, _MOST) for a, b in zip(own, behind, strict=True))


def _before(graph: Graph, ask: Ask) -> list[int]:
    found = next((step for step in graph.path(ask) if isinstance(step, AskStep)), None)
    return [] if found is None else [found.ask]


def _length(ask: Ask) -> int:
    if ask.kind == "select":
        return _NUM_SELECT
    return min(_NUM_UNBOUNDED if ask.max_tokens is None else ask.max_tokens, _MOST)
