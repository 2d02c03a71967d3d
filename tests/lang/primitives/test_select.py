from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixlm import ProgramError, SamplingError, select
from radixlm.lang.primitives.select import ChoicesMethod, Select, greedy_scores
from radixlm.runtime.messages import Scored, Usage

LOGPROBS = st.lists(st.floats(-20, 0, allow_nan=False), min_size=1, max_size=6)


def scored(logprobs: list[list[float]], token_ids: list[list[int]] | None = None) -> Scored:
    ids = token_ids or [[i * 100 + j for j in range(len(each))] for i, each in enumerate(logprobs)]
    return Scored("r", tuple(map(tuple, ids)), tuple(map(tuple, logprobs)), Usage())


def node(
    num: int, method: ChoicesMethod = "token_length_normalized", temperature: float = 0.0
) -> Select:
    return select("x", [f"c{i}" for i in range(num)], temperature, method)


@given(st.lists(LOGPROBS, min_size=1, max_size=8))
def test_the_default_takes_the_best_mean(logprobs: list[list[float]]) -> None:
    index, scores = node(len(logprobs)).decide(scored(logprobs), None, None)
    means = [sum(each) / len(each) for each in logprobs]
    assert scores == pytest.approx(means)
    assert means[index] == max(means)


def test_unconditional_scores_correct_for_choices_common_anywhere() -> None:
    given_text, alone = scored([[-1.0, -1.0], [-2.0]]), scored([[-0.5, -0.5], [-6.0]])
    index, scores = node(2, "unconditional_likelihood_normalized").decide(given_text, alone, None)
    assert index == 1
    assert scores == pytest.approx([-0.5, 4.0])


def test_greedy_compares_token_by_token() -> None:
    # The first token decides against choice 0, whatever follows; 1 and 2 share theirs and part at the second.
    logprobs = [[-2.0, 0.0, 0.0], [-0.5, -3.0], [-0.5, -1.0]]
    index, _ = node(3, "greedy_token_selection").decide(
        scored(logprobs, [[1, 2, 3], [4, 5], [4, 6]]), None, None
    )
    assert index == 2


def test_greedy_lets_an_ended_choice_compete_with_its_mean() -> None:
    short_wins = greedy_scores([[1], [1, 2]], [[-0.5], [-0.5, -2.0]])
    long_wins = greedy_scores([[1], [1, 2]], [[-0.5], [-0.5, -0.1]])
    assert short_wins[0] > short_wins[1]
    assert long_wins[0] < long_wins[1]


def test_a_temperature_draws_by_the_softmax_of_the_scores() -> None:
    values = [[-0.5], [-1.0], [-3.0]]
    drawn = Counter(
        node(3, temperature=0.5).decide(scored(values), None, seed)[0] for seed in range(4000)
    )
    weights = [math.exp(each[0] / 0.5) for each in values]
    for index, weight in enumerate(weights):
        assert drawn[index] / 4000 == pytest.approx(weight / sum(weights), abs=0.03)


@pytest.mark.parametrize("choices", [[], ["a", ""], "ab"])
def test_choices_are_checked(choices: Any) -> None:
    with pytest.raises(ProgramError):
        select("x", choices)


def test_methods_and_temperatures_are_checked() -> None:
    with pytest.raises(ProgramError, match="unknown choices_method") as caught:
        select("x", ["a"], choices_method="best")  # type: ignore[reportArgumentType]
    assert "token_length_normalized" in str(caught.value)
    for bad in (-1.0, math.nan):
        with pytest.raises(SamplingError):
            select("x", ["a"], bad)
