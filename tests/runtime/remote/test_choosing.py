"""Selects out of echoes, enforced outputs and free text."""

from __future__ import annotations

import math
from typing import Any

import pytest

from radixlm.errors import OutputError, ProgramError, ServiceError
from radixlm.runtime import messages as m
from radixlm.runtime.remote.choosing import (
    enforced,
    logprobs_of_echo,
    max_tokens_of,
    refuse_alone,
    written,
)

SCORE = m.Score("x", "b", ("red", "red wine", "blue"))


def echo(*parts: tuple[str, int, float | None]) -> dict[str, Any]:
    tokens, starts, values = zip(*parts, strict=True)
    return {
        "logprobs": {
            "tokens": list(tokens),
            "text_offset": list(starts),
            "token_logprobs": list(values),
        }
    }


def test_tokens_that_reach_into_the_choice_count_and_no_others() -> None:
    exact = echo(("A:", 0, None), (" ", 2, -1.0), ("red", 3, -2.0), (" wine", 6, -3.0))
    assert logprobs_of_echo("A: red wine", "red wine", exact, "it") == (-2.0, -3.0)
    across = echo(("A:", 0, None), (" red", 2, -2.5))
    assert logprobs_of_echo("A: red", "red", across, "it") == (-2.5,)


def test_a_beginning_of_text_token_that_is_no_part_of_the_prompt_moves_nothing() -> None:
    told = echo(("<s>", 0, None), ("A:", 3, -1.0), (" red", 5, -2.5))
    assert logprobs_of_echo("A: red", "red", told, "it") == (-2.5,)


def test_a_token_that_was_generated_all_the_same_does_not_count() -> None:
    told = {**echo(("A:", 0, None), (" red", 2, -2.5), (" is", 6, -9.0)), "text": "A: red is"}
    assert logprobs_of_echo("A: red", "red", told, "it") == (-2.5,)


@pytest.mark.parametrize(
    "told", [{}, {"logprobs": None}, {"logprobs": {}}, {"logprobs": {"tokens": ["a"]}}]
)
def test_an_echo_without_log_probabilities_is_a_service_error(told: dict[str, Any]) -> None:
    with pytest.raises(ServiceError, match="told no log-probabilities"):
        logprobs_of_echo("a", "a", told, "it")


def test_an_enforced_output_is_the_choice() -> None:
    scored = enforced(SCORE, "blue", m.Usage(1, 0, 2), "it")
    assert scored.logprobs == ((-math.inf,), (-math.inf,), (0.0,))
    assert scored.usage.completion_tokens == 2
    with pytest.raises(OutputError, match="wrote 'green', which is no choice"):
        enforced(SCORE, "green", m.Usage(), "it")


@pytest.mark.parametrize(
    ("text", "index"), [("red wine, please", 1), (' "red"', 0), ("blue", 2), ("\n**blue**", 2)]
)
def test_free_text_takes_the_longest_choice_it_begins_with(text: str, index: int) -> None:
    assert written(SCORE, text, m.Usage(), "it").logprobs[index] == (0.0,)


def test_free_text_that_begins_with_none_is_an_output_error() -> None:
    with pytest.raises(OutputError, match="begins with none"):
        written(SCORE, "I think red", m.Usage(), "it")


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        (("A", "B"), "Answer: B"),
        (("1", "2"), "20"),
        (("1", "2"), "2.5"),
        (("red", "blue"), "red_wine"),
    ],
)
def test_free_text_that_goes_on_within_a_word_or_number_is_no_choice(
    choices: tuple[str, ...], text: str
) -> None:
    with pytest.raises(OutputError, match="begins with none"):
        written(m.Score("x", "b", choices), text, m.Usage(), "it")


@pytest.mark.parametrize("text", ["2.", "2, I think", "**2**", "2\n"])
def test_free_text_may_go_on_behind_a_whole_word(text: str) -> None:
    assert written(m.Score("x", "b", ("1", "2")), text, m.Usage(), "it").logprobs[1] == (0.0,)


def test_choices_alone_are_refused_by_name() -> None:
    for score, has_text in ((m.Score("x", None, ("a",)), True), (SCORE, False)):
        with pytest.raises(ProgramError) as raised:
            refuse_alone(score, has_text, "it")
        assert raised.value.place == "choices_method"
    refuse_alone(SCORE, True, "it")
    assert max_tokens_of(SCORE.choices) >= len("red wine") // 3
