"""Which sequences of a step share leading pages. Owns one function over page tables; knows nothing of requests.

Attention may read a shared page once for a group instead of once per sequence, so a partition into groups saves
(members - 1) * shared pages each. Sequences form a tree by their page ids; from the root down, a set is either one group
at its common depth or is split at that depth and each part is asked again, whichever saves more. A set of S sequences is
split at most S - 1 times, each look is one vectorised comparison.
"""

from __future__ import annotations

import numpy as np

from .plan import I32, SharedGroup


def shared_groups(
    page_tables: I32, num_whole_pages: I32, sequences: I32
) -> tuple[SharedGroup, ...]:
    """Groups among `sequences` (indices into the rows of `page_tables` [S, P]), each of two or more.

    Only the first `num_whole_pages[s]` pages of a sequence, full before this step, may be shared.
    """
    groups: list[SharedGroup] = []
    if sequences.size >= 2 and page_tables.shape[1]:
        for part in _split(page_tables, num_whole_pages, sequences, 0):
            groups.extend(_best(page_tables, num_whole_pages, part)[1])
    return tuple(groups)


def _best(tables: I32, whole: I32, members: I32) -> tuple[int, list[SharedGroup]]:
    """The best grouping of sequences that share at least one page: (pages saved, groups)."""
    limit = int(whole[members].min())
    block = tables[members, :limit]
    differs = (block != block[0]).any(axis=0)
    depth = int(differs.argmax()) if differs.any() else limit
    as_one = (members.size - 1) * depth
    saved, groups = 0, list[SharedGroup]()
    if members.size > 2:
        for part in _split(tables, whole, members, depth):
            part_saved, part_groups = _best(tables, whole, part)
            saved += part_saved
            groups += part_groups
    if saved > as_one:
        return saved, groups
    return as_one, [SharedGroup(members, depth)]


def _split(tables: I32, whole: I32, members: I32, depth: int) -> list[I32]:
    """The parts, of two or more, whose members have the same page at `depth`; sequences that end before it drop out."""
    longer = members[whole[members] > depth]
    if longer.size < 2:
        return []
    pages = tables[longer, depth]
    order = np.argsort(pages, kind="stable")
    starts = np.flatnonzero(np.diff(pages[order])) + 1
    return [np.sort(part) for part in np.split(longer[order], starts) if part.size >= 2]
