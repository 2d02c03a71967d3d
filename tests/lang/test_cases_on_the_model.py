"""Rows of the case collection that only a real model can answer, on the embedded one. One engine serves all."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

import radixlm
from radixlm import State, assistant, function, gen, select, system, user
from radixlm.runtime.messages import Generate, SamplingParams, Text

pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(300)]
PAGE_SIZE = 16


def test_d001_n_samples_of_one_prefill(engine: radixlm.Engine) -> None:
    @function
    def f(s: State, q: str) -> None:
        s += user(q)
        s += assistant(gen("a", max_tokens=8, temperature=1, n=3))

    st = f.run("Name a fruit", backend=engine, seed=1)
    assert len(st["a"]) == 3
    assert st.text() == "Name a fruit" + st["a"][0]
    assert st.get_meta("a").usage.prompt_tokens < 60


def test_d002_select_is_the_arg_max_computed_by_brute_force(engine: radixlm.Engine) -> None:
    prompt, choices = "Is water wet? Answer:", [" YES", " NO", " NOT SURE"]

    @function
    def f(s: State) -> None:
        s += prompt
        s += select("a", choices=choices)

    st = f.run(backend=engine)
    backend = engine.backend
    sampling = SamplingParams(max_tokens=1, prompt_logprobs=0)
    futures = [
        backend.generate(
            Generate(backend.new_id("x"), segments=(Text(prompt + choice),), sampling=sampling)
        )
        for choice in choices
    ]
    rows = [future.result(60).prompt_logprobs or () for future in futures]
    ids = [[each.token_id if each else -1 for each in row] for row in rows]
    num_shared = next(i for i, tokens in enumerate(zip(*ids, strict=False)) if len(set(tokens)) > 1)
    ends = [[each.logprob for each in row[num_shared:] if each] for row in rows]
    expected = [sum(end) / len(end) for end in ends]
    scores = st.get_meta("a").scores
    assert [scores[choice] for choice in choices] == pytest.approx(expected, abs=1e-3)
    assert st["a"] == choices[expected.index(max(expected))]


def test_d003_fork_before_any_text(engine: radixlm.Engine) -> None:
    @function
    def f(s: State) -> None:
        fs = s.fork(2)
        for i, x in enumerate(fs):
            x += f"Item {i}:" + gen("v", max_tokens=4)
        fs.join()
        s += "|".join(x["v"].replace("|", "") for x in fs)

    assert f.run(backend=engine).text().count("|") == 1


def test_d008_the_constant_after_a_constrained_gen(engine: radixlm.Engine) -> None:
    @function
    def f(s: State) -> None:
        s += "Date: " + gen("d", regex=r"\d{4}-\d{2}") + " end"

    st = f.run(backend=engine)
    assert re.fullmatch(r"\d{4}-\d{2}", st["d"])
    assert st.text() == "Date: " + st["d"] + " end"


def test_d009_forks_compute_the_prefix_once(engine: radixlm.Engine) -> None:
    prefix = "The quick brown fox jumps over the lazy dog. " * 20

    @function
    def f(s: State) -> list[radixlm.Meta]:
        s += prefix
        fs = s.fork(4)
        for i, x in enumerate(fs):
            x += f" #{i}:" + gen("v", max_tokens=4)
        s += " sum:" + gen("r", max_tokens=4)
        return [*(x.get_meta("v") for x in fs), s.get_meta("r")]

    st = f.run(backend=engine)
    computed = sum(m.usage.prompt_tokens - m.usage.cached_tokens for m in st.ret_value)
    assert computed < 2 * st.ret_value[0].usage.prompt_tokens
    assert "v" not in st


def test_d012_each_turn_hits_the_turn_before(engine: radixlm.Engine) -> None:
    @function
    def f(s: State) -> None:
        s += system("You help.")
        for i in range(3):
            s += user(f"Question {i}")
            s += assistant(gen(f"a{i}", max_tokens=12))

    st = f.run(backend=engine)
    for before, after in pairwise(st.get_meta(f"a{i}").usage for i in range(3)):
        total = before.prompt_tokens + before.completion_tokens
        assert after.cached_tokens >= total - PAGE_SIZE - 2


def test_d015_max_tokens_too_few_for_the_schema(engine: radixlm.Engine) -> None:
    schema = (
        '{"type":"object","properties":{"s":{"type":"string","minLength":100}},"required":["s"]}'
    )

    @function
    def f(s: State) -> None:
        s += gen("j", json_schema=schema, max_tokens=3)
        s += " done"

    st = f.run(backend=engine)
    assert st.get_meta("j").finish_reason == "length"
    assert '{"s":"'.startswith(st["j"][:6])
    assert st.text().endswith(" done")


def test_a_refused_schema_raises_with_its_place_and_the_engine_lives(
    engine: radixlm.Engine,
) -> None:
    @function
    def f(s: State, pattern: str) -> str:
        s += "x" + gen("a", regex=pattern, max_tokens=4)
        return s["a"]

    bad, good = f.run_batch([{"pattern": "(a"}, {"pattern": "[ab]"}], backend=engine)
    assert isinstance(bad.error(), radixlm.GrammarError)
    assert good.ret_value in ("a", "b")


def test_d017_a_program_of_one_gen_and_an_unknown_name(engine: radixlm.Engine) -> None:
    @function
    def f(s: State) -> None:
        s += gen("a", max_tokens=2)

    st = f.run(backend=engine)
    with pytest.raises(KeyError):
        _ = st["b"]
