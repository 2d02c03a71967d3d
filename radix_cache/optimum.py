"""The fewest tokens that a set of requests can be computed with, to hold what an engine computed against.

Owns two offline optima over the token sequences of all requests. Knows nothing of engines. What a request must compute is its prompt and its
output but for the last token, behind which nothing is sampled: callers pass sequences cut there.

- `fewest_tokens`: each distinct prefix once. No order of the requests and no cache, of whatever size, needs less.
- `clairvoyant_tokens`: the requests one after another in a given order, with a cache of bounded size that evicts what is needed
  again latest (L. A. Belady, "A study of replacement algorithms for a virtual-storage computer", 1966), on a tree: only ends of paths leave,
  which the rule itself sees to, since a token is needed no later than whatever stands behind it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import count

_NEVER = 1 << 60


def fewest_tokens(sequences: Iterable[Sequence[int]]) -> int:
    """Distinct non-empty prefixes of the sequences."""
    ordered = sorted(map(tuple, sequences))
    size, before = 0, ()
    for sequence in ordered:
        pairs = zip(sequence, before, strict=False)
        shared = next(
            (i for i, (a, b) in enumerate(pairs) if a != b), min(len(sequence), len(before))
        )
        size += len(sequence) - shared
        before = sequence
    return size


def clairvoyant_tokens(sequences: Sequence[Sequence[int]], capacity: int) -> int:
    """Tokens computed for the sequences in their order, when a cache of `capacity` tokens knows the future. ValueError if one is longer."""
    paths = _paths(sequences)
    uses: dict[int, list[int]] = {}
    depth: dict[int, int] = {}
    for time, path in enumerate(paths):
        for place, node in enumerate(path):
            uses.setdefault(node, []).append(time)
            depth[node] = place
    resident: set[int] = set()
    ends: list[tuple[int, int, int, int]] = []  # needed again latest first, then deepest
    num_computed = 0
    for time, path in enumerate(paths):
        if len(path) > capacity:
            raise ValueError(f"a sequence of {len(path)} tokens does not fit {capacity}")
        num_hit = next((i for i, node in enumerate(path) if node not in resident), len(path))
        num_computed += len(path) - num_hit
        resident.update(path)
        for node in path:
            heappush(ends, (-_next_use(uses[node], time), -depth[node], time, node))
        _evict(resident, ends, capacity, uses, time, frozenset(path))
    return num_computed


def _paths(sequences: Iterable[Sequence[int]]) -> list[list[int]]:
    """Each sequence as nodes of one tree of tokens."""
    numbers = count(1)
    children: dict[tuple[int, int], int] = {}
    paths: list[list[int]] = []
    for sequence in sequences:
        node, path = 0, list[int]()
        for token_id in sequence:
            step = (node, token_id)
            if step not in children:
                children[step] = next(numbers)
            node = children[step]
            path.append(node)
        paths.append(path)
    return paths


def _next_use(times: list[int], now: int) -> int:
    place = bisect_right(times, now)
    return times[place] if place < len(times) else _NEVER


def _evict(
    resident: set[int],
    ends: list[tuple[int, int, int, int]],
    capacity: int,
    uses: dict[int, list[int]],
    now: int,
    in_use: frozenset[int],
) -> None:
    held: list[tuple[int, int, int, int]] = []
    while len(resident) > capacity:
        entry = heappop(ends)
        node = entry[3]
        if node not in resident or -entry[0] != _next_use(uses[node], now):
            continue  # outdated: it left, or was used since
        if node in in_use:
            held.append(entry)
        else:
            resident.discard(node)
    for entry in held:
        heappush(ends, entry)
