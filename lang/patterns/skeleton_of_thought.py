"""Skeleton of thought: an outline first, then its points written side by side (Ning et al. 2023, arXiv:2307.15337).

    points = skeleton_of_thought(
        s,
        assistant(gen("outline", schema=Annotated[list[str], Field(min_length=2, max_length=5)])), "outline",
        lambda point: user(f"Write one sentence on: {point}") + assistant(gen("sentence", stop="\\n")), "sentence",
    )

Owns the two steps. A long answer takes the time of its longest point instead of the sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .branch_solve_merge import branch_solve_merge

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..state import State
    from .winners import Part


def skeleton_of_thought(
    s: State,
    outline: Part,
    points: str,
    write: Callable[[Any], Part],
    text: str,
    *,
    join: Callable[[list[Any]], Part] = lambda texts: "\n".join(map(str, texts)),
) -> list[Any]:
    """Append `outline`, which sets the list `points`; write each on a fork, which sets `text`; append the texts, by `join`, to the state.

    The texts in order of the points. A point whose text is no value is left out.
    """
    return branch_solve_merge(s, outline, points, write, text, join)
