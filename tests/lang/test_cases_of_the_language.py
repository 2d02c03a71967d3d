"""Programs from bug reports of other systems, each with the behaviour we promise. The names are the rows of the case collection."""

from __future__ import annotations

import itertools
import re
import time
from pathlib import Path

import pytest
from lagging_backend import lagging
from shared_data import CASES, rows_of

from radixlm import (
    EngineDied,
    ProgramError,
    SamplingError,
    ScriptedBackend,
    State,
    assistant,
    function,
    gen,
    select,
    system,
    user,
)
from radixlm.lang.testing import Answer


def test_d001_gen_with_n_gives_a_list_and_the_text_goes_on_with_the_first() -> None:
    @function
    def f(s: State, q: str) -> None:
        s += user(q)
        s += assistant(gen("a", max_tokens=8, temperature=1, n=3))
        s += "!"

    backend = ScriptedBackend({"a": ("fig", "kiwi", "plum")})
    st = f.run("Name a fruit", backend=backend)
    assert st["a"] == ["fig", "kiwi", "plum"]
    assert st.text() == "Name a fruitfig!"
    assert len(backend.requests) == 1
    assert backend.requests[0].sampling.n == 3


def test_d002_select_takes_the_arg_max_of_the_normalised_likelihood_and_tells_each_score() -> None:
    choices = [" YES", " NO", " NOT SURE"]
    logprobs = {" YES": -0.9, " NO": -0.4, " NOT SURE": -0.6}

    @function
    def f(s: State) -> None:
        s += "Is water wet? Answer:"
        s += select("a", choices=choices)

    backend = ScriptedBackend({"a": logprobs})
    st = f.run(backend=backend)
    assert st["a"] == max(choices, key=lambda choice: logprobs[choice])
    assert st.get_meta("a").scores == pytest.approx(logprobs)
    assert st.text() == "Is water wet? Answer: NO"
    assert [r.choices for r in backend.requests] == [tuple(choices)], "one request for all choices"


def test_d003_fork_before_any_text() -> None:
    @function
    def f(s: State) -> None:
        fs = s.fork(2)
        for i, x in enumerate(fs):
            x += f"Item {i}:" + gen("v", max_tokens=4)
        fs.join()
        s += "|".join(x["v"] for x in fs)

    st = f.run(backend=ScriptedBackend({"v": ["one", "two"]}))
    assert st.text() == "one|two"


def test_d007_an_exception_of_the_body_reaches_the_caller_and_leaves_nothing_open() -> None:
    boom = KeyError("boom")

    @function
    def f(s: State) -> None:
        s += gen("a", max_tokens=3)
        raise boom

    backend = ScriptedBackend({"a": "x"})
    with pytest.raises(KeyError) as caught:
        f.run(backend=backend)
    assert caught.value is boom
    assert not backend.open_branches


@pytest.mark.parametrize(
    "failure", [SamplingError("refused", place="top_p"), EngineDied("the engine process ended")]
)
def test_d007_a_failure_of_the_second_gen_is_raised_even_if_nothing_reads_it(
    failure: Exception,
) -> None:
    @function
    def f(s: State) -> None:
        s += gen("a")
        s += gen("b")

    with lagging({"a": "x", "b": failure}) as backend:
        with pytest.raises(type(failure)) as caught:
            f.run(backend=backend)
        assert not backend.open_branches
    assert any(__file__ in note for note in caught.value.__notes__)


def test_d008_the_constant_after_a_constrained_gen_starts_right_after_it() -> None:
    @function
    def f(s: State) -> None:
        s += "Date: " + gen("d", regex=r"\d{4}-\d{2}") + " end"

    st = f.run(backend=ScriptedBackend({"d": "2024-05"}))
    assert re.fullmatch(r"\d{4}-\d{2}", st["d"])
    assert st.text() == "Date: " + st["d"] + " end"


def test_d009_branches_share_the_prefix_and_keep_their_variables() -> None:
    prefix = "P " * 400

    @function
    def f(s: State) -> list[str]:
        s += prefix
        fs = s.fork(4)
        for i, x in enumerate(fs):
            x += f" #{i}:" + gen("v", max_tokens=4)
        s += " sum:" + gen("r", max_tokens=4)
        return [x["v"] for x in fs]

    backend = ScriptedBackend({"v": ["a", "b", "c", "d"], "r": "e"})
    st = f.run(backend=backend)
    assert st.ret_value == ["a", "b", "c", "d"]
    assert "v" not in st
    assert st.text() == prefix + " sum:e"
    usage = st.usage()
    assert usage.prompt_tokens - usage.cached_tokens < 2 * 400


def test_d012_each_turn_continues_the_tokens_of_the_turn_before() -> None:
    @function
    def f(s: State) -> None:
        s += system("You help.")
        for i in range(3):
            s += user(f"Question {i}")
            s += assistant(gen(f"a{i}", max_tokens=12))

    backend = ScriptedBackend(default="An answer.")
    st = f.run(backend=backend)
    turns = [st.get_meta(f"a{i}").usage for i in range(3)]
    for before, after in itertools.pairwise(turns):
        assert after.cached_tokens >= before.prompt_tokens + before.completion_tokens - 2
    prompt = backend.requests[-1].prompt
    assert prompt.count("<|im_start|>") == prompt.count("<|im_end|>") + 1
    assert [m["role"] for m in st.messages()] == ["system", *["user", "assistant"] * 3]


@pytest.mark.parametrize("num_threads", [1, 8])
def test_d014_one_bad_input_of_a_batch_does_not_disturb_the_others(num_threads: int) -> None:
    @function
    def f(s: State, x: str) -> None:
        s += "n=" + str(int(x)) + gen("a", max_tokens=2)

    with lagging(default="!") as backend:
        res = f.run_batch(
            [{"x": str(i) if i != 7 else "bad"} for i in range(20)],
            num_threads=num_threads,
            backend=backend,
        )
        assert not backend.open_branches
    assert len(res) == 20
    assert res[3].text() == "n=3!"
    assert isinstance(res[7].error(), ValueError)
    with pytest.raises(ValueError, match="bad"):
        _ = res[7]["a"]
    assert [r.error() for i, r in enumerate(res) if i != 7] == [None] * 19


def test_d015_max_tokens_cuts_a_constrained_gen_and_the_program_goes_on() -> None:
    schema = (
        '{"type":"object","properties":{"s":{"type":"string","minLength":100}},"required":["s"]}'
    )

    @function
    def f(s: State) -> None:
        s += gen("j", json_schema=schema, max_tokens=3)
        s += " done"

    st = f.run(backend=ScriptedBackend({"j": Answer('{"s":"a', finish_reason="length")}))
    assert st["j"] == '{"s":"a'
    assert st.get_meta("j").finish_reason == "length"
    assert st.text().endswith(" done")


def test_d017_reading_what_nothing_sets_is_a_key_error_at_once() -> None:
    @function
    def outside(s: State) -> None:
        s += gen("a", max_tokens=2)

    @function
    def inside(s: State) -> None:
        s += gen("answer", max_tokens=2)
        _ = s["anwser"]

    backend = ScriptedBackend(default="x")
    st = outside.run(backend=backend)
    with pytest.raises(KeyError):
        _ = st["b"]
    backend.pause()
    start_s = time.monotonic()
    with pytest.raises(KeyError, match="Did you mean 'answer'"):
        inside.run(backend=backend)
    assert time.monotonic() - start_s < 5
    with pytest.raises(ProgramError):
        _ = st["b"]


@pytest.mark.data
def test_every_case_of_the_collection_has_a_test_of_its_name() -> None:
    names = [line["id"].lower() for line in rows_of(CASES / "cases.jsonl") if line["kind"] == "D"]
    written = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert len(names) == 11
    assert [name for name in names if f"def test_{name}_" not in written] == []
