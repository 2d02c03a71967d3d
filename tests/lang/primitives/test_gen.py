from __future__ import annotations

import enum
from typing import Any

import pytest

from radixlm import (
    OutputError,
    ProgramError,
    PromptError,
    SamplingError,
    ScriptedBackend,
    State,
    function,
    gen,
    gen_int,
    gen_string,
)
from radixlm.grammar.spec import Choice, Gbnf, JsonSchema, Lark, Regex
from radixlm.lang.testing import Answer


def test_each_constraint_becomes_its_spec() -> None:
    assert gen("x", regex="a+").constraint == Regex("a+")
    assert gen("x", choices=["a", "b", "a"]).constraint == Choice(("a", "b"))
    assert gen("x", json_schema='{"type": "null"}').constraint == JsonSchema('{"type": "null"}')
    ordered = {"properties": {"z": {}, "a": {}}}
    assert gen("x", json_schema=ordered).constraint == JsonSchema(
        '{"properties": {"z": {}, "a": {}}}'
    )
    assert isinstance(gen("x", schema=int).constraint, JsonSchema)
    assert gen("x", grammar='start: "a"').constraint == Lark('start: "a"')
    assert gen("x", grammar='root ::= "a"').constraint == Gbnf('root ::= "a"')
    assert gen("x", grammar=Lark('x: "a"', "x")).constraint == Lark('x: "a"', "x")
    assert gen("x").constraint is None


def test_what_is_no_grammar_is_refused() -> None:
    with pytest.raises(ProgramError) as caught:
        gen("x", grammar=7)  # type: ignore[arg-type]
    assert caught.value.place == "grammar"


def test_a_gen_takes_one_constraint() -> None:
    with pytest.raises(ProgramError, match="regex and schema"):
        gen("x", regex="a", schema=int)


@pytest.mark.parametrize("choices", [[], (), "abc", ["a", ""], ["a", 1]])
def test_choice_lists_that_choose_nothing_are_refused(choices: Any) -> None:
    with pytest.raises(ProgramError) as caught:
        gen("x", choices=choices)
    assert caught.value.place.startswith("choices")


@pytest.mark.parametrize("name", ["", 7])
def test_a_name_is_a_text(name: Any) -> None:
    with pytest.raises(ProgramError, match="not a name"):
        gen(name)


def test_sampling_values_out_of_range_raise_where_the_gen_is_appended() -> None:
    @function
    def f(s: State) -> None:
        s += gen("x", top_p=2.0)

    with pytest.raises(SamplingError, match="top_p"):
        f.run(backend=ScriptedBackend(default="x"))


def test_all_sampling_arguments_reach_the_backend() -> None:
    @function
    def f(s: State) -> None:
        s += gen(
            "x", 5, min_tokens=1, temperature=0.5, top_k=4, top_p=0.9, min_p=0.1, typical_p=0.8,
            repetition_penalty=1.1, frequency_penalty=0.2, presence_penalty=0.3, logit_bias={3: 1},
            stop="!", stop_token_ids=[7], include_stop=True, ignore_eos=True, seed=11, logprobs=2,
            prompt_logprobs=1, prompt_logprobs_start=4, jump_forward=False,
        )  # fmt: skip

    backend = ScriptedBackend(default="x")
    f.run(backend=backend)
    params = backend.requests[0].sampling
    assert (params.max_tokens, params.min_tokens, params.seed, params.logprobs) == (5, 1, 11, 2)
    assert (params.stop, params.stop_token_ids) == (("!",), (7,))
    assert params.logit_bias == {3: 1.0}
    assert (params.include_stop, params.ignore_eos, params.jump_forward) == (True, True, False)
    assert (params.temperature, params.top_k, params.top_p, params.min_p) == (0.5, 4, 0.9, 0.1)
    assert (params.typical_p, params.repetition_penalty) == (0.8, 1.1)
    assert (params.frequency_penalty, params.presence_penalty) == (0.2, 0.3)
    assert (params.prompt_logprobs, params.prompt_logprobs_start) == (1, 4)


def test_numbers_and_strings_read_as_such() -> None:
    @function
    def f(s: State) -> None:
        s += gen_int("i") + gen_int("small", minimum=0, maximum=9) + gen_string("t", max_length=9)
        s += gen_int("cut")

    script = {"i": "-12", "small": "3", "t": '"a\\n"', "cut": Answer("-", "length")}
    st = f.run(backend=ScriptedBackend(script))
    assert (st["i"], st["small"], st["t"]) == (-12, 3, "a\n")
    with pytest.raises(OutputError, match="cut by max_tokens"):
        _ = st["cut"]


def test_an_enum_is_a_schema() -> None:
    class Size(enum.Enum):
        S = "small"
        L = "large"

    @function
    def f(s: State) -> None:
        s += gen("size", schema=Size)

    assert f.run(backend=ScriptedBackend({"size": '"large"'}))["size"] is Size.L


def test_a_cut_text_that_is_none_of_the_choices_raises_when_read() -> None:
    @function
    def f(s: State) -> None:
        s += gen("cut", choices=["yes", "no"]) + gen("whole", choices=["a", "ab"])
        s += gen("free", regex="a+b") + " done"

    script = {"cut": Answer("ye", "length"), "whole": "a", "free": Answer("aa", "length")}
    st = f.run(backend=ScriptedBackend(script))
    with pytest.raises(OutputError, match="'ye' was cut"):
        _ = st["cut"]
    assert (st["whole"], st["free"], st.text()) == ("a", "aa", "yeaaa done")


def test_a_regex_is_a_string_and_a_choice_can_be_encoded() -> None:
    with pytest.raises(ProgramError, match="not a string"):
        gen("x", regex=7)  # pyright: ignore[reportArgumentType]
    with pytest.raises(PromptError) as caught:
        gen("x", choices=["a", "\udfff"])
    assert caught.value.place == "choices[1]"
