"""UTF-8 ranges spell exactly the code points asked for."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from radixlm.grammar.expr import normal_ranges
from radixlm.grammar.utf8 import ByteTree, byte_sequences, byte_tree

_EDGES = [
    0,
    0x7F,
    0x80,
    0x7FF,
    0x800,
    0xFFF,
    0x1000,
    0xD7FF,
    0xE000,
    0xFFFF,
    0x10000,
    0x3FFFF,
    0x40000,
    0x10FFFF,
]
codes = st.one_of(
    st.sampled_from(_EDGES),
    st.sampled_from(_EDGES).map(lambda c: c + 1).filter(lambda c: c < 0x110000),
    st.integers(0, 0x10FFFF),
).filter(lambda c: not 0xD800 <= c < 0xE000)


def matches(tree: ByteTree, data: bytes) -> bool:
    if not data:
        return tree == ()
    tails = [tail for (low, high), tail in tree if low <= data[0] <= high]
    assert len(tails) <= 1, "the tree is deterministic"
    return any(matches(tail, data[1:]) for tail in tails)


@given(st.lists(st.tuples(codes, codes), min_size=1, max_size=4), st.lists(codes, max_size=8))
@settings(max_examples=200, deadline=None)
def test_sequences_and_tree_hold_exactly_the_code_points(
    pairs: list[tuple[int, int]], probes: list[int]
) -> None:
    ranges = normal_ranges((min(pair), max(pair)) for pair in pairs)
    sequences, tree = byte_sequences(ranges), byte_tree(ranges)
    edges = [c + step for pair in ranges for c in pair for step in (-1, 0, 1)]
    for code in [*probes, *edges]:
        if not 0 <= code <= 0x10FFFF or 0xD800 <= code < 0xE000:
            continue
        data = chr(code).encode()
        is_inside = any(low <= code <= high for low, high in ranges)
        found = [
            s
            for s in sequences
            if len(s) == len(data) and all(a <= b <= z for (a, z), b in zip(s, data, strict=True))
        ]
        assert len(found) == is_inside
        assert matches(tree, data) == is_inside


def test_all_of_unicode_is_nine_sequences() -> None:
    assert len(byte_sequences([(0, 0xD7FF), (0xE000, 0x10FFFF)])) == 9
