"""Return stacks of a match, as shared sets: one object stands for all stacks that the same point of the text may have.

Owns `Stack` (a set of frames, each on top of another `Stack`) and the store that hash-conses, merges and abstracts them. Knows nothing of
bytes, tokens or masks. This is the graph-structured stack of generalised LR parsing in hash-consed form: frames that return to the same
place are one frame whose parents are merged, so ambiguity multiplies nothing.

A frame is (code, lo, hi, parent):
    code >= 0       return to that state
    code == BOTTOM  outermost frame: an end here completes the text
    code == HOLE    an unknown stack, number `lo` (only in abstract states, see `StackStore.abstract`)
    code <= -3      n = -3 - code tells by n % 3 what is running:
        0   a round of loop n // 3: `lo` further rounds are needed, `hi` more are possible (-1: any number)
        1   a member of set n // 3: `lo` is the bit set of the members begun, `hi` their count, as `MemberSet` counts
        2   the separator behind a member of set n // 3, with the same numbers
"""

from __future__ import annotations

from collections.abc import Iterable

from .member_sets import SetMove
from .token_costs import NEVER

BOTTOM = -1
HOLE = -2
_FIRST_LOOP = -3
LOOP, MEMBER, SEPARATOR = range(3)
ENDLESS = -1  # hi of a loop without upper bound
FAR = 1 << 62  # lo of a loop in an abstract state: more rounds than one token can make

_MAX_ABSTRACT_LOOPS = 3  # loops inside loops beyond this depth are holes too
_MAX_MERGE_DEPTH = 150  # deeper, frames of one place stay apart: exact still, only less shared

Frame = tuple[int, int, int, "Stack | None"]


class Stack:
    """An immutable, hash-consed set of frames (compared by identity).

    `cost`: least bytes from the end of the region above to the end of the text; `worst_cost`: the same if only its most expensive
    stack survives.
    """

    __slots__ = ("cost", "frames", "uid", "worst_cost")

    def __init__(self, uid: int, frames: tuple[Frame, ...], cost: int, worst_cost: int) -> None:
        self.uid = uid
        self.frames = frames
        self.cost = cost
        self.worst_cost = worst_cost


def loop_code(loop: int) -> int:
    """The frame code of a loop."""
    return _FIRST_LOOP - 3 * loop


def member_code(number: int) -> int:
    """The frame code of a set while a member runs."""
    return _FIRST_LOOP - 3 * number - 1


def separator_code(number: int) -> int:
    """The frame code of a set while its separator runs."""
    return _FIRST_LOOP - 3 * number - 2


def running(code: int) -> tuple[int, int]:
    """What a frame code below HOLE stands for: LOOP, MEMBER or SEPARATOR, and the loop or set."""
    number, kind = divmod(_FIRST_LOOP - code, 3)
    return kind, number


def is_loop(code: int) -> bool:
    """Whether the frame code is a loop's."""
    return code <= _FIRST_LOOP and (_FIRST_LOOP - code) % 3 == LOOP


def round_done(lo: int, hi: int) -> tuple[int, int]:
    """The bounds of a loop frame when one more round begins."""
    return (lo if lo in (0, FAR) else lo - 1), (hi if hi == ENDLESS else hi - 1)


class FrameCosts:
    """What a frame adds to the shortest completion."""

    def __init__(
        self,
        state_costs: list[int],
        round_costs: list[int],
        exits: list[int],
        sets: list[SetMove],
        set_costs: list[list[int]],
    ) -> None:
        """`round_costs` and `exits` by loop; `set_costs` are those of each set's regions."""
        self._state_costs = state_costs
        self._round_costs = round_costs
        self._exits = exits
        self._sets = sets
        self._set_costs = set_costs

    def cost(self, frame: Frame) -> int:
        """Least bytes of what `frame` itself still asks for, without its parents. A FAR loop counts as nothing: see `masks.py`."""
        code, lo, hi, parent = frame
        if parent is None:
            return 0
        if code >= 0:
            return self._state_costs[code]
        kind, loop = running(code)
        if kind != LOOP:
            return self._set_cost(loop, lo, hi, kind == SEPARATOR)
        rounds = 0 if lo == FAR else lo
        return min(NEVER, rounds * self._round_costs[loop] + self._state_costs[self._exits[loop]])

    def _set_cost(self, number: int, seen: int, count: int, is_separator: bool) -> int:
        move, costs = self._sets[number], self._set_costs[number]
        after = self._state_costs[move.exit]
        if not is_separator:
            return min(NEVER, move.cost(seen, count, costs) + after)
        rules = move.rules
        ways = (
            costs[item] + move.cost(*rules.begun(seen, count, item), costs)
            for item in rules.next_items(seen, count)
        )
        return min(NEVER, min(ways, default=NEVER) + after)


class StackStore:
    """Makes stacks. Equal frames over identical parents give the identical stack, until `clear`."""

    def __init__(self, costs: FrameCosts) -> None:
        self._costs = costs
        self._next_uid = 0
        self._known: dict[tuple[tuple[int, int, int, int], ...], Stack] = {}
        self._merged: dict[tuple[int, int], Stack] = {}

    def __len__(self) -> int:
        return len(self._known) + len(self._merged)

    def clear(self) -> None:
        """Forget all stacks. Those still held stay valid; equal new ones are just no longer identical to them."""
        self._known.clear()
        self._merged.clear()

    def bottom(self) -> Stack:
        """The stack of the outermost region."""
        return self.make([(BOTTOM, 0, 0, None)])

    def make(self, frames: Iterable[Frame]) -> Stack:
        """The stack of `frames` (at least one), pruned and in canonical order."""
        ordered = sorted(self._pruned(list(frames)), key=_frame_key)
        key = tuple(map(_frame_key, ordered))
        known = self._known.get(key)
        if known is None:
            costs = list(map(self._costs.cost, ordered))
            parents = [frame[3] for frame in ordered]
            known = self._known[key] = Stack(
                self._next_uid,
                tuple(ordered),
                min(
                    min(NEVER, c + (0 if p is None else p.cost))
                    for c, p in zip(costs, parents, strict=True)
                ),
                max(
                    min(NEVER, c + (0 if p is None else p.worst_cost))
                    for c, p in zip(costs, parents, strict=True)
                ),
            )
            self._next_uid += 1
        return known

    def _pruned(self, frames: list[Frame]) -> list[Frame]:
        """Without loop frames that another one of the same loop and parent covers: fewer rounds needed, more possible."""
        if len(frames) < 2:
            return frames
        groups: dict[tuple[int, int], list[tuple[int, int]]] = {}
        rest: list[Frame] = []
        parents: dict[int, Stack] = {}
        for frame in frames:
            code, lo, hi, parent = frame
            if parent is not None and is_loop(code):
                parents[parent.uid] = parent
                groups.setdefault((code, parent.uid), []).append((lo, hi))
            else:
                rest.append(frame)
        for (code, uid), bounds in groups.items():
            rest.extend((code, lo, hi, parents[uid]) for lo, hi in _widest(bounds))
        return rest

    def merge(self, left: Stack, right: Stack, depth: int = 0) -> Stack:
        """The union of two stacks."""
        if left is right:
            return left
        key = (left.uid, right.uid) if left.uid < right.uid else (right.uid, left.uid)
        known = self._merged.get(key)
        if known is None:
            if depth >= _MAX_MERGE_DEPTH:
                frames = {_frame_key(frame): frame for frame in (*left.frames, *right.frames)}
                known = self.make(frames.values())
            else:
                known = self.union((*left.frames, *right.frames), depth)
            self._merged[key] = known
        return known

    def union(self, frames: Iterable[Frame], depth: int = 0) -> Stack:
        """The stack of `frames`; those that return to the same place become one over the union of their parents."""
        found: dict[tuple[int, int, int], Stack | None] = {}
        for code, lo, hi, parent in frames:
            place = (code, lo, hi)
            other = found.get(place)
            if parent is not None and other is not None:
                parent = self.merge(other, parent, depth + 1)
            found[place] = parent
        return self.make((code, lo, hi, parent) for (code, lo, hi), parent in found.items())

    def abstract(
        self,
        stack: Stack,
        max_bytes: int,
        num_returns: int,
        holes: dict[Stack, int],
        num_loops: int = 0,
    ) -> Stack:
        """`stack` as far as the next `max_bytes` bytes can tell until a region's end goes back `num_returns` + 1 callers.

        What lies deeper becomes holes, numbered in `holes`; loop bounds beyond `max_bytes` rounds become FAR or ENDLESS (each round
        consumes a byte). The outermost frame stays: nothing can follow behind it.
        """
        if num_loops > _MAX_ABSTRACT_LOOPS:
            return self.make([(HOLE, holes.setdefault(stack, len(holes)), 0, None)])
        kept: list[Frame] = []
        cut: list[Frame] = []
        for frame in stack.frames:
            code, lo, hi, parent = frame
            if parent is None:
                kept.append(frame)
            elif is_loop(code):
                near_lo = FAR if lo > max_bytes else lo
                near_hi = ENDLESS if hi > max_bytes else hi
                parent = self.abstract(parent, max_bytes, num_returns, holes, num_loops + 1)
                kept.append((code, near_lo, near_hi, parent))
            elif num_returns:
                parent = self.abstract(parent, max_bytes, num_returns - 1, holes)
                kept.append((code, lo, hi, parent))
            else:
                cut.append(frame)
        if cut:
            deeper = stack if len(cut) == len(stack.frames) else self.make(cut)
            kept.append((HOLE, holes.setdefault(deeper, len(holes)), 0, None))
        return self.union(kept)

    def fill_holes(self, stack: Stack, fillings: tuple[Stack, ...]) -> Stack:
        """`stack` with each hole replaced by its filling."""
        frames: list[Frame] = []
        filled: Stack | None = None
        for frame in stack.frames:
            code, lo, hi, parent = frame
            if code == HOLE:
                filled = fillings[lo] if filled is None else self.merge(filled, fillings[lo])
            elif parent is None:
                frames.append(frame)
            else:
                frames.append((code, lo, hi, self.fill_holes(parent, fillings)))
        if filled is None:
            return self.make(frames)
        return self.merge(filled, self.make(frames)) if frames else filled


def _frame_key(frame: Frame) -> tuple[int, int, int, int]:
    return (frame[0], frame[1], frame[2], -1 if frame[3] is None else frame[3].uid)


def _widest(bounds: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The pairs (lo, hi) that no other pair covers, i.e. with a smaller or equal lo and a larger or equal hi."""
    if len(bounds) == 1:
        return bounds
    kept: list[tuple[int, int]] = []
    best = -2
    for lo, hi in sorted(set(bounds), key=lambda pair: (pair[0], -_reach(pair[1]))):
        if _reach(hi) > best:
            best = _reach(hi)
            kept.append((lo, hi))
    return kept


def _reach(hi: int) -> int:
    return FAR if hi == ENDLESS else hi
