"""UTF-8 as byte ranges: which byte sequences spell the code points of a set.

Owns the split of code point ranges into sequences of byte ranges, and their arrangement as a deterministic tree with shared tails.
Knows nothing of expressions or automata. The split is the usual one of byte-oriented regex engines: cut where the encoded length
changes, then wherever a continuation byte would not run over its full range.
"""

from __future__ import annotations

from collections.abc import Iterable

ByteRange = tuple[int, int]
# One level of the tree: (first byte range, tail); the tail of a complete code point is ().
ByteTree = tuple[tuple[ByteRange, "ByteTree"], ...]

_LENGTH_CUTS = (0x7F, 0x7FF, 0xFFFF, 0x10FFFF)


def byte_sequences(ranges: Iterable[tuple[int, int]]) -> list[tuple[ByteRange, ...]]:
    """The sequences of byte ranges that spell exactly the code points of the inclusive `ranges` (no surrogates), in order."""
    found: list[tuple[ByteRange, ...]] = []
    for low, high in ranges:
        for cut in _LENGTH_CUTS:
            if low > high:
                break
            if low <= cut:
                _split(low, min(high, cut), found)
                low = cut + 1
    return found


def _split(low: int, high: int, found: list[tuple[ByteRange, ...]]) -> None:
    """Append the sequences of low..high, whose encodings all have the same length."""
    work = [(low, high)]
    while work:
        low, high = work.pop()
        length = len(chr(low).encode())
        for level in range(1, length):
            tail = (1 << (6 * level)) - 1
            if (low & ~tail) == (high & ~tail):
                continue
            if low & tail:
                work += [((low | tail) + 1, high), (low, low | tail)]
                break
            if (high & tail) != tail:
                work += [(high & ~tail, high), (low, (high & ~tail) - 1)]
                break
        else:
            found.append(tuple(zip(chr(low).encode(), chr(high).encode(), strict=True)))


def byte_tree(ranges: Iterable[tuple[int, int]]) -> ByteTree:
    """The sequences as a deterministic tree; equal tails are equal (and mostly identical) tuples."""
    return _tree(byte_sequences(ranges))


def _tree(sequences: list[tuple[ByteRange, ...]]) -> ByteTree:
    groups: dict[ByteRange, list[tuple[ByteRange, ...]]] = {}
    for sequence in sequences:
        groups.setdefault(sequence[0], []).append(sequence[1:])
    return tuple((first, _tree(tails) if tails[0] else ()) for first, tails in groups.items())
