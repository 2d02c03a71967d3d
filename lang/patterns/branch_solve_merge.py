"""Branch, solve, merge: divide a task into parts, solve each on its own, put the solutions together (Saha et al. 2023, arXiv:2310.15123).

    branch_solve_merge(
        s,
        assistant(gen("parts", schema=Annotated[list[str], Field(min_length=2, max_length=4)])), "parts",
        lambda part: user(f"Write one sentence about: {part}") + assistant(gen("sentence")), "sentence",
        lambda sentences: user("Join these:\\n" + "\\n".join(sentences)) + assistant(gen("text")),
    )

Owns the order of the three. Parts are solved side by side on forks that have seen the division.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ...errors import ProgramError
from .winners import append, ended_behind, read_all

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..state import State
    from .winners import Part


def branch_solve_merge(
    s: State,
    branch: Part,
    parts: str,
    solve: Callable[[Any], Part],
    solution: str,
    merge: Callable[[list[Any]], Part],
) -> list[Any]:
    """Append `branch`, which sets the list `parts`; solve each part on a fork, which sets `solution`; append `merge` of the solutions.

    The solutions, in order of the parts; a part whose solution is no value is left out. ProgramError if `parts` is no list.
    """
    append(s, branch)
    divided = s[parts]
    if not isinstance(divided, list | tuple) or not divided:
        raise ProgramError(
            f"{parts!r} is {divided!r:.80}, no list of parts",
            place=parts,
            hint="Use schema=list[...]",
        )
    each = cast("Sequence[Any]", divided)
    with ended_behind() as opened:
        forks = s.fork(len(each))
        opened += forks
        for fork, part in zip(forks, each, strict=True):
            append(fork, solve(part))
        solutions = [value for _, value in read_all(forks, solution)[0]]
    append(s, merge(solutions))
    return solutions
