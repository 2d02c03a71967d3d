"""Constrained requests through the engine: loading, masks of the right rows, forcing, closing in time, endings."""

from __future__ import annotations

import json
import re

import pytest
from engine_driver import EOS, TOKEN_BYTES, VOCAB_SIZE, ChoiceMatcher, Driver, alone, ids_of

from radixlm.grammar.compiler import compile_spec
from radixlm.grammar.spec import JsonSchema, Regex
from radixlm.runtime import messages as m
from radixlm.runtime.constraint import Constraint
from radixlm.runtime.forcing import Forcer, ends_inside_code_point
from radixlm.runtime.grammar_loading import GrammarLoader
from radixlm.runtime.vocab_facts import VocabFacts

PROMPT = tuple(range(10, 47))
FACTS = VocabFacts(VOCAB_SIZE, 4096, (EOS,), TOKEN_BYTES)


def real_driver(**options) -> Driver:
    return Driver(load_grammar=GrammarLoader(FACTS), **options)


def load_spec(driver: Driver, key: str, spec) -> None:
    driver.engine.receive(m.LoadProgram(key, compile_spec(spec, b"\1" * 256).to_bytes()))


def constrained(spec, *, prompt=PROMPT, **sampling) -> Driver:
    driver = real_driver()
    load_spec(driver, "g", spec)
    driver.submit("a", prompt, program="g", **{"max_tokens": 200, **sampling})
    driver.run()
    return driver


# ---------------------------------------------------------------------------------------------- loading


def test_a_missing_program_is_asked_for_once_and_all_who_wait_start_with_it():
    driver = Driver()
    for name in "abc":
        driver.submit(name, PROMPT, program="k", max_tokens=9)
    driver.step()
    driver.step()
    assert [message for message in driver.others if isinstance(message, m.NeedProgram)] == [
        m.NeedProgram("k")
    ]
    assert not driver.engine.has_work
    driver.load("k", b"true", b"ab")
    driver.run()
    assert {driver.text(name) for name in "abc"} <= {b"true", b"ab"}


def test_a_damaged_program_fails_those_who_wait_for_it():
    driver = Driver()
    driver.submit("a", PROMPT, program="k", max_tokens=9)
    driver.load("k", b"damaged")
    driver.run()
    assert driver.failed("a").error.name == "GrammarError"


def test_a_program_that_was_dropped_is_asked_for_again():
    from radixlm.runtime.scheduler_limits import SchedulerLimits

    driver = Driver(limits=SchedulerLimits(max_programs=2))
    for key in ("k1", "k2", "k3"):
        driver.load(key, b"ab")
    driver.submit("a", PROMPT, program="k1", max_tokens=9)
    driver.step()
    assert driver.others[-1] == m.NeedProgram("k1")
    driver.load("k1", b"ab")
    driver.run()
    assert driver.text("a") == b"ab"


def test_r029_the_program_is_shared_the_position_is_not_and_masks_stay_in_their_rows():
    driver = real_driver()
    schema = JsonSchema(
        json.dumps(
            {
                "type": "object",
                "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 99}},
                "required": ["n"],
                "additionalProperties": False,
            }
        )
    )
    load_spec(driver, "s", schema)
    for i in range(8):
        driver.submit(f"free{i}", [*PROMPT, 100 + i], max_tokens=12, temperature=1.0, seed=i)
        driver.submit(
            f"json{i}", [*PROMPT, 100 + i], program="s", max_tokens=12, temperature=1.0, seed=i
        )
    driver.run()
    for i in range(8):
        assert 0 <= json.loads(driver.text(f"json{i}"))["n"] <= 99
        assert driver.done(f"json{i}").samples[0].grammar_complete is True
        expected = alone([*PROMPT, 100 + i], max_tokens=12, temperature=1.0, seed=i).samples[0]
        assert driver.done(f"free{i}").samples[0] == expected
    assert driver.engine.stats()["programs_loaded"] == 1


# ---------------------------------------------------------------------------------------------- endings


def test_a_complete_grammar_ends_with_stop_without_eos():
    sample = constrained(Regex("[ab]{3}")).done("a").samples[0]
    assert sample.finish_reason == "stop"
    assert EOS not in sample.token_ids
    assert sample.grammar_complete is True


@pytest.mark.parametrize("sampling", [{"min_tokens": 50}, {"ignore_eos": True}])
def test_a_complete_grammar_beats_min_tokens_and_ignore_eos(sampling):
    driver = constrained(Regex("[0-9]{2,4}"), **sampling)
    assert re.fullmatch(
        rb"[0-9]{4}", driver.text("a")
    )  # EOS was banned as long as anything else was possible
    assert driver.done("a").samples[0].finish_reason == "stop"


@pytest.mark.parametrize("max_tokens", [1, 2, 5, 9])
def test_an_output_closes_within_its_tokens_when_it_can(max_tokens):
    driver = constrained(
        Regex(r"x(\(a*\))*"), max_tokens=max_tokens, temperature=1.0, seed=1, ignore_eos=True
    )
    sample = driver.done("a").samples[0]
    assert sample.finish_reason == "stop"
    assert sample.grammar_complete is True
    assert re.fullmatch(rb"x(\(a*\))*", driver.text("a"))
    assert len([i for i in sample.token_ids if i != EOS]) <= max_tokens


def test_an_output_that_could_never_close_ends_with_length_and_says_so():
    sample = constrained(Regex("[a-b]{40}"), max_tokens=5).done("a").samples[0]
    assert sample.finish_reason == "length"
    assert sample.grammar_complete is False


def test_a_stop_string_inside_a_constrained_text_says_it_is_not_complete():
    for pattern in (
        "aaa!bbb",
        "aaa!(bbb)?",
    ):  # the second is a sentence with the stop string, but that is cut
        sample = constrained(Regex(pattern), stop=("!",)).done("a").samples[0]
        assert sample.cut_byte == 3
        assert sample.grammar_complete is False
    kept = constrained(Regex("aaa!(bbb)?"), stop=("!",), include_stop=True).done("a").samples[0]
    assert (kept.cut_byte, kept.grammar_complete) == (4, True)


def test_an_empty_grammar_is_answered_without_a_step_of_the_model():
    driver = constrained(Regex(""), n=2)
    assert [sample.token_ids for sample in driver.done("a").samples] == [(), ()]
    assert driver.done("a").samples[0].finish_reason == "stop"
    assert not driver.runner.plans


# ---------------------------------------------------------------------------------------------- forcing


def test_forced_tokens_are_counted_and_not_sampled():
    driver = constrained(Regex('{"name":(ab|12)}'), n=2, temperature=1.0)
    usage = driver.done("a").usage
    assert usage.forced_tokens == usage.completion_tokens - 2 * 1 > 0
    assert driver.engine.stats()["sampled_tokens"] == 2


def test_an_output_that_is_forced_to_its_end_needs_no_model_at_all():
    driver = constrained(Regex('{"name":true}'), n=3)
    assert [driver.text("a", i) for i in range(3)] == [b'{"name":true}'] * 3
    assert driver.done("a").usage.forced_tokens == driver.done("a").usage.completion_tokens
    assert not driver.runner.plans


def test_logprobs_of_forced_tokens_are_computed():
    for jump_forward in (True, False):
        driver = constrained(
            Regex('{"name":(ab|12)}'), logprobs=2, jump_forward=jump_forward, stream=True
        )
        sample = driver.done("a").samples[0]
        assert sample.logprobs is not None
        assert [entry.token_id for entry in sample.logprobs] == list(sample.token_ids)
        ids = (*PROMPT, *sample.token_ids)
        scored = alone(
            ids, max_tokens=0, prompt_logprobs=2, prompt_logprobs_start=len(PROMPT)
        ).prompt_logprobs
        assert sample.logprobs == scored[len(PROMPT) :]


def test_forced_endings_wait_for_their_logprobs():
    sample = constrained(Regex('{"name":true}'), logprobs=0).done("a").samples[0]
    assert sample.logprobs is not None
    assert len(sample.logprobs) == len(sample.token_ids)


def forced(options: tuple[bytes, ...], *, tail: bytes = b"", remaining: int = 100) -> bytes:
    forcer = Forcer(FACTS, ids_of)
    constraint = Constraint(ChoiceMatcher(options), remaining)
    return b"".join(
        TOKEN_BYTES[i] or b"" for i in forcer.forced_tokens(constraint, tail, remaining)
    )


def test_the_last_forced_token_is_held_back_if_an_allowed_token_extends_it():
    assert forced((b'{"name":1', b'{"name":x')) == b'{"name":'
    assert forced((b'{"name":1', b'{"name_":1')) == b'{"'  # `name` might have been `name_`
    assert forced((b"abq", b"abz")) == b"ab"  # `abc` exists but is not allowed
    assert forced((b"abq", b"abc")) == b""


def test_nothing_is_forced_inside_a_code_point():
    assert forced(("家x".encode(), "家y".encode())) == "家".encode()
    assert forced((b"\x80true", b"\x80true1"), tail=b"\xe5\xae") == b""
    assert [ends_inside_code_point(tail) for tail in (b"", b"a", b"\xe5", b"\xe5\xae", "家".encode(), b"\xf0\x9f\x98")] == [
        False, False, True, True, False, True,
    ]  # fmt: skip


def test_forcing_never_takes_more_than_what_remains():
    assert forced((b"true!!", b"true!?"), remaining=1) == b"true"


def test_forcing_that_would_not_close_in_time_is_left_to_sampling():
    # As bytes the text fits in 5 tokens; a forced span that took more of them than it brings nearer would break that.
    class FarAway(ChoiceMatcher):
        def distance(self):
            return 5 if not self.text else 9

    constraint = Constraint(FarAway((b"true!!", b"true!?")), 5)
    assert Forcer(FACTS, ids_of).forced_tokens(constraint, b"", 5) == []


REGEXES = [
    r'\{"name":"(ab|abc)","age":[0-9]{1,3}\}',
    r'\{"人口":[1-9][0-9]{0,6}\}',
    r"(name|name_|named)=12[0-9]*",
    r"true|truest|false",
    r"家(族|事)*",
    r"x{3,9}<end>",
    r"(12){1,3}[0-9]\.",
]


@pytest.mark.parametrize("pattern", REGEXES)
def test_r033_texts_match_with_and_without_forcing(pattern):
    for seed in range(3):
        for jump_forward in (True, False):
            driver = constrained(
                Regex(pattern), jump_forward=jump_forward, temperature=1.0, seed=seed, max_tokens=60
            )
            sample = driver.done("a").samples[0]
            assert re.fullmatch(pattern, driver.text("a").decode()), driver.text("a")
            assert sample.finish_reason == "stop"
            if not jump_forward:
                assert driver.done("a").usage.forced_tokens == 0


def test_r034_a_mask_comes_before_truncation():
    driver = Driver(steer=lambda ids: {ids_of(b"a")[0]: 50.0})
    driver.load("g", b"12", b"xy")
    driver.submit(
        "a", PROMPT, program="g", max_tokens=5, temperature=1.0, top_k=1, seed=1, jump_forward=False
    )
    driver.run()
    assert driver.text("a") in (b"12", b"xy")
