"""Leaders and followers: the longest common prefix is found exactly, followers wake at it, and nobody is forgotten."""

from __future__ import annotations

import pytest
from bare_requests import bare_request
from hypothesis import given
from hypothesis import strategies as st

from radixlm.errors import InvariantError
from radixlm.runtime.followers import InFlight

prompts = st.lists(st.integers(0, 2), min_size=1, max_size=8)


def common(left, right) -> int:
    length = 0
    while length < min(len(left), len(right)) and left[length] == right[length]:
        length += 1
    return length


@given(
    st.lists(st.tuples(prompts, st.sampled_from(["", "x"])), max_size=8),
    prompts,
    st.sampled_from(["", "x"]),
)
def test_the_leader_with_the_longest_common_prefix_is_found(leaders, prompt, namespace):
    in_flight = InFlight()
    for tokens, space in leaders:
        in_flight.lead(bare_request(tokens, namespace=space))
    found = in_flight.find(bare_request(prompt, namespace=namespace))
    best = max(
        (common(tokens, prompt) for tokens, space in leaders if space == namespace), default=0
    )
    assert (found[1] if found else 0) == best
    if found:
        assert common(found[0].tokens.view().tolist(), prompt) == best
    in_flight.check()


def test_followers_wake_when_the_leader_reaches_their_common_length():
    in_flight, leader = InFlight(), bare_request(range(10))
    in_flight.lead(leader)
    followers = [bare_request(range(n)) for n in (4, 8)]
    for follower, length in zip(followers, (4, 8), strict=True):
        in_flight.follow(follower, leader, length)
    leader.num_computed = 5
    assert in_flight.advanced(leader) == [(followers[0], 4)]
    in_flight.check()
    leader.num_computed = 10
    assert in_flight.advanced(leader) == [(followers[1], 8)]
    assert in_flight.find(bare_request(range(10))) is None
    assert len(in_flight) == 0


def test_followers_of_a_leader_that_leaves_get_what_it_had_computed():
    in_flight, leader = InFlight(), bare_request(range(10))
    in_flight.lead(leader)
    follower, removed = bare_request(range(9)), bare_request(range(9))
    in_flight.follow(follower, leader, 9)
    in_flight.follow(removed, leader, 9)
    assert in_flight.remove(removed)
    assert not in_flight.remove(removed)
    leader.num_computed = 3
    assert in_flight.leave(leader) == [(follower, 3)]
    assert in_flight.leave(leader) == []
    in_flight.check()


def test_check_sees_a_follower_that_nobody_will_wake():
    in_flight, leader = InFlight(), bare_request(range(10))
    in_flight.lead(leader)
    in_flight.follow(bare_request(range(9)), leader, 9)
    leader.num_computed = 10
    with pytest.raises(InvariantError, match="computed already"):
        in_flight.check()
