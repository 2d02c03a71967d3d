"""Left recursion out of a graph of regions, so that a call chain without consumed bytes always ends.

Owns one pass. Regions that call each other (or themselves) before consuming form a cycle; each such group is rebuilt bottom-up: a member
starts with something that is no call into the group (a seed), and when a member is complete, it may go on as the left part of another.
For a member i, the state `after[i, j]` means "on the way to i, a j has just ended":

    start of i  --call seed of j-->  after[i, j]
    after[i, j] --call (rest of k behind its leading j)-->  after[i, k]        for each k that may begin with a j
    after[i, i] is an end state

Knows nothing of expressions or tokens. Source: the left-corner reading of left recursion (Rosenkrantz & Lewis, 1970), on automata.
"""

from __future__ import annotations

from ..errors import GrammarError
from .automaton import Graph, Loop

_MAX_GROUP = 100


def remove_left_recursion(graph: Graph) -> None:
    """Rebuild every group of left-recursive regions; all entries must be set. Calls of the regions stay as they are."""
    for group in _groups(graph):
        if len(group) > _MAX_GROUP:
            raise GrammarError(
                f"more than {_MAX_GROUP} rules call each other as their first part",
                keyword="left recursion",
            )
        _rebuild(graph, group)


def left_calls(graph: Graph, region: int) -> list[int]:
    """The regions that `region` may enter before it consumes a byte."""
    found: dict[int, None] = {}
    for index in graph.closure(graph.regions[region].entry):
        state = graph.states[index]
        for called, _ in state.calls:
            found[called] = None
        for loop in state.loops:
            found[graph.loops[loop].body] = None
        for number in state.sets:
            found.update(dict.fromkeys(graph.sets[number].regions()))
    return list(found)


def call_order(graph: Graph, calls: list[list[int]]) -> list[int]:
    """Regions so that each stands behind all that left-call it. A cycle is a bug of the caller."""
    order: list[int] = []
    state = [0] * len(graph.regions)  # 0 new, 1 open, 2 done
    for root in range(len(graph.regions)):
        work = [(root, iter(calls[root]))] if state[root] == 0 else []
        state[root] = state[root] or 1
        while work:
            region, rest = work[-1]
            for called in rest:
                if state[called] == 1:
                    raise GrammarError(
                        "the grammar is left-recursive in a way that is not supported"
                    )
                if state[called] == 0:
                    state[called] = 1
                    work.append((called, iter(calls[called])))
                    break
            else:
                state[region] = 2
                order.append(region)
                work.pop()
    order.reverse()
    return order


def _groups(graph: Graph) -> list[list[int]]:
    """Strongly connected groups with a cycle, by Kosaraju's two passes."""
    calls = [left_calls(graph, region) for region in range(len(graph.regions))]
    callers: list[list[int]] = [[] for _ in calls]
    for region, called in enumerate(calls):
        for target in called:
            callers[target].append(region)
    finished = _finish_order(calls)
    seen: set[int] = set()
    groups: list[list[int]] = []
    for root in reversed(finished):
        if root in seen:
            continue
        seen.add(root)
        group = [root]
        for region in group:
            for caller in callers[region]:
                if caller not in seen:
                    seen.add(caller)
                    group.append(caller)
        if len(group) > 1 or root in calls[root]:
            groups.append(group)
    return groups


def _finish_order(calls: list[list[int]]) -> list[int]:
    finished: list[int] = []
    seen: set[int] = set()
    for root in range(len(calls)):
        if root in seen:
            continue
        seen.add(root)
        work = [(root, iter(calls[root]))]
        while work:
            region, rest = work[-1]
            for called in rest:
                if called not in seen:
                    seen.add(called)
                    work.append((called, iter(calls[called])))
                    break
            else:
                finished.append(region)
                work.pop()
    return finished


def _rebuild(graph: Graph, group: list[int]) -> None:
    members = set(group)
    leads: list[
        tuple[int, int, int]
    ] = []  # (k, j, state): k may begin with j and goes on at `state`
    seeds: dict[int, int] = {}  # member -> region of its seeds
    for member in group:
        seed = graph.new_state()
        state = graph.states[seed]
        for index in graph.closure(graph.regions[member].entry):
            old = graph.states[index]
            _peel_loops(graph, index, members)
            state.edges.extend(old.edges)
            state.literals.extend(old.literals)
            state.loops.extend(old.loops)
            state.sets.extend(old.sets)
            if any(not members.isdisjoint(graph.sets[n].regions()) for n in old.sets):
                raise GrammarError(
                    "a member of a set calls itself as its own first part", keyword="left recursion"
                )
            for called, after in old.calls:
                if called in members:
                    leads.append((member, called, after))
                else:
                    state.calls.append((called, after))
        seeds[member] = graph.new_region(seed, seed)
    rests = {after: graph.new_region(after, graph.consuming_entry(after)) for _, _, after in leads}
    for member in group:
        _rebuild_member(graph, member, group, seeds, leads, rests)


def _rebuild_member(
    graph: Graph,
    member: int,
    group: list[int],
    seeds: dict[int, int],
    leads: list[tuple[int, int, int]],
    rests: dict[int, int],
) -> None:
    after = {other: graph.new_state() for other in group}
    graph.states[after[member]].is_end = True
    start = graph.new_state()
    graph.states[start].calls = [(seeds[other], after[other]) for other in group]
    for whole, first, rest_state in leads:
        source = graph.states[after[first]]
        source.calls.append((rests[rest_state], after[whole]))
        if graph.may_be_empty(rest_state):
            source.empty.append(after[whole])
    graph.regions[member].entry = start


def _peel_loops(graph: Graph, index: int, members: set[int]) -> None:
    """Turn a leading loop over a member into a call and the loop over what is left, so that only calls lead."""
    state = graph.states[index]
    kept: list[int] = []
    for number in state.loops:
        loop = graph.loops[number]
        if loop.body not in members:
            kept.append(number)
            continue
        after = graph.new_state()
        if loop.lo <= 1:
            graph.states[after].empty.append(loop.exit)
        if loop.hi is None or loop.hi > 1:
            hi = None if loop.hi is None else loop.hi - 1
            graph.loops.append(Loop(loop.body, max(loop.lo - 1, 1), hi, loop.exit))
            graph.states[after].loops.append(len(graph.loops) - 1)
        state.calls.append((loop.body, after))
    state.loops = kept
