"""The same-answer line of the exactness contract, as a property over random schedules: batch, chunks, budgets, pool sizes that
force evictions and preemptions, prompts that extend earlier outputs, aborts of others, seeds, n. And: nothing leaks."""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from engine_driver import VOCAB_SIZE, Driver, alone
from hypothesis import given, settings
from hypothesis import strategies as st
from paged_steps import PagedSequence, plan_step
from tiny_llamas import tiny_llama

from radixlm.kernels.cpu.backend import BACKEND
from radixlm.kernels.cpu.library import instruction_sets, load, reads_halves
from radixlm.kernels.cpu.packed import PackedModel
from radixlm.runtime import messages as m
from radixlm.runtime.models.native import pack_files
from radixlm.runtime.native_runner import NativeRunner
from radixlm.runtime.scheduler_limits import SchedulerLimits

OPTIONS = (b'{"name":"ab"}', b'{"name":"abc"}', b'{"name_":12}', b"true", "家家".encode())

limits = st.builds(
    SchedulerLimits,
    max_tokens_per_step=st.integers(6, 40),
    max_running=st.sampled_from([1, 2, 4, 6]),
    max_prefill_tokens_beside_decode=st.integers(1, 16),
    aging_tokens_per_step=st.sampled_from([0.5, 8.0]),
    max_candidates_per_step=st.integers(1, 8),
    max_refreshes_per_step=st.integers(0, 3),
    min_follow_tokens=st.integers(1, 8),
)


def random_sampling(rng: random.Random, lengths: tuple[int, ...]) -> dict:
    arguments = {
        "max_tokens": rng.choice(lengths),
        "temperature": rng.choice([0.0, 1.0]),
        "seed": rng.randrange(5),
        "n": rng.choice([1, 1, 1, 2, 3]),
        "ignore_eos": rng.random() < 0.8,
    }
    if rng.random() < 0.4:
        arguments["logprobs"] = rng.randrange(3)
    if rng.random() < 0.2:
        arguments |= {"prompt_logprobs": 1, "prompt_logprobs_start": rng.randrange(8)}
    if rng.random() < 0.2:
        arguments |= {"repetition_penalty": 1.3, "presence_penalty": 0.5, "frequency_penalty": 0.2}
    if rng.random() < 0.2:
        arguments["jump_forward"] = False
    return arguments


def check_schedule(
    rng: random.Random,
    limits: SchedulerLimits,
    page_size: int,
    pool_tokens: int,
    num_requests: int,
    lengths=(0, 1, 3, 12, 40),
    make_runner=None,
    make_runner_alone=None,
) -> Driver:
    shape = {
        "num_pages": -(-pool_tokens // page_size),
        "page_size": page_size,
        "context_length": 200,
    }
    driver = Driver(**shape, limits=limits, make_runner=make_runner)
    shape["make_runner"] = make_runner_alone
    driver.load("g", *OPTIONS)
    texts = [
        [rng.randrange(2, 6) for _ in range(30)] for _ in range(2)
    ]  # few tokens: prompts share long prefixes
    submitted = []
    for number in range(num_requests):
        sampling = random_sampling(rng, lengths)
        base = rng.choice(texts)
        prompt = base[: rng.randint(1, len(base))] + [
            rng.randrange(2, 6) for _ in range(rng.choice([0, 1, 9, 40]))
        ]
        options = OPTIONS if rng.random() < 0.3 else ()
        driver.submit(
            str(number),
            prompt,
            program="g" if options else "",
            stream=rng.random() < 0.5,
            **sampling,
        )
        submitted.append((prompt, options, sampling))
        for _ in range(rng.choice([0, 0, 0, 1, 5])):
            driver.step()
        for name, answer in driver.answers.items():
            if isinstance(answer, m.Done) and answer.samples[0].token_ids and rng.random() < 0.5:
                texts.append(
                    [*submitted[int(name)][0], *answer.samples[0].token_ids]
                )  # a conversation goes on
        if rng.random() < 0.2:
            driver.cancel(str(rng.randrange(number + 1)))
    driver.run()
    assert set(driver.answers) == set(map(str, range(num_requests)))
    capacity = shape["num_pages"] * page_size
    for number, (prompt, options, sampling) in enumerate(submitted):
        answer = driver.answers[str(number)]
        if isinstance(answer, m.EngineFailed) and answer.error.name == "Aborted":
            continue
        expected = alone(prompt, options=options, driver=shape, **sampling)
        if isinstance(expected, m.EngineFailed):
            assert answer.error == expected.error
            continue
        assert isinstance(answer, m.Done), answer
        assert answer.prompt_logprobs == expected.prompt_logprobs
        assert answer.usage.completion_tokens == sum(len(s.token_ids) for s in answer.samples)
        for index, (sample, wanted) in enumerate(
            zip(answer.samples, expected.samples, strict=True)
        ):
            streamed = tuple(driver.streams.get((str(number), index), ()))
            assert sample.token_ids[: len(streamed)] == streamed
            if (
                len(prompt) + len(wanted.token_ids) < capacity
            ):  # else the pool decides where a text ends
                assert sample == wanted
    return driver


@settings(max_examples=20, deadline=None)
@given(
    limits=limits,
    page_size=st.sampled_from([1, 4, 16]),
    pool_tokens=st.integers(80, 240),
    num_requests=st.integers(2, 14),
    seed=st.integers(0, 2**32),
)
def test_tokens_do_not_depend_on_the_schedule(limits, page_size, pool_tokens, num_requests, seed):
    check_schedule(random.Random(seed), limits, page_size, pool_tokens, num_requests)


def test_tokens_do_not_depend_on_the_schedule_under_pressure():
    totals: Counter[str] = Counter()
    for seed in range(10):
        rng = random.Random(seed)
        pressure = SchedulerLimits(
            max_tokens_per_step=rng.choice([8, 16, 40]),
            max_running=rng.choice([3, 6]),
            max_prefill_tokens_beside_decode=rng.choice([2, 8, 16]),
            min_follow_tokens=1,
        )
        driver = check_schedule(
            rng, pressure, rng.choice([1, 4, 16]), rng.choice([112, 128, 160]), 12, (8, 30, 50)
        )
        totals.update(driver.engine.stats())
    # Otherwise the property was not put to the test.
    assert totals["preemptions"] > 25
    assert totals["follows"] > 10
    assert totals["cache_evicted_pages"] > 25
    assert totals["cache_page_copies"] > 25
    assert totals["forced_tokens"] > 25
    assert totals["repairs"] == 0


REASON = BACKEND.unavailable_reason("cpu")
needs_native = pytest.mark.skipif(REASON is not None, reason=str(REASON))
ISAS = [] if REASON else instruction_sets(load())


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, bool], PackedModel]:
    """The weights of a tiny Llama over the byte vocabulary, by quantization and whether words are of one half."""
    wide = {"vocab_size": VOCAB_SIZE, "hidden_size": 64, "intermediate_size": 96}
    files = tiny_llama(tmp_path_factory.mktemp("bytes"), **wide).files

    def make(quantization: str, in_halves: bool) -> PackedModel:
        found = pack_files(files, "float32", quantization, in_halves)
        assert found is not None
        return found

    return functools.cache(make)


def runner_of(
    packed: PackedModel, kv_dtype: str, threads: int, isa: str, has_spare_core: bool = False
):
    def make(num_pages: int, page_size: int) -> NativeRunner:
        return NativeRunner(
            packed,
            num_pages=num_pages,
            page_size=page_size,
            kv_dtype=kv_dtype,
            threads=threads,
            instruction_set=isa,
            has_spare_core=has_spare_core,
        )

    return make


@needs_native
def test_answers_are_the_same_where_masks_are_filled_beside_the_forward_pass(packed) -> None:
    model = packed("int4", reads_halves(load(), ISAS[0]))
    beside, alone = (runner_of(model, "bfloat16", 1, "", spare) for spare in (True, False))
    totals: Counter[str] = Counter()
    tight = SchedulerLimits(max_tokens_per_step=24, max_running=6, min_follow_tokens=1)
    for seed in range(2):
        driver = check_schedule(random.Random(seed), tight, 16, 144, 10, (1, 8, 30), beside, alone)
        totals.update(driver.engine.stats())
    assert totals["forced_tokens"] > 0  # constrained requests were among them
    assert totals["repairs"] == 0


@needs_native
def test_a_step_that_fails_beside_the_caller_is_told_when_it_is_finished_and_the_next_one_works(
    packed, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = packed("int4", reads_halves(load(), ISAS[0]))
    runner = runner_of(model, "float32", 1, "", True)(32, 16)
    sequence = PagedSequence([0, 1], [1, 2, 3])
    plan = plan_step([(sequence, 3)], 16, greedy=True)
    masked = replace(plan, sampling=replace(plan.sampling, mask_rows=np.zeros(1, np.int32)))
    mask = np.full((1, -(-VOCAB_SIZE // 32)), 0xFFFFFFFF, np.uint32)
    wanted = runner.finish(runner.launch(masked), mask).token_ids
    forward = runner._decoder.forward

    def fails(batch: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(runner._decoder, "forward", fails)
    with pytest.raises(MemoryError, match="no room"):
        runner.finish(runner.launch(masked), mask)
    runner.launch(masked)  # and nobody finishes it
    monkeypatch.setattr(runner._decoder, "forward", forward)
    assert runner.finish(runner.launch(masked), mask).token_ids == wanted


@needs_native
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kv_dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("quantization", ["none", "int8", "int4"])
def test_native_answers_have_the_bits_of_one_thread_alone_on_any_schedule(
    packed, quantization: str, kv_dtype: str, isa: str
) -> None:
    """Tokens and log-probabilities: two threads, batches, chunks, evictions and forks, against one thread and one request."""
    model = packed(quantization, reads_halves(load(), isa))
    two, one = (runner_of(model, kv_dtype, threads, isa) for threads in (2, 1))
    totals: Counter[str] = Counter()
    for seed in range(2):
        tight = SchedulerLimits(
            max_tokens_per_step=24,
            max_running=6,
            max_prefill_tokens_beside_decode=8,
            min_follow_tokens=1,
        )
        driver = check_schedule(random.Random(seed), tight, 16, 144, 10, (1, 8, 30), two, one)
        totals.update(driver.engine.stats())
    assert totals["cache_page_copies"] > 0
    assert totals["repairs"] == 0
