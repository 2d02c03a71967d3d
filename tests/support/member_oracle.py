"""`Members` by its definition: which texts of members, in a row, satisfy it? Slow, and plain enough to be believed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from radixlm.grammar.expr import Expr, Members


def members_ends(part: Members, start: int, ends: Callable[[Expr, int], Iterable[int]]) -> set[int]:
    """Where a match of `part` from `start` may end; `ends` says the same of its items and separator."""
    found: set[int] = set()
    # (position, items that are there, index of the last one, how many came); a count above the bounds says no more
    most = max(part.lo, part.hi or 0) + 1
    pending: list[tuple[int, frozenset[int], int, int]] = [(start, frozenset(), -1, 0)]
    seen = set(pending)
    while pending:
        position, present, last, count = pending.pop()
        if _is_complete(part, present, count):
            found.add(position)
        begins = set(ends(part.separator, position)) if count else {position}
        for index, item in enumerate(part.items):
            if index in present and not item.is_run:
                continue
            if part.is_ordered and index < last:
                continue
            for begin in begins:
                for end in ends(item.text, begin):
                    after = (end, present | {index}, index, min(count + 1, most))
                    if after not in seen:
                        seen.add(after)
                        pending.append(after)
    return found


def _is_complete(part: Members, present: frozenset[int], count: int) -> bool:
    if count < part.lo or (part.hi is not None and count > part.hi):
        return False
    return any(c.needs <= present and not c.bars & present for c in part.clauses)
