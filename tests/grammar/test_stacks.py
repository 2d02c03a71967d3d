"""Return stacks: one object for equal sets, covered loops dropped, abstraction undone by filling its holes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from radixlm.grammar.stacks import (
    BOTTOM,
    ENDLESS,
    FAR,
    HOLE,
    LOOP,
    FrameCosts,
    Stack,
    StackStore,
    loop_code,
    round_done,
    running,
)


def store() -> StackStore:
    """Ten states that cost their number; three loops whose rounds cost 2, 3, 5 and that exit to states 1, 2, 3."""
    return StackStore(FrameCosts(list(range(10)), [2, 3, 5], [1, 2, 3], [], []))


def paths(stack: Stack) -> set[tuple[tuple[int, int, int], ...]]:
    """All single stacks of the set, innermost frame first."""
    found: set[tuple[tuple[int, int, int], ...]] = set()
    for code, lo, hi, parent in stack.frames:
        rests = {()} if parent is None else paths(parent)
        found |= {((code, lo, hi), *rest) for rest in rests}
    return found


frames = st.one_of(
    st.integers(0, 4).map(lambda code: (code, 0, 0)),
    st.tuples(
        st.sampled_from([-3, -6, -9]), st.integers(0, 6), st.sampled_from([ENDLESS, 6, 9, 200])
    ),
)
lines = st.lists(st.lists(frames, max_size=5), min_size=1, max_size=5)


def built(stacks: StackStore, rows: list[list[tuple[int, int, int]]]) -> Stack:
    merged: Stack | None = None
    for row in rows:
        stack = stacks.bottom()
        for code, lo, hi in reversed(row):
            stack = stacks.make([(code, lo, hi, stack)])
        merged = stack if merged is None else stacks.merge(merged, stack)
    assert merged is not None
    return merged


def covers(one: tuple[tuple[int, int, int], ...], other: tuple[tuple[int, int, int], ...]) -> bool:
    """Whether `one` can do all that `other` can: the same places, no more rounds needed, no fewer possible."""
    return len(one) == len(other) and all(
        a == b
        or (a[0] == b[0] <= -3 and a[1] <= b[1] and (a[2] == ENDLESS or ENDLESS != b[2] <= a[2]))
        for a, b in zip(one, other, strict=True)
    )


@given(lines)
@settings(max_examples=200, deadline=None)
def test_a_merged_stack_holds_every_stack_or_one_that_covers_it_and_nothing_new(
    rows: list[list[tuple[int, int, int]]],
) -> None:
    stacks = store()
    wanted = {(*row, (BOTTOM, 0, 0)) for row in map(tuple, rows)}
    found = paths(built(stacks, rows))
    assert found <= wanted
    assert all(any(covers(one, other) for one in found) for other in wanted)


@given(lines)
@settings(max_examples=100, deadline=None)
def test_merging_is_idempotent_and_has_no_order(rows: list[list[tuple[int, int, int]]]) -> None:
    stacks = store()
    one, two = built(stacks, rows), built(stacks, list(reversed(rows)))
    # which covered stacks are pruned depends on the order, what the rest can do does not
    for left, right in ((one, two), (two, one), (stacks.merge(one, two), one)):
        assert all(any(covers(a, b) for a in paths(left)) for b in paths(right))
    assert stacks.merge(one, one) is one


@given(lines)
@settings(max_examples=100, deadline=None)
def test_costs_are_those_of_the_cheapest_and_the_dearest_stack(
    rows: list[list[tuple[int, int, int]]],
) -> None:
    stack = built(store(), rows)

    def cost(path: tuple[tuple[int, int, int], ...]) -> int:
        loops = {-3: (2, 1), -6: (3, 2), -9: (5, 3)}
        return sum(
            0 if code == BOTTOM else code if code >= 0 else lo * loops[code][0] + loops[code][1]
            for code, lo, _ in path
        )

    costs = [cost(path) for path in paths(stack)]
    assert (stack.cost, stack.worst_cost) == (min(costs), max(costs))


@given(lines, st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_filling_the_holes_of_an_abstract_stack_gives_it_back_up_to_far_bounds(
    rows: list[list[tuple[int, int, int]]], num_returns: int
) -> None:
    stacks = store()
    stack = built(stacks, rows)
    holes: dict[Stack, int] = {}
    abstract = stacks.abstract(stack, 20, num_returns, holes)
    filled = stacks.fill_holes(abstract, tuple(holes))

    def near(path: tuple[tuple[int, int, int], ...]) -> tuple[tuple[int, int, int], ...]:
        return tuple((code, lo, ENDLESS if code <= -3 and hi > 20 else hi) for code, lo, hi in path)

    assert {near(path) for path in paths(filled)} <= {near(path) for path in paths(stack)}
    assert all(
        any(covers(near(one), near(other)) for one in paths(filled)) for other in paths(stack)
    )
    assert all(frame[0] != HOLE for path in paths(filled) for frame in path)


def test_equal_stacks_are_identical_until_they_are_forgotten() -> None:
    stacks = store()
    one = stacks.make([(4, 0, 0, stacks.bottom())])
    assert stacks.make([(4, 0, 0, stacks.bottom())]) is one
    stacks.clear()
    assert len(stacks) == 0
    assert stacks.make([(4, 0, 0, stacks.bottom())]) is not one


def test_rounds_count_down_to_zero_and_far_stays_far() -> None:
    assert running(loop_code(7)) == (LOOP, 7)
    assert round_done(2, 5) == (1, 4)
    assert round_done(0, ENDLESS) == (0, ENDLESS)
    assert round_done(FAR, 1) == (FAR, 0)
