"""Which sequences of a step share leading pages. Owns one function over page tables; knows nothing of requests.

Attention may read a shared page once for a group instead of once per sequence, so a partition into groups saves
(members - 1) * shared pages each. Sequences form a tree by their page ids. The best partition follows from the leaves up:
at a node of depth d, below a possible group of depth D < d, either the node makes a group of what its subtrees pass up
(each worth d, minus d once), or passes everything up (each worth D). Both are tried, so the result is the best one.
At most S - 1 nodes for S sequences, found vectorised over pages; each is asked once for every depth above it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .plan import I32, SharedGroup


@dataclass(frozen=True, slots=True)
class _Node:
    """Two or more sequences that share exactly their first `depth` pages."""

    depth: int
    loose: list[int]  # members that share no deeper page with another
    children: list[_Node]


@dataclass(frozen=True, slots=True)
class _Choice:
    """The best partition below a node."""

    saved: int  # pages, where each member passed up counts the depth of the group above
    groups: list[SharedGroup]
    passed_up: list[int]


_Known = dict[tuple[int, int], _Choice]  # by node identity and depth of the group above


def shared_groups(
    page_tables: I32, num_whole_pages: I32, sequences: I32
) -> tuple[SharedGroup, ...]:
    """Groups among `sequences` (indices into the rows of `page_tables` [S, P]), each of two or more.

    Only the first `num_whole_pages[s]` pages of a sequence, full before this step, may be shared.
    """
    if sequences.size < 2 or not page_tables.shape[1]:
        return ()
    groups: list[SharedGroup] = []
    for part in _parts(page_tables, num_whole_pages, sequences, 0):
        groups += _best(_node(page_tables, num_whole_pages, part), 0, {}).groups
    return tuple(groups)


def _node(tables: I32, whole: I32, members: I32) -> _Node:
    """The tree of sequences that share at least one page."""
    limit = int(whole[members].min())
    block = tables[members, :limit]
    differs = (block != block[0]).any(axis=0)
    depth = int(differs.argmax()) if differs.any() else limit
    parts = _parts(tables, whole, members, depth) if members.size > 2 else []
    in_parts = {i for part in parts for i in part.tolist()}
    loose = [i for i in members.tolist() if i not in in_parts]
    return _Node(depth, loose, [_node(tables, whole, part) for part in parts])


def _parts(tables: I32, whole: I32, members: I32, depth: int) -> list[I32]:
    """The sets, of two or more, whose members have the same page at `depth`."""
    longer = members[whole[members] > depth]
    if longer.size < 2:
        return []
    pages = tables[longer, depth]
    order = np.argsort(pages, kind="stable")
    starts = np.flatnonzero(np.diff(pages[order])) + 1
    if starts.size == longer.size - 1:
        return []  # nobody shares: the usual step of unrelated streams
    return [part for part in np.split(longer[order], starts) if part.size >= 2]


def _best(node: _Node, depth_above: int, known: _Known) -> _Choice:
    choice = known.get((id(node), depth_above))
    if choice is None:
        choice = known[id(node), depth_above] = _group_or_pass_up(node, depth_above, known)
    return choice


def _group_or_pass_up(node: _Node, depth_above: int, known: _Known) -> _Choice:
    apart = _join(node, depth_above, known)
    together = _join(node, node.depth, known)
    if together.saved - node.depth <= apart.saved or len(together.passed_up) < 2:
        return apart
    members = np.array(sorted(together.passed_up), dtype=np.int32)
    groups = [*together.groups, SharedGroup(members, node.depth)]
    return _Choice(together.saved - node.depth, groups, [])


def _join(node: _Node, depth: int, known: _Known) -> _Choice:
    """The subtrees' best partitions when members passed up are worth `depth` pages each."""
    saved, groups, passed_up = depth * len(node.loose), list[SharedGroup](), list(node.loose)
    for child in node.children:
        choice = _best(child, depth, known)
        saved += choice.saved
        groups += choice.groups
        passed_up += choice.passed_up
    return _Choice(saved, groups, passed_up)
