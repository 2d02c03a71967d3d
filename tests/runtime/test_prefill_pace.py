"""How many prompt tokens go beside streams: by what steps cost, within bounds, whatever the clock says."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from radixlm.runtime.prefill_pace import PrefillPace


def learned(
    pace: PrefillPace, stream_s: float, token_s: float, num_streams: int = 4
) -> PrefillPace:
    """After many steps of a machine with these costs."""
    for _ in range(60):
        pace.note(num_streams, num_streams, stream_s)
        num_prompt = pace.num_tokens()
        pace.note(num_streams, num_streams + num_prompt, stream_s + num_prompt * token_s)
    return pace


def test_a_step_lasts_as_long_as_asked_where_streams_are_quick() -> None:
    pace = learned(PrefillPace(512, 0.1), stream_s=0.008, token_s=0.0005)
    assert 0.09 < 0.008 + pace.num_tokens() * 0.0005 <= 0.1


def test_on_a_slow_machine_prompts_still_get_most_of_a_step() -> None:
    pace = learned(PrefillPace(512, 0.1), stream_s=0.06, token_s=0.003)
    prompt_s = pace.num_tokens() * 0.003
    assert 4 * 0.06 < prompt_s <= 5 * 0.06


def test_a_prompt_alone_teaches_what_a_token_costs() -> None:
    pace = PrefillPace(512, 0.1)
    assert pace.num_tokens() == 128
    pace.note(0, 400, 30.0)  # the first one reads the weights from disk
    assert pace.num_tokens() == 128
    pace.note(0, 400, 0.4)
    assert pace.num_tokens() == 100


def test_a_slow_beginning_is_forgotten_within_a_few_steps() -> None:
    pace = PrefillPace(512, 0.1)
    pace.note(4, 4, 10.0)
    pace.note(4, 24, 13.0)
    pace.note(4, 24, 3.0)
    for _ in range(12):
        pace.note(4, 4, 0.015)
        pace.note(4, 24, 0.015 + 20 * 0.0017)
    assert pace.num_tokens() >= 40


def test_one_hiccup_of_the_machine_changes_little() -> None:
    pace = learned(PrefillPace(512, 0.1), stream_s=0.008, token_s=0.0005)
    before = pace.num_tokens()
    pace.note(4, 4 + before, 30.0)
    assert pace.num_tokens() > before * 0.75


@given(
    st.lists(
        st.tuples(st.integers(0, 64), st.integers(0, 512), st.floats(0, 1e6)),
        max_size=30,
    ),
    st.integers(1, 4096),
)
def test_the_bound_is_always_within_the_step(
    steps: list[tuple[int, int, float]], max_tokens: int
) -> None:
    pace = PrefillPace(max_tokens, 0.1)
    for num_streams, num_prompt, seconds in steps:
        pace.note(num_streams, num_streams + num_prompt, seconds)
        assert min(16, max_tokens) <= pace.num_tokens() <= max_tokens
        assert math.isfinite((pace.stream_s or 0.0) + (pace.token_s or 0.0))
