"""The waiting order: longest match first, aging, removal, re-ranking."""

from __future__ import annotations

from bare_requests import bare_request
from hypothesis import given
from hypothesis import strategies as st

from radixlm.runtime.queue import WaitQueue


def names(queue: WaitQueue) -> list[int]:
    order = []
    while (best := queue.pop_best()) is not None:
        order.append(best[0].key)
    return order


def test_the_longest_cached_prefix_runs_first():
    queue = WaitQueue(8.0)
    requests = [bare_request() for _ in range(4)]
    for request, matched in zip(requests, (10, 300, 0, 50), strict=True):
        queue.push(request, matched)
    assert names(queue) == [requests[i].key for i in (1, 3, 0, 2)]


def test_a_step_of_waiting_is_worth_tokens_of_prefix():
    queue = WaitQueue(8.0)
    old, late, later = (
        bare_request(arrival_step=0),
        bare_request(arrival_step=49),
        bare_request(arrival_step=51),
    )
    queue.push(old, 0)
    queue.push(late, 400)
    queue.push(later, 400)
    assert names(queue) == [late.key, old.key, later.key]


def test_equals_run_by_priority_then_first_come():
    queue = WaitQueue(8.0)
    first, second, urgent = bare_request(), bare_request(), bare_request(priority=1)
    for request in (second, first, urgent):
        queue.push(request, 5)
    assert names(queue) == [urgent.key, first.key, second.key]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["push", "remove", "pop", "stale"]),
            st.integers(0, 9),
            st.integers(0, 40),
        ),
        max_size=60,
    )
)
def test_the_queue_agrees_with_a_sorted_list(operations):
    queue, requests = WaitQueue(4.0), [bare_request(arrival_step=i) for i in range(10)]
    model: dict[int, float] = {}
    for name, which, matched in operations:
        request = requests[which]
        if name == "push":
            queue.push(request, matched)
            model[which] = 4.0 * which - matched
        elif name == "remove":
            assert queue.remove(request) == (model.pop(which, None) is not None)
        elif name == "pop":
            best = queue.pop_best()
            expected = min(model, key=lambda i: (model[i], requests[i].key)) if model else None
            assert (best and best[0]) == (None if expected is None else requests[expected])
            if expected is not None:
                del model[expected]
        else:
            stale = queue.next_stale()
            assert (stale is None) == (not model)
        assert len(queue) == len(model)
        assert {r.key for r in queue.requests()} == {requests[i].key for i in model}


def test_rotation_visits_everybody():
    queue = WaitQueue(1.0)
    requests = [bare_request() for _ in range(5)]
    for request in requests:
        queue.push(request, 0)
    assert {queue.next_stale() for _ in range(5)} == set(requests)


def test_re_ranking_does_not_grow_the_heap_without_bound():
    queue, request = WaitQueue(1.0), bare_request()
    for i in range(10_000):
        queue.push(request, i)
    assert len(queue._heap) <= 80
    assert queue.pop_best() == (request, 9_999)
