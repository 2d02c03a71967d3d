"""Token masks of one program over one vocabulary: exact, lazy, memoised. Shared by all matchers of that program.

Owns the memo and the closing-in-time rule. Knows nothing of histories or requests. One mask is put together from walks:

1. The state is taken abstractly: return addresses of the regions it stands in become holes, loop bounds farther than the longest token
   become "far". Many states (every string body, at any depth and count) share one abstract state, and so one memoised walk of the trie.
2. Where that walk returns into a hole, the token may go on only if the real caller agrees. Such nodes were left aside, grouped by their
   abstract state; each group is walked on from the real state (holes filled), again abstractly and memoised, with one more caller known.
3. A state that takes all characters of a slice (free text) gets the slice's tokens at once and walks only the trie of the others.

Every state of a program can reach acceptance, so a token is allowed exactly if its last byte leaves a state.

With a budget, a token is allowed only if distance(after) <= budget - 1. Each walk also keeps the largest distance inside it, abstractly;
with the worst cost of the real stack added this bounds every token's distance, and only if that bound does not fit are the real distances
computed, token by token.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .program import GrammarProgram
from .stacks import Stack
from .stepping import MatchState, StateStore
from .token_costs import token_costs
from .vocabulary import Slice, Trie, Vocabulary
from .walking import SliceView, TrieView

U32 = npt.NDArray[np.uint32]

_DENSE_WORDS_MIN = 256
_MAX_EXACT = 64
_ENTRY_BYTES = 400
_WHOLE_TRIE = 0


@dataclass(frozen=True, slots=True)
class _Entry:
    """What one walk allows: mask words, nodes left aside, and the largest abstract distance."""

    words: npt.NDArray[np.int64] | None  # None: `bits` is a whole row
    bits: U32
    groups: tuple[tuple[MatchState, int], ...]  # (abstract state, root set)
    worst_cost: int

    @property
    def num_bytes(self) -> int:
        return (
            _ENTRY_BYTES
            + self.bits.nbytes * (1 if self.words is None else 3)
            + 100 * len(self.groups)
        )


@dataclass(frozen=True, slots=True)
class _Exact:
    """Tokens allowed from one real state with the distance behind each; those of a slice apart, with their least and largest distance."""

    token_ids: npt.NDArray[np.int32]
    costs: npt.NDArray[np.int64]
    slice_mask: U32 | None
    slice_costs: tuple[int, int]


class TokenMasks:
    """Masks of `program` over `vocabulary`. Not thread-safe: one engine thread owns it."""

    def __init__(
        self, program: GrammarProgram, vocabulary: Vocabulary, memo_bytes: int = 32 << 20
    ) -> None:
        self.vocabulary = vocabulary
        self.store = StateStore(program, token_costs(program, vocabulary))
        self._memo_bytes = memo_bytes
        self._num_memo_bytes = 0
        self._memo: OrderedDict[tuple[int, MatchState], _Entry] = OrderedDict()
        self._exact: OrderedDict[tuple[MatchState, bool], _Exact] = OrderedDict()
        self._returns: dict[tuple[MatchState, tuple[Stack, ...]], MatchState] = {}
        self._slices = [
            SliceView(part, self.store) for part in vocabulary.slices if part.num_tokens
        ]
        self._views: dict[int, TrieView] = {}
        self._root_sets: list[tuple[Trie, list[int]]] = [(vocabulary.trie, [0])]
        self._root_set_ids: dict[tuple[int, tuple[int, ...]], int] = {}

    @property
    def num_memo_bytes(self) -> int:
        """Bytes of memoised masks, at most the budget given."""
        return self._num_memo_bytes

    @property
    def num_bytes(self) -> int:
        """About the memory that the program costs by now: memoised masks and states."""
        return self._num_memo_bytes + self.store.num_bytes

    def fill(self, state: MatchState, out: U32, budget: int | None = None) -> None:
        """Write the mask row of `state` into `out` ([ceil(V/32)] words). A budget below the state's distance is ignored."""
        if self.store.trim():
            self._forget()
        out[:] = 0
        worst_cost = self._add(_WHOLE_TRIE, state, out)
        if budget is not None and state.cost <= budget and worst_cost > budget - 1:
            out[:] = 0
            self._add_within(state, out, budget - 1)
        if state.is_accepting:
            np.bitwise_or(out, self.vocabulary.eos_mask, out=out)

    def _forget(self) -> None:
        self._memo.clear()
        self._exact.clear()
        self._returns.clear()
        self._num_memo_bytes = 0

    def _add(self, root_set: int, state: MatchState, out: U32, num_returns: int = 0) -> int:
        """Allow the tokens that go on from `state` below the root set; an upper bound on the distance behind any of them."""
        if not state.configs:
            return 0
        abstract, stacks = self.store.abstract(state, self.vocabulary.max_token_bytes, num_returns)
        entry = self._entry(root_set, abstract)
        if entry.words is None:
            np.bitwise_or(out, entry.bits, out=out)
        else:
            out[entry.words] |= entry.bits
        worst_cost = entry.worst_cost + max(
            (stack.worst_cost for _, stack in state.configs), default=0
        )
        for group_state, group_roots in entry.groups:
            key = (group_state, stacks)
            after = self._returns.get(key)
            if after is None:
                after = self._returns[key] = self.store.concrete(group_state, stacks)
            worst_cost = max(worst_cost, self._add(group_roots, after, out, num_returns + 1))
        return worst_cost

    def _entry(self, root_set: int, state: MatchState) -> _Entry:
        key = (root_set, state)
        entry = self._memo.get(key)
        if entry is not None:
            self._memo.move_to_end(key)
            return entry
        entry = self._memo[key] = self._walk(root_set, state)
        self._num_memo_bytes += entry.num_bytes
        while self._num_memo_bytes > self._memo_bytes and len(self._memo) > 1:
            _, dropped = self._memo.popitem(last=False)
            self._num_memo_bytes -= dropped.num_bytes
        return entry

    def _walk(self, root_set: int, state: MatchState) -> _Entry:
        trie, roots = self._root_sets[root_set]
        part, chain = self._slice_of(state) if root_set == _WHOLE_TRIE else (None, [])
        if part is not None:
            trie = part.rest
        walked = self._view(trie).walk(roots, state)
        row = self._row(_token_ids(trie, walked.nodes))
        if part is not None:
            row |= part.mask
        found = [self.store.states[index] for index in _distinct(walked.indices)]
        worst_cost = max((after.cost for after in (*found, *chain)), default=0)
        groups = tuple(
            (self.store.states[index], self._root_set(trie, nodes))
            for index, nodes in walked.stopped.items()
        )
        words = np.flatnonzero(row)
        if len(words) >= _DENSE_WORDS_MIN:
            return _Entry(None, row, groups, worst_cost)
        return _Entry(words, row[words], groups, worst_cost)

    def _row(self, token_ids: npt.NDArray[np.int32]) -> U32:
        bits = np.zeros((self.vocabulary.vocab_size + 31) // 32 * 32, dtype=np.uint8)
        bits[token_ids] = 1
        return np.packbits(bits, bitorder="little").view(np.uint32)

    def _slice_of(self, state: MatchState) -> tuple[Slice | None, list[MatchState]]:
        """A slice whose tokens are all allowed, and the states they lead to."""
        for view in self._slices:
            chain = view.chain(state)
            if chain is not None:
                return view.part, chain
        return None, []

    def _view(self, trie: Trie) -> TrieView:
        view = self._views.get(id(trie))
        if view is None:
            view = self._views[id(trie)] = TrieView(trie, self.store)
        return view

    def _root_set(self, trie: Trie, nodes: list[int]) -> int:
        key = (id(trie), tuple(sorted(nodes)))
        number = self._root_set_ids.get(key)
        if number is None:
            number = self._root_set_ids[key] = len(self._root_sets)
            self._root_sets.append((trie, list(key[1])))
        return number

    def _add_within(self, state: MatchState, out: U32, max_distance: int) -> None:
        """Allow the tokens whose distance behind them is at most `max_distance`."""
        exact = self._exact_of(state, has_slice=True)
        if (
            exact.slice_mask is not None
            and exact.slice_costs[0] <= max_distance < exact.slice_costs[1]
        ):
            exact = self._exact_of(state, has_slice=False)
        out |= self._row(exact.token_ids[exact.costs <= max_distance])
        if exact.slice_mask is not None and exact.slice_costs[1] <= max_distance:
            out |= exact.slice_mask

    def _exact_of(self, state: MatchState, *, has_slice: bool) -> _Exact:
        key = (state, has_slice)
        exact = self._exact.get(key)
        if exact is None:
            exact = self._exact[key] = self._walk_exact(state, has_slice)
            if len(self._exact) > _MAX_EXACT:
                self._exact.popitem(last=False)
        return exact

    def _walk_exact(self, state: MatchState, has_slice: bool) -> _Exact:
        part, chain = self._slice_of(state) if has_slice else (None, [])
        trie = self.vocabulary.trie if part is None else part.rest
        walked = self._view(trie).walk([0], state)
        distinct = _distinct(walked.indices)
        costs = np.array([self.store.states[index].cost for index in distinct], dtype=np.int64)
        node_costs = costs[np.searchsorted(distinct, walked.indices)] if distinct else costs
        chain_costs = [after.cost for after in chain]
        return _Exact(
            _token_ids(trie, walked.nodes),
            np.repeat(node_costs, trie.token_count[walked.nodes]),
            None if part is None else part.mask,
            (min(chain_costs, default=0), max(chain_costs, default=0)),
        )


def _token_ids(trie: Trie, nodes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The tokens that end at `nodes`, in the order of the nodes."""
    counts = trie.token_count[nodes]
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return trie.token_ids[
        np.arange(total) + np.repeat(trie.token_start[nodes] - ends + counts, counts)
    ]


def _distinct(values: npt.NDArray[np.int32]) -> list[int]:
    """The distinct values (not negative, not large), ascending."""
    is_there = np.zeros(int(values.max(initial=-1)) + 1, dtype=bool)
    is_there[values] = True
    return np.flatnonzero(is_there).tolist()
