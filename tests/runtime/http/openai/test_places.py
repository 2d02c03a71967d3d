"""An error of the engine or the gateway is told with the field of the body that it is about."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from radixlm.errors import (
    ContextOverflow,
    EngineDied,
    GrammarError,
    PromptError,
    RadixError,
    SamplingError,
)
from radixlm.grammar.spec import Regex
from radixlm.runtime.http.openai.bodies import ChatBody, CompletionBody
from radixlm.runtime.http.openai.constraints import Constraint
from radixlm.runtime.http.openai.places import in_terms_of_body

CHAT = ChatBody()


@pytest.mark.parametrize(
    ("place", "told", "message"),
    [
        ("#/properties/a", "regex#/properties/a", "wrong"),
        ("/answer#/properties/a", "regex#/properties/a", "wrong"),
        ("#", "regex", "wrong"),
        ("", "regex", "wrong"),
        ("column 3", "regex", "wrong (column 3)"),
        ("tools[0].function.parameters#/x", "tools[0].function.parameters#/x", "wrong"),
    ],
)
def test_a_refusal_of_the_grammar_stands_behind_the_field_of_its_constraint(
    place: str, told: str, message: str
) -> None:
    constraint = Constraint(Regex("a"), "regex")
    error = in_terms_of_body(GrammarError("wrong", place=place, hint="H"), CHAT, constraint)
    assert isinstance(error, GrammarError)
    assert (error.message, error.place, error.hint) == (message, told, "H")


@pytest.mark.parametrize(
    ("kind", "fields", "place", "told"),
    [
        (ChatBody, {"max_completion_tokens": 1}, "max_tokens", "max_completion_tokens"),
        (ChatBody, {"max_tokens": 1}, "max_tokens", "max_tokens"),
        (ChatBody, {}, "logprobs", "top_logprobs"),
        (ChatBody, {}, "n", "n"),
        (CompletionBody, {"best_of": 2}, "n", "best_of"),
        (CompletionBody, {}, "n", "n"),
        (CompletionBody, {}, "logprobs", "logprobs"),
        (CompletionBody, {}, "prompt_logprobs", "logprobs"),
    ],
)
def test_an_argument_of_sampling_has_the_name_of_its_field(
    kind: Any, fields: dict[str, Any], place: str, told: str
) -> None:
    body = msgspec.convert(fields, kind)
    error = in_terms_of_body(SamplingError(f"{place}=9 is wrong", place=place), body)
    assert (error.message, error.place) == (f"{told}=9 is wrong", told)


@pytest.mark.parametrize("place", ["", "token_ids"])
def test_an_error_of_the_prompt_has_its_field_and_keeps_its_kind(place: str) -> None:
    overflow = ContextOverflow("too long", place=place, hint="H")
    error = in_terms_of_body(overflow, CompletionBody(), prompt_place="prompt[1]")
    assert isinstance(error, ContextOverflow)
    assert (error.place, error.hint) == ("prompt[1]", "H")


@pytest.mark.parametrize(
    "error",
    [
        EngineDied("x"),
        PromptError("x", place="messages[0].role"),
        GrammarError("x", place="#/a"),
        SamplingError("x", place="top_p"),
    ],
)
def test_what_names_its_place_already_stays_the_same(error: RadixError) -> None:
    assert in_terms_of_body(error, CHAT, prompt_place="messages") is error
