"""The byte-level automaton while it is being built: a graph of states with byte edges, calls and counted loops.

Owns the mutable `Graph` and the passes every graph needs: closure over empty moves, entries that must consume, removal of states that
cannot reach acceptance. Knows nothing of expressions, tokens or the flat program. Regions are the automaton's subroutines: a call pushes
a return address, an end state pops it. Every region is entered through an entry that cannot end before it has consumed a byte (whoever
calls a region that may be empty has an empty move beside the call), so no pop ever happens at the position of its push.

    state --byte set--> state        state --literal bytes--> state        state --(empty)--> state
    state --call region--> state     state --loop: region lo..hi times--> state     state.is_end: return to the caller
    state --set: some of several regions, by the rules of a member set--> state
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..errors import GrammarError
from .expr import Limits
from .member_sets import SetMove


@dataclass(slots=True)
class GraphState:
    """One state; all moves are alternatives.

    `edges` are (byte set, target), `literals` (bytes, target), `calls` (region, return state), `loops` indices into `Graph.loops`,
    `sets` into `Graph.sets`.
    """

    edges: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    literals: list[tuple[bytes, int]] = field(default_factory=list[tuple[bytes, int]])
    empty: list[int] = field(default_factory=list[int])
    calls: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    loops: list[int] = field(default_factory=list[int])
    sets: list[int] = field(default_factory=list[int])
    is_end: bool = False

    def is_bare(self) -> bool:
        """Whether no byte edge, literal, call, loop or set leaves here."""
        return not (self.edges or self.literals or self.calls or self.loops or self.sets)


@dataclass(frozen=True, slots=True)
class Loop:
    """`body` at least once and `lo` to `hi` times (hi=None: without end), then on to `exit`."""

    body: int  # region
    lo: int
    hi: int | None
    exit: int  # state


@dataclass(slots=True)
class Region:
    """A subroutine. `entry` is set once its language is known: like `start`, but it consumes before it ends."""

    start: int
    entry: int = -1


@dataclass(slots=True)
class Graph:
    """States, loops, sets and regions, by index."""

    limits: Limits
    states: list[GraphState] = field(default_factory=list[GraphState])
    loops: list[Loop] = field(default_factory=list[Loop])
    sets: list[SetMove] = field(default_factory=list[SetMove])
    regions: list[Region] = field(default_factory=list[Region])

    def new_state(self) -> int:
        """A fresh state without moves."""
        if len(self.states) >= self.limits.states:
            raise GrammarError(
                f"the grammar needs more than limits.states={self.limits.states} automaton states",
                keyword="states",
            )
        self.states.append(GraphState())
        return len(self.states) - 1

    def new_region(self, start: int, entry: int = -1) -> int:
        """A fresh region starting at `start`."""
        self.regions.append(Region(start, entry))
        return len(self.regions) - 1

    def add_edge(self, source: int, mask: int, target: int) -> None:
        """A move over any byte of `mask`; none if the set is empty."""
        if mask:
            self.states[source].edges.append((mask, target))

    def closure(self, source: int) -> list[int]:
        """The states reached from `source` by empty moves, itself included."""
        found = [source]
        seen = {source}
        for state in found:
            for target in self.states[state].empty:
                if target not in seen:
                    seen.add(target)
                    found.append(target)
        return found

    def may_be_empty(self, source: int) -> bool:
        """Whether an end state is reached from `source` without consuming."""
        return any(self.states[state].is_end for state in self.closure(source))

    def consuming_entry(self, source: int) -> int:
        """A state that accepts what `source` accepts, the empty string excepted."""
        entry = self.new_state()
        merged = self.states[entry]
        for state in map(self.states.__getitem__, self.closure(source)):
            merged.edges.extend(state.edges)
            merged.literals.extend(state.literals)
            merged.calls.extend(state.calls)
            merged.loops.extend(state.loops)
            merged.sets.extend(state.sets)
        return entry

    def set_entries(self) -> None:
        """Give every region that lacks one its consuming entry."""
        for region in self.regions:
            if region.entry < 0:
                region.entry = self.consuming_entry(region.start)

    def remove_dead_ends(self) -> None:
        """Cut every move that cannot lead to an end state (of its region, and through regions that can end)."""
        live = self._live_states()
        self.sets = [self._live_part(move, live) for move in self.sets]
        for state in self.states:
            state.edges = [(mask, target) for mask, target in state.edges if live[target]]
            state.literals = [(data, target) for data, target in state.literals if live[target]]
            state.empty = [target for target in state.empty if live[target]]
            state.calls = [
                (region, target)
                for region, target in state.calls
                if live[target] and live[self.regions[region].entry]
            ]
            state.loops = [
                loop for loop in state.loops if all(live[s] for s in self._loop_needs(loop))
            ]
            state.sets = [index for index in state.sets if self._is_live_set(index, live)]

    def _loop_needs(self, loop: int) -> tuple[int, int]:
        return self.regions[self.loops[loop].body].entry, self.loops[loop].exit

    def _set_needs(self, index: int) -> list[int]:
        move = self.sets[index]
        return [*(self.regions[region].entry for region in move.regions()), move.exit]

    def _is_live_set(self, index: int, live: list[bool]) -> bool:
        move = self._live_part(self.sets[index], live)
        return live[move.exit] and any(True for _ in move.rules.next_items(0, 0))

    def _live_part(self, move: SetMove, live: list[bool]) -> SetMove:
        """The set without members that cannot end; without a separator that can, it is one member."""
        entries = [live[self.regions[region].entry] for region in move.members]
        rules = move.rules.without([item for item, is_live in enumerate(entries) if not is_live])
        members = tuple(r for r, is_live in zip(move.members, entries, strict=True) if is_live)
        separator = move.separator
        if separator >= 0 and not live[self.regions[separator].entry]:
            separator, rules = -1, rules.at_most_one()
        return SetMove(members, separator, rules, move.exit)

    def _live_states(self) -> list[bool]:
        """Which states reach an end state. A call or loop needs both its region's entry and where it goes on."""
        waiting = self._sources()
        live = [state.is_end for state in self.states]
        work = [index for index, is_live in enumerate(live) if is_live]
        while work:
            for source in waiting[work.pop()]:
                if not live[source] and self._is_live_now(self.states[source], live):
                    live[source] = True
                    work.append(source)
        return live

    def _sources(self) -> list[list[int]]:
        """For each state, those that it may make live."""
        waiting: list[list[int]] = [[] for _ in self.states]
        for source, state in enumerate(self.states):
            for _, target in state.edges:
                waiting[target].append(source)
            for _, target in state.literals:
                waiting[target].append(source)
            for target in state.empty:
                waiting[target].append(source)
            for region, target in state.calls:
                waiting[target].append(source)
                waiting[self.regions[region].entry].append(source)
            for loop in state.loops:
                for needed in self._loop_needs(loop):
                    waiting[needed].append(source)
            for index in state.sets:
                for needed in self._set_needs(index):
                    waiting[needed].append(source)
        return waiting

    def _is_live_now(self, state: GraphState, live: list[bool]) -> bool:
        return (
            any(live[target] for _, target in state.edges)
            or any(live[target] for _, target in state.literals)
            or any(live[target] for target in state.empty)
            or any(
                live[target] and live[self.regions[region].entry] for region, target in state.calls
            )
            or any(all(live[s] for s in self._loop_needs(loop)) for loop in state.loops)
            or any(self._is_live_set(index, live) for index in state.sets)
        )

    def shorten(self) -> None:
        """Skip states that only pass on by one empty move, and turn calls right before an end into jumps.

        The jump keeps the caller's frame in place of a new one, so right recursion runs in constant stack.
        """
        alias = [self._final_alias(index) for index in range(len(self.states))]
        for state in self.states:
            state.edges = [(mask, alias[target]) for mask, target in state.edges]
            state.literals = [(data, alias[target]) for data, target in state.literals]
            state.empty = list(dict.fromkeys(alias[target] for target in state.empty))
            state.calls = [(region, alias[target]) for region, target in state.calls]
        self.loops = [Loop(loop.body, loop.lo, loop.hi, alias[loop.exit]) for loop in self.loops]
        self.sets = [SetMove(s.members, s.separator, s.rules, alias[s.exit]) for s in self.sets]
        for state in self.states:
            kept: list[tuple[int, int]] = []
            for region, target in state.calls:
                after = self.states[target]
                if after.is_end and after.is_bare() and not after.empty:
                    state.empty.append(self.regions[region].entry)
                else:
                    kept.append((region, target))
            state.calls = kept

    def _final_alias(self, index: int) -> int:
        seen = {index}
        while True:
            state = self.states[index]
            if (
                state.is_end
                or len(state.empty) != 1
                or not state.is_bare()
                or state.empty[0] in seen
            ):
                return index
            index = state.empty[0]
            seen.add(index)

    def reachable(self, sources: Iterable[int]) -> list[int]:
        """All states that `sources` lead to, through every kind of move, in order of discovery."""
        found = list(dict.fromkeys(sources))
        seen = set(found)

        def visit(target: int) -> None:
            if target not in seen:
                seen.add(target)
                found.append(target)

        for index in found:
            state = self.states[index]
            for _, target in (*state.edges, *state.literals):
                visit(target)
            for target in state.empty:
                visit(target)
            for region, target in state.calls:
                visit(self.regions[region].entry)
                visit(target)
            for loop in state.loops:
                for needed in self._loop_needs(loop):
                    visit(needed)
            for number in state.sets:
                for needed in self._set_needs(number):
                    visit(needed)
        return found
