"""Groups of sequences over common pages: valid, disjoint, and saving as much as the best partition."""

from __future__ import annotations

from functools import cache

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from radixlm.runtime.shared_groups import shared_groups


def groups_of(rows: list[list[int]], whole: list[int] | None = None):
    width = max(map(len, rows))
    tables = np.array([row + [0] * (width - len(row)) for row in rows], dtype=np.int32)
    lengths = np.array(whole or [len(row) for row in rows], dtype=np.int32)
    return shared_groups(tables, lengths, np.arange(len(rows), dtype=np.int32))


def best_saving(rows: list[tuple[int, ...]]) -> int:
    """By trying every partition."""

    def depth(members) -> int:
        length = 0
        while (
            all(len(rows[i]) > length for i in members)
            and len({rows[i][length] for i in members}) == 1
        ):
            length += 1
        return length

    @cache
    def best(rest: tuple[int, ...]) -> int:
        if len(rest) < 2:
            return 0
        first, others = rest[0], rest[1:]
        saved = best(others)
        for bits in range(1, 1 << len(others)):
            chosen = [o for i, o in enumerate(others) if bits >> i & 1]
            remaining = tuple(o for o in others if o not in chosen)
            saved = max(saved, len(chosen) * depth((first, *chosen)) + best(remaining))
        return saved

    return best(tuple(range(len(rows))))


def paths(seed_paths: list[list[int]]) -> list[tuple[int, ...]]:
    """Page ids such that equal pages mean equal prefixes, as in a tree."""
    known: dict[tuple[int, ...], int] = {}
    return [
        tuple(known.setdefault(tuple(p[: i + 1]), len(known) + 1) for i in range(len(p)))
        for p in seed_paths
    ]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 1), min_size=0, max_size=4), min_size=1, max_size=6))
def test_the_partition_saves_as_much_as_any(seed_paths):
    rows = paths(seed_paths)
    if not any(rows):
        return
    groups = groups_of([list(row) for row in rows])
    saved = 0
    seen: set[int] = set()
    for group in groups:
        members = group.sequences.tolist()
        assert len(members) >= 2
        assert not seen & set(members)
        seen |= set(members)
        heads = {rows[i][: group.num_shared_pages] for i in members}
        assert len(heads) == 1
        assert len(heads.pop()) == group.num_shared_pages >= 1
        saved += (len(members) - 1) * group.num_shared_pages
    assert saved == best_saving(rows)


def test_two_deep_groups_beat_one_shallow_group():
    rows = [
        [1, *range(10, 30), 40],
        [1, *range(10, 30), 41],
        [1, *range(50, 70), 80],
        [1, *range(50, 70), 81],
    ]
    groups = groups_of(rows)
    assert [(g.sequences.tolist(), g.num_shared_pages) for g in groups] == [
        ([0, 1], 21),
        ([2, 3], 21),
    ]


def test_a_page_that_is_not_full_is_not_shared():
    assert groups_of([[1, 2], [1, 2]], whole=[1, 2])[0].num_shared_pages == 1
    assert groups_of([[1, 2], [1, 2]], whole=[0, 2]) == ()


def test_a_long_chain_of_prefixes_of_one_another_simply_finishes():
    chain = list(range(1, 65))
    groups = groups_of([chain[:length] for length in range(1, 65)])
    assert sum((g.sequences.size - 1) * g.num_shared_pages for g in groups) > 64 * 12
