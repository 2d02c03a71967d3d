"""The machine of a program: the set of all configurations after some bytes, as one interned state.

Owns `MatchState`, the byte step with its closure, and the transition table that trie walks index. Knows nothing of tokens or masks. A
configuration is (program state, stack); a state holds one merged stack per program state. Steps are computed on first use and kept, which
determinises lazily what the text and the trie walks really visit. Everything kept can be dropped at any time (`StateStore` empties itself
past its budget): states held by a matcher stay valid and are entered into the table again when they are used.
"""

from __future__ import annotations

import numpy as np

from ..errors import GrammarError, InvariantError
from .moves import ProgramMoves
from .program import I32, GrammarProgram
from .stacks import (
    BOTTOM,
    HOLE,
    LOOP,
    MEMBER,
    Frame,
    FrameCosts,
    Stack,
    StackStore,
    loop_code,
    member_code,
    round_done,
    running,
    separator_code,
)
from .token_costs import NEVER

UNKNOWN = -2
DEAD = -1
_MAX_STATES = 60_000
_MAX_STACKS = 400_000
# of memory, measured roughly: they keep a bound on it honest
_STATE_BYTES = 500
_CONFIG_BYTES = 130
_STACK_BYTES = 600


class MatchState:
    """All configurations after some text. `holes`: abstract stacks that an end has returned into (abstract states only)."""

    __slots__ = (
        "abstractions",
        "configs",
        "cost",
        "generation",
        "holes",
        "index",
        "is_accepting",
        "live_bytes",
    )

    def __init__(
        self,
        configs: tuple[tuple[int, Stack], ...],
        is_accepting: bool,
        holes: tuple[int, ...],
        cost: int,
    ) -> None:
        self.configs = configs
        self.is_accepting = is_accepting
        self.holes = holes
        self.cost = cost  # least bytes to a complete text
        self.index = -1
        self.generation = -1
        self.live_bytes: tuple[int, ...] | None = None
        self.abstractions: dict[tuple[int, int, int], tuple[MatchState, tuple[Stack, ...]]] = {}


class _Closing:
    """One closure in progress."""

    def __init__(self) -> None:
        self.configs: dict[int, Stack] = {}
        self.seen: dict[int, Stack] = {}
        self.visited: set[tuple[int, int]] = set()  # states, and stacks that were merged there
        self.frames: dict[int, list[Frame]] = {}  # region to enter -> frames to push
        self.work: list[tuple[int, Stack]] = []
        self.holes: set[int] = set()
        self.is_accepting = False


class StateStore:
    """Interned states of one program and their transitions by byte class."""

    def __init__(self, program: GrammarProgram, state_costs: list[int]) -> None:
        self.program = program
        self.moves = moves = ProgramMoves(program)
        self.num_classes = moves.num_classes
        self.class_of_byte = moves.class_of_byte
        self.state_costs = state_costs
        round_costs = [state_costs[moves.entries[body]] for body in moves.loop_body]
        set_costs = [[state_costs[moves.entries[r]] for r in s.regions()] for s in moves.sets]
        self.stacks = StackStore(
            FrameCosts(state_costs, round_costs, moves.loop_exit, moves.sets, set_costs)
        )
        self._generation = 0
        self._num_configs = 0  # of all known states together
        self._known: dict[tuple[object, ...], MatchState] = {}
        self.states: list[MatchState] = []
        self.table: I32 = np.full((256, self.num_classes), UNKNOWN, dtype=np.int32)
        self.has_holes = np.zeros(256, dtype=bool)  # per row of the table
        start = self._close([(program.start, self.stacks.bottom())])
        if start is None:
            raise GrammarError("the compiled grammar is damaged: it accepts nothing")
        self.start = start

    @property
    def num_bytes(self) -> int:
        """About the memory of what is kept."""
        return (
            self.table.nbytes
            + _STATE_BYTES * len(self._known)
            + _CONFIG_BYTES * self._num_configs
            + _STACK_BYTES * len(self.stacks)
        )

    # ------------------------------------------------------------------------------------ steps

    def step_bytes(self, state: MatchState, data: bytes) -> MatchState | None:
        """The state after `data`, or None if no configuration survives."""
        current: MatchState | None = state
        for byte in data:
            current = self.step(current, self.class_of_byte[byte])
            if current is None:
                return None
        return current

    def step(self, state: MatchState, byte_class: int) -> MatchState | None:
        """The state after one byte of the class."""
        index = self.index(state)
        after = int(self.table[index, byte_class])
        if after == UNKNOWN:
            after = self.fill(index, byte_class)
        return self.states[after] if after >= 0 else None

    def fill(self, index: int, byte_class: int) -> int:
        """Compute and store one entry of the table; the index of the state after, or DEAD."""
        state = self.states[index]
        work = [
            (target, stack)
            for source, stack in state.configs
            for target in self.moves.targets(source).get(byte_class, ())
        ]
        after = self._close(work) if work else None
        result = DEAD if after is None else self.index(after)
        self.table[index, byte_class] = result
        return result

    def live_bytes(self, state: MatchState) -> tuple[int, ...]:
        """The bytes that some configuration can take, in no particular order."""
        if state.live_bytes is None:
            classes = {c for source, _ in state.configs for c in self.moves.targets(source)}
            state.live_bytes = self.moves.bytes_of(classes)
        return state.live_bytes

    # ------------------------------------------------------------------------------------ closure

    def _close(self, work: list[tuple[int, Stack]]) -> MatchState | None:
        """The state of everything `work` leads to without a byte; None if that is nothing."""
        if len(work) == 1:
            plain = self.moves.empty_moves(work[0][0]).plain_state
            if plain >= 0:
                return self._intern(((plain, work[0][1]),), False, ())
        closing = _Closing()
        closing.work = work
        return self._finish(closing)

    def _finish(self, closing: _Closing) -> MatchState | None:
        while closing.work:
            self._visit(closing, *closing.work.pop())
        entered = -1
        while closing.frames:
            # A region is entered once all its callers are known: they have lower ranks.
            region = min(closing.frames, key=self.moves.ranks.__getitem__)
            if self.moves.ranks[region] <= entered:
                raise GrammarError(
                    "the compiled grammar is damaged: it calls its regions in a circle"
                )
            entered = self.moves.ranks[region]
            stack = self.stacks.union(closing.frames.pop(region))
            self._enter(closing, self.moves.entries[region], stack)
        if not closing.configs and not closing.is_accepting and not closing.holes:
            return None
        configs = tuple(sorted(closing.configs.items()))
        return self._intern(configs, closing.is_accepting, tuple(sorted(closing.holes)))

    def _visit(self, closing: _Closing, source: int, stack: Stack) -> None:
        before = closing.seen.get(source)
        if before is not None:
            stack = self.stacks.merge(before, stack)
            if stack is before or (source, stack.uid) in closing.visited:
                return  # equal sets of stacks may be written in two ways, one after the other
            closing.visited |= {(source, before.uid), (source, stack.uid)}
        closing.seen[source] = stack
        if self._enter(closing, source, stack):
            self._return(closing, stack)

    def _enter(self, closing: _Closing, source: int, stack: Stack) -> bool:
        """Take the byte states, calls and loops that `source` leads to; whether it also leads to an end."""
        moves = self.moves.empty_moves(source)
        for state in moves.byte_states:
            before = closing.configs.get(state)
            closing.configs[state] = stack if before is None else self.stacks.merge(before, stack)
        for region, target in moves.calls:
            closing.frames.setdefault(region, []).append((target, 0, 0, stack))
        for loop in moves.loops:
            lo, hi = round_done(self.moves.loop_lo[loop], self.moves.loop_hi[loop])
            closing.frames.setdefault(self.moves.loop_body[loop], []).append(
                (loop_code(loop), lo, hi, stack)
            )
        for number in moves.sets:
            self._begin_members(closing, number, 0, 0, stack)
        return moves.is_end

    def _begin_members(
        self, closing: _Closing, number: int, seen: int, count: int, parent: Stack
    ) -> None:
        """Enter every member that may come in a set now."""
        move = self.moves.sets[number]
        code = member_code(number)
        for item in move.rules.next_items(seen, count):
            frame = (code, *move.rules.begun(seen, count, item), parent)
            closing.frames.setdefault(move.members[item], []).append(frame)

    def _return(self, closing: _Closing, stack: Stack) -> None:
        """Leave the region above `stack`."""
        for frame in stack.frames:
            code, lo, hi, parent = frame
            if parent is None:
                if code == HOLE:
                    closing.holes.add(lo)
                else:
                    closing.is_accepting = closing.is_accepting or code == BOTTOM
            elif code >= 0:
                closing.work.append((code, parent))
            else:
                kind, loop = running(code)
                if kind != LOOP:
                    self._return_to_set(closing, frame, kind, loop, parent)
                    continue
                if lo == 0:
                    closing.work.append((self.moves.loop_exit[loop], parent))
                if hi != 0:
                    again = (code, *round_done(lo, hi), parent)
                    closing.frames.setdefault(self.moves.loop_body[loop], []).append(again)

    def _return_to_set(
        self, closing: _Closing, frame: Frame, kind: int, number: int, parent: Stack
    ) -> None:
        """Go on behind a member or a separator of a set."""
        _, seen, count, _ = frame
        move = self.moves.sets[number]
        if kind == MEMBER:
            if move.rules.is_done(seen, count):
                closing.work.append((move.exit, parent))
            if move.separator >= 0:
                if any(True for _ in move.rules.next_items(seen, count)):
                    between = (separator_code(number), seen, count, parent)
                    closing.frames.setdefault(move.separator, []).append(between)
                return
        self._begin_members(closing, number, seen, count, parent)

    # ------------------------------------------------------------------------------------ interning

    def _intern(
        self, configs: tuple[tuple[int, Stack], ...], is_accepting: bool, holes: tuple[int, ...]
    ) -> MatchState:
        key = (is_accepting, holes, *((source, stack.uid) for source, stack in configs))
        known = self._known.get(key)
        if known is None:
            cost = 0
            if not is_accepting and not holes:
                cost = min(
                    NEVER, *(self.state_costs[source] + stack.cost for source, stack in configs)
                )
            known = self._known[key] = MatchState(configs, is_accepting, holes, cost)
            self._num_configs += len(configs)
        return known

    def index(self, state: MatchState) -> int:
        """The row of `state` in the table, entered now if it is not there."""
        if state.generation != self._generation:
            if len(self.states) == len(self.table):
                fresh = np.full(self.table.shape, UNKNOWN, dtype=np.int32)
                self.table = np.concatenate((self.table, fresh))
                self.has_holes = np.concatenate((self.has_holes, np.zeros(len(fresh), dtype=bool)))
            state.index = len(self.states)
            state.generation = self._generation
            self.states.append(state)
            self.has_holes[state.index] = bool(state.holes)
        return state.index

    def trim(self) -> bool:
        """Forget everything if it has grown past the budget; whether it did. Only between walks: indices become invalid."""
        if len(self.states) <= _MAX_STATES and len(self.stacks) <= _MAX_STACKS:
            return False
        self._generation += 1
        self._num_configs = 0
        self._known.clear()
        self.states = []
        self.table = np.full((256, self.num_classes), UNKNOWN, dtype=np.int32)
        self.has_holes = np.zeros(256, dtype=bool)
        self.stacks.clear()
        return True

    # ------------------------------------------------------------------------------------ abstraction

    def abstract(
        self, state: MatchState, max_bytes: int, num_returns: int
    ) -> tuple[MatchState, tuple[Stack, ...]]:
        """The state as far as `max_bytes` bytes can tell up to `num_returns` callers back, and the stacks behind its holes."""
        key = (self._generation, max_bytes, num_returns)
        known = state.abstractions.get(key)
        if known is None:
            numbers: dict[Stack, int] = {}
            configs = tuple(
                (source, self.stacks.abstract(stack, max_bytes, num_returns, numbers))
                for source, stack in state.configs
            )
            known = state.abstractions[key] = (
                self._intern(configs, state.is_accepting, ()),
                tuple(numbers),
            )
        return known

    def concrete(self, state: MatchState, fillings: tuple[Stack, ...]) -> MatchState:
        """An abstract state with its holes filled; an end that had returned into a hole returns into its filling."""
        closing = _Closing()
        for source, stack in state.configs:
            closing.configs[source] = self.stacks.fill_holes(stack, fillings)
        for hole in state.holes:
            self._return(closing, fillings[hole])
        found = self._finish(closing)
        if found is None:
            raise InvariantError("an abstract state lost all its configurations")
        return found
