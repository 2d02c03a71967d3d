"""One request's life through the engine over the fake runner: limits, stops, logprobs, refusals, streams."""

from __future__ import annotations

import pytest
from engine_driver import EOS, VOCAB_SIZE, Driver, alone, ids_of, text_of

from radixlm.runtime import messages as m

PROMPT = tuple(range(10, 47))  # 37 tokens


def script(text: bytes, *, prompt_length: int, end: bool = True):
    """Steers the model to say `text` after the prompt, then EOS."""
    wanted = [*ids_of(text), *([EOS] if end else [])]

    def steer(ids):
        at = len(ids) - prompt_length
        return {wanted[at]: 100.0} if 0 <= at < len(wanted) else {}

    return steer


def scripted(text: bytes, **sampling) -> Driver:
    driver = Driver(steer=script(text, prompt_length=len(PROMPT)))
    driver.submit("a", PROMPT, **{"max_tokens": 50, **sampling})
    driver.run()
    return driver


# ---------------------------------------------------------------------------------------------- ends


def test_a_request_runs_to_its_token_limit():
    driver = Driver()
    driver.submit("a", PROMPT, max_tokens=5, ignore_eos=True)
    driver.run()
    done = driver.done("a")
    assert done.samples[0].finish_reason == "length"
    assert len(done.samples[0].token_ids) == 5
    assert done.usage == m.Usage(
        prompt_tokens=37, cached_tokens=0, completion_tokens=5, forced_tokens=0
    )


def test_eos_ends_a_text_and_is_among_its_tokens():
    done = scripted(b"hello").done("a")
    assert done.samples[0].token_ids == (*ids_of(b"hello"), EOS)
    assert done.samples[0].finish_reason == "stop"
    assert done.samples[0].matched_stop is None


def test_ignore_eos_never_samples_it():
    done = scripted(b"hi", ignore_eos=True, max_tokens=9).done("a")
    assert EOS not in done.samples[0].token_ids
    assert done.samples[0].finish_reason == "length"


def test_min_tokens_masks_eos_and_stop_ids_before_it():
    stop = ids_of(b"!")[0]
    driver = scripted(b"!", min_tokens=3, stop_token_ids=(stop,), max_tokens=8, ignore_eos=False)
    ids = driver.tokens("a")
    assert len(ids) >= 3
    assert not {EOS, stop} & set(ids[:3])


def test_a_stop_string_counts_only_after_min_tokens():
    driver = scripted(b"a!b!c", stop=("!",), min_tokens=3)
    assert driver.text("a") == b"a!b"


def test_a_stop_token_id_ends_the_text_and_is_cut_from_it():
    driver = scripted(b"ab!cd", stop_token_ids=ids_of(b"!"))
    sample = driver.done("a").samples[0]
    assert sample.finish_reason == "stop"
    assert sample.matched_stop == ids_of(b"!")[0]
    assert sample.token_ids == ids_of(b"ab!")
    assert driver.text("a") == b"ab"
    assert scripted(b"ab!cd", stop_token_ids=ids_of(b"!"), include_stop=True).text("a") == b"ab!"


@pytest.mark.parametrize(
    ("stop", "include", "text", "matched"),
    [
        (("<end>",), False, b"xx", b"<end>"),
        (("nd>y",), False, b"xx<e", b"nd>y"),
        (("<e", "<end>"), False, b"xx", b"<e"),
        (("<end>",), True, b"xx<end>", b"<end>"),
        (("zz",), False, b"xx<end>yy", None),
    ],
)
def test_r025_stop_strings_are_decided_on_bytes(stop, include, text, matched):
    driver = scripted(b"xx<end>yy", stop=stop, include_stop=include)
    sample = driver.done("a").samples[0]
    assert driver.text("a") == text
    assert sample.matched_stop == matched
    assert sample.finish_reason == "stop"


def test_nothing_of_a_stop_string_is_streamed_after_it_matched():
    driver = Driver(steer=script(b"one<end>two", prompt_length=len(PROMPT)))
    driver.submit("a", PROMPT, max_tokens=50, stop=("d>",), stream=True)
    driver.run()
    streamed = text_of(driver.streams["a", 0])
    assert driver.text("a") == b"one<en"
    assert b"one<en".startswith(streamed)


def test_r015_max_tokens_zero_computes_the_prompt_and_says_length():
    driver = Driver()
    for name in ("cold", "warm"):
        driver.submit(name, PROMPT, max_tokens=0)
        driver.run()
        assert driver.done(name).samples[0] == m.Sample((), "length")
    assert driver.done("warm").usage.cached_tokens == len(PROMPT)
    assert driver.runner.num_computed == len(PROMPT)
    for name in ("scored", "scored again"):
        driver.submit(name, PROMPT, max_tokens=0, prompt_logprobs=2)
        driver.run()
        scores = driver.done(name).prompt_logprobs
        assert scores is not None
        assert scores[0] is None
        assert [score.token_id for score in scores[1:] if score] == list(PROMPT[1:])
        assert all(len(score.top) == 2 for score in scores[1:] if score)


def test_prompt_logprobs_start_lets_the_cache_serve_what_is_before():
    driver = Driver()
    driver.submit("whole", PROMPT, max_tokens=0, prompt_logprobs=0)
    driver.run()
    driver.submit("end", PROMPT, max_tokens=0, prompt_logprobs=0, prompt_logprobs_start=30)
    driver.run()
    done, whole = driver.done("end"), driver.done("whole").prompt_logprobs
    assert done.prompt_logprobs is not None
    assert whole is not None
    assert done.usage.cached_tokens == 29  # the logits at 29 score the token at 30
    assert done.prompt_logprobs[:30] == (None,) * 30
    assert done.prompt_logprobs[30:] == whole[30:]


@pytest.mark.parametrize(("num_prompt", "num_output"), [(510, 2), (511, 1)])
def test_r017_a_prompt_near_the_context_gets_what_room_is_left(num_prompt, num_output):
    driver = Driver(context_length=512)
    driver.submit("a", [5] * num_prompt, max_tokens=8, ignore_eos=True)
    driver.run()
    sample = driver.done("a").samples[0]
    assert (len(sample.token_ids), sample.finish_reason) == (num_output, "length")


@pytest.mark.parametrize("num_prompt", [512, 513])
def test_r017_a_prompt_that_fills_the_context_is_refused(num_prompt):
    driver = Driver(context_length=512)
    driver.submit("a", [5] * num_prompt, max_tokens=8)
    driver.submit("b", PROMPT, max_tokens=1)
    driver.run()
    assert driver.failed("a").error.name == "ContextOverflow"
    assert str(num_prompt) in driver.failed("a").error.message
    assert "512" in driver.failed("a").error.message
    driver.done("b")


@pytest.mark.parametrize(
    ("prompt", "sampling", "name", "words"),
    [
        ((), {}, "PromptError", "empty"),
        ((5, VOCAB_SIZE), {}, "PromptError", str(VOCAB_SIZE)),
        (PROMPT, {"temperature": -1.0}, "SamplingError", "temperature"),
        (PROMPT, {"logit_bias": {VOCAB_SIZE: 1.0}}, "SamplingError", "logit_bias"),
        (PROMPT, {"stop_token_ids": (-1,)}, "SamplingError", "stop_token_ids"),
        (PROMPT, {"prompt_logprobs": 0, "prompt_logprobs_start": 99}, "SamplingError", "99"),
    ],
)
def test_what_can_never_run_is_refused_with_the_value(prompt, sampling, name, words):
    driver = Driver()
    driver.submit("a", prompt, **{"max_tokens": 3, **sampling})
    driver.run()
    assert driver.failed("a").error.name == name
    assert words in driver.failed("a").error.message


def test_r021_a_prompt_that_never_fits_the_pool_is_refused_with_both_numbers():
    driver = Driver(num_pages=16)
    driver.submit("big", [5] * 300, max_tokens=4)
    driver.submit("small", [6] * 10, max_tokens=4)
    driver.step()
    message = driver.failed("big").error.message
    assert "300" in message
    assert "256" in message
    driver.run()
    driver.done("small")


def test_r018_a_request_alone_that_outgrows_the_pool_ends_with_what_it_has():
    driver = Driver(num_pages=8)
    driver.submit("a", [5] * 100, max_tokens=500, ignore_eos=True)
    driver.run()
    sample = driver.done("a").samples[0]
    assert sample.finish_reason == "length"
    assert (
        len(sample.token_ids) == 29
    )  # 128 positions hold K/V, one more token is sampled from the last
    assert sample.token_ids == alone([5] * 100, max_tokens=29, ignore_eos=True).samples[0].token_ids


def test_r008_a_live_name_is_refused_and_free_again_afterwards():
    driver = Driver()
    driver.submit("x", PROMPT, max_tokens=64, ignore_eos=True)
    for _ in range(4):
        driver.step()
    driver.submit("x", PROMPT, max_tokens=1)
    outbox = driver.engine.step()
    refusals = [message for message in outbox if isinstance(message, m.EngineFailed)]
    assert "unique" in refusals[0].error.message
    driver.run()
    assert len(driver.tokens("x")) == 64
    driver.answers.clear()
    driver.submit("x", PROMPT, max_tokens=1)
    driver.run()
    assert len(driver.tokens("x")) == 1


# ---------------------------------------------------------------------------------------------- sampling arguments


def test_seeds_are_drawn_when_not_given_and_reported():
    driver = Driver()
    driver.submit("drawn", PROMPT, max_tokens=20, temperature=1.0)
    driver.run()
    seed = driver.done("drawn").seed
    driver.submit("again", PROMPT, max_tokens=20, temperature=1.0, seed=seed)
    driver.submit("other", PROMPT, max_tokens=20, temperature=1.0, seed=seed + 1)
    driver.run()
    assert driver.tokens("again") == driver.tokens("drawn")
    assert driver.tokens("other") != driver.tokens("drawn")


def test_r022_samples_share_one_prompt_and_are_reproducible():
    driver = Driver()
    prompt = [7 + i % 40 for i in range(100)]
    driver.submit("first", prompt, n=4, seed=7, temperature=1.0, max_tokens=20, ignore_eos=True)
    driver.run()
    done = driver.done("first")
    assert done.usage == m.Usage(prompt_tokens=100, cached_tokens=0, completion_tokens=80)
    assert len({sample.token_ids for sample in done.samples}) >= 2
    assert driver.runner.num_computed == 100 + 4 * 19  # the last token of each is not computed
    driver.submit("second", prompt, n=4, seed=7, temperature=1.0, max_tokens=20, ignore_eos=True)
    driver.run()
    assert driver.done("second").samples == done.samples
    # Sample i is what choice i says, whatever n is.
    driver.submit("two", prompt, n=2, seed=7, temperature=1.0, max_tokens=20, ignore_eos=True)
    driver.run()
    assert driver.done("two").samples == done.samples[:2]


def test_logprobs_come_with_every_token_and_stream_in_step():
    driver = Driver()
    driver.submit("a", PROMPT, max_tokens=6, logprobs=3, ignore_eos=True, stream=True)
    driver.run()
    sample = driver.done("a").samples[0]
    assert sample.logprobs is not None
    assert [entry.token_id for entry in sample.logprobs] == list(sample.token_ids)
    assert all(len(entry.top) == 3 and entry.logprob <= 0 for entry in sample.logprobs)
    assert tuple(driver.streams["a", 0]) == sample.token_ids[:-1]  # the last comes with Done


def test_penalties_and_biases_reach_the_sampler():
    driver = Driver(steer=lambda ids: {20: 8.0})
    driver.submit("plain", PROMPT, max_tokens=4)
    driver.submit("penalised", PROMPT, max_tokens=4, presence_penalty=30.0)
    driver.submit("repetition", (*PROMPT, 20), max_tokens=1, repetition_penalty=50.0)
    driver.submit("biased", PROMPT, max_tokens=4, logit_bias={33: 100.0})
    driver.run()
    assert driver.tokens("plain") == (20,) * 4
    assert driver.tokens("penalised")[0] == 20
    assert 20 not in driver.tokens("penalised")[1:]
    assert driver.tokens("repetition") != (20,)
    assert driver.tokens("biased") == (33,) * 4
