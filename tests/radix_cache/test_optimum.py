"""The two offline optima against definitions by brute force."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radixlm.radix_cache.optimum import clairvoyant_tokens, fewest_tokens

SEQUENCES = st.lists(st.lists(st.integers(0, 2), max_size=4).map(tuple), max_size=6)


def prefixes(sequence: Sequence[int]) -> list[tuple[int, ...]]:
    return [tuple(sequence[: i + 1]) for i in range(len(sequence))]


def best_of_all_evictions(sequences: Sequence[tuple[int, ...]], capacity: int) -> int:
    """Tokens computed when every choice of what to keep is tried. What is kept of a tree is closed towards the root."""

    @cache
    def cost(time: int, held: frozenset[tuple[int, ...]]) -> int:
        if time == len(sequences):
            return 0
        path = prefixes(sequences[time])
        num_hit = next((i for i, each in enumerate(path) if each not in held), len(path))
        there = held | set(path)
        return len(path) - num_hit + min(cost(time + 1, kept) for kept in kept_of(there, path))

    def kept_of(there: frozenset[tuple[int, ...]], path: list[tuple[int, ...]]):
        if len(there) <= capacity:
            return {there}
        parents = {each[:-1] for each in there}
        leaves = [each for each in there if each not in parents and each not in path]
        found: set[frozenset[tuple[int, ...]]] = set()
        for leaf in leaves:
            found |= kept_of(there - {leaf}, path)
        return found

    return cost(0, frozenset())


@given(SEQUENCES)
def test_the_fewest_are_the_distinct_prefixes(sequences: list[tuple[int, ...]]) -> None:
    assert fewest_tokens(sequences) == len({p for each in sequences for p in prefixes(each)})


@given(SEQUENCES, st.integers(4, 8))
@settings(max_examples=60, deadline=None)
def test_the_clairvoyant_cache_is_as_good_as_the_best_of_all(
    sequences: list[tuple[int, ...]], capacity: int
) -> None:
    assert clairvoyant_tokens(sequences, capacity) == best_of_all_evictions(sequences, capacity)


@given(SEQUENCES)
def test_a_clairvoyant_cache_that_is_large_computes_the_fewest(
    sequences: list[tuple[int, ...]],
) -> None:
    assert clairvoyant_tokens(sequences, 10_000) == fewest_tokens(sequences)


def test_what_is_needed_again_latest_goes() -> None:
    a, b, c = (1, 1), (2, 2), (3, 3)
    assert clairvoyant_tokens([a, b, c, a, b, c], 4) == 8  # LRU: 12


def test_a_sequence_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="3 tokens does not fit 2"):
        clairvoyant_tokens([(1, 2, 3)], 2)
