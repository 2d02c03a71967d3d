from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from lagging_backend import lagging

from radixlm import (
    Aborted,
    ConfigError,
    ProgramError,
    SamplingError,
    ScriptedBackend,
    State,
    TimedOut,
    function,
    gen,
    set_default_backend,
)
from radixlm.grammar.spec import JsonSchema
from radixlm.runtime.messages import Abort


@function
def ask(s: State, question: str, style: str = "brief") -> str:
    """Ask."""
    s += f"{style}: {question}" + gen("answer")
    return s["answer"]


@pytest.fixture
def _no_default_left() -> Iterator[None]:
    yield
    set_default_backend(None)


def test_run_gives_the_state_with_the_value_of_the_body() -> None:
    st = ask.run("why?", backend=ScriptedBackend({"answer": "because"}))
    assert st.ret_value == "because"
    assert (ask.__name__, ask.__doc__) == ("ask", "Ask.")


def test_sampling_arguments_of_a_run_are_defaults_for_its_gens() -> None:
    @function
    def f(s: State) -> None:
        s += gen("a") + gen("b", temperature=0.1, stop="!")

    backend = ScriptedBackend(default="x")
    f.run(backend=backend, temperature=0.7, max_tokens=9, stop=["\n"])
    a, b = (request.sampling for request in backend.requests)
    assert (a.temperature, a.max_tokens, a.stop) == (0.7, 9, ("\n",))
    assert (b.temperature, b.max_tokens, b.stop) == (0.1, 9, ("!",))


def test_a_parameter_of_the_function_comes_before_an_option_of_the_same_name() -> None:
    @function
    def f(s: State, n: int) -> None:
        s += f"{n}" + gen("a")

    backend = ScriptedBackend(default="x")
    st = f.run(n=3, backend=backend)
    assert st.text() == "3x"
    assert backend.requests[0].sampling.n == 1


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"temperature": -1.0}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"stop": [1]}, "stop"),
        ({"ignore_eos": 1}, "ignore_eos"),
        ({"logit_bias": [1]}, "logit_bias"),
        ({"logit_bias": {1: "x"}}, "logit_bias"),
    ],
)
def test_wrong_options_are_refused_by_name(options: dict[str, object], place: str) -> None:
    with pytest.raises(SamplingError) as caught:
        ask.run("x", backend=ScriptedBackend(default="x"), **options)
    assert caught.value.place == place


def test_an_unknown_option_of_gen_names_the_nearest_known() -> None:
    with pytest.raises(SamplingError, match="Did you mean temperature"):
        gen("x", temprature=1.0)  # type: ignore[reportCallIssue]
    with pytest.raises(SamplingError, match="Did you mean json_schema"):
        gen("x", jsonschema={})  # type: ignore[reportCallIssue]


def test_what_is_nearly_a_constraint_says_what_would_be_one() -> None:
    for spec, words in (
        (JsonSchema("{}", whitespace="pretty"), "one of compact, single_space"),  # type: ignore[arg-type]
        (JsonSchema("{}", any_order=1), "any_order"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ProgramError, match=words):
            gen("x", json_schema=spec)
    with pytest.raises(ProgramError, match="looks like the name of a file"):
        gen("x", grammar="rules/expr.lark")
    as_dict = JsonSchema({"type": "null"}, any_order=True)  # type: ignore[arg-type]
    assert gen("x", json_schema=as_dict).constraint == JsonSchema(
        '{"type": "null"}', any_order=True
    )


def test_bind_keeps_arguments_and_options_and_may_be_overridden() -> None:
    backend = ScriptedBackend(default="x")
    bound = ask.bind(style="long", temperature=0.5).bind(backend=backend)
    assert bound.run("why?").text() == "long: why?x"
    assert bound.run("why?", style="odd", temperature=0.9).text() == "odd: why?x"
    assert [r.sampling.temperature for r in backend.requests] == [0.5, 0.9]


def test_a_program_called_with_a_state_runs_in_place() -> None:
    @function
    def outer(s: State) -> str:
        s += "["
        answer = ask(s, "why?")
        s += "]"
        return answer

    st = outer.run(backend=ScriptedBackend({"answer": "so"}))
    assert st.text() == "[brief: why?so]"
    assert st.ret_value == "so"
    with pytest.raises(ProgramError, match=r"Use \.run"):
        ask("why?")  # type: ignore[reportArgumentType]


def test_a_program_may_run_another_one() -> None:
    @function
    def outer(s: State) -> None:
        s += ask.run("inner", backend=backend)["answer"]

    backend = ScriptedBackend({"answer": "so"})
    assert outer.run(backend=backend).text() == "so"


def test_bodies_that_cannot_be_programs_are_refused() -> None:
    async def is_async(s: State) -> None: ...

    def is_generator(s: State) -> Iterator[int]:
        yield 1

    def takes_nothing() -> None: ...

    for body in (is_async, is_generator, takes_nothing):
        with pytest.raises(ProgramError, match=body.__name__):
            function(body)


@pytest.mark.usefixtures("_no_default_left")
def test_the_default_backend_serves_runs_that_name_none() -> None:
    with pytest.raises(ProgramError, match="no backend"):
        ask.run("x")
    set_default_backend(ScriptedBackend({"answer": "default"}))
    assert ask.run("x").ret_value == "default"


def test_a_backend_is_found_behind_an_object_that_carries_one() -> None:
    class Carrier:
        backend = ScriptedBackend({"answer": "carried"})

        def generate(self) -> None: ...

    assert ask.run("x", backend=Carrier()).ret_value == "carried"  # type: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="is not a backend"):
        ask.run("x", backend=object())  # type: ignore[reportArgumentType]


def test_a_run_past_its_timeout_raises_aborts_and_closes() -> None:
    backend = ScriptedBackend(default="x")
    backend.pause()
    with pytest.raises(TimedOut, match="'answer'") as caught:
        ask.run("x", backend=backend, timeout_s=0.05)
    assert any(__file__ in note for note in caught.value.__notes__)
    assert [m.request for m in backend.sent if isinstance(m, Abort)] == ["answer#2"]
    assert not backend.open_branches


def test_a_seed_gives_every_gen_its_own_and_the_run_can_be_repeated() -> None:
    @function
    def f(s: State) -> None:
        s += gen("a") + gen("b", seed=5)
        fs = s.fork(3)
        fs += gen("c")
        fs.join()
        s += gen("d")

    def seeds(**options: int) -> list[int | None]:
        backend = ScriptedBackend(default="x")
        f.run(backend=backend, temperature=1.0, **options)
        return [request.sampling.seed for request in backend.requests]

    first = seeds(seed=1)
    assert first == seeds(seed=1)
    assert len(set(first)) == 6
    assert first[1] == 5
    assert not set(first) & (set(seeds(seed=2)) - {5})
    assert seeds() == [None, 5, None, None, None, None]


def test_a_batch_is_in_order_and_makes_no_threads() -> None:
    num_threads: list[int] = []

    @function
    def f(s: State, i: int) -> int:
        s += f"{i}" + gen("a")
        num_threads.append(threading.active_count())
        _ = s["a"]
        return i

    with lagging(default="x") as backend:
        before = threading.active_count()
        states = f.run_batch([{"i": i} for i in range(100)], backend=backend)
        assert set(num_threads) == {before}
        assert not backend.open_branches
    assert [st.ret_value for st in states] == list(range(100))
    assert [st.text() for st in states] == [f"{i}x" for i in range(100)]


def test_programs_of_a_batch_are_live_together_up_to_the_limit() -> None:
    @function
    def f(s: State) -> None:
        s += gen("a")
        _ = s["a"]
        s += gen("b")
        _ = s["b"]

    for limit in (1, 3, 50):
        most: list[int] = []
        backend = ScriptedBackend(default="x")
        backend.pause()

        def deliver(backend: ScriptedBackend = backend, most: list[int] = most) -> None:
            most.append(backend.num_waiting)
            backend.resume()
            backend.pause()
            if len(most) < 400:
                threading.Timer(0.002, deliver).start()
            else:
                backend.resume()

        threading.Timer(0.05, deliver).start()
        states = f.run_batch([{}] * 20, backend=backend, num_threads=limit)
        backend.resume()
        most.extend([0] * 400)
        assert len(states) == 20
        assert max(most) <= limit
        assert max(most) == min(limit, 20)


def test_a_batch_times_out_program_by_program() -> None:
    @function
    def f(s: State, slow: bool) -> str:
        if slow:
            s += gen("never")
            return s["never"]
        return "fast"

    backend = ScriptedBackend(default="x")
    backend.pause()
    states = f.run_batch([{"slow": i == 1} for i in range(3)], backend=backend, timeout_s=0.05)
    assert [type(st.error()) for st in states] == [type(None), TimedOut, type(None)]
    assert not backend.open_branches
    with pytest.raises(Aborted):
        _ = states[1]["never"]


def test_seeds_of_a_batch_differ_by_item() -> None:
    backend = ScriptedBackend(default="x")
    ask.run_batch([{"question": "same"}] * 4, backend=backend, seed=3)
    seeds = [request.sampling.seed for request in backend.requests]
    assert len(set(seeds)) == 4
    assert None not in seeds


@pytest.mark.parametrize("batch", [["x"], [{"question": "a"}, 7]])
def test_a_batch_of_wrong_items_is_refused_before_it_starts(batch: list[object]) -> None:
    backend = ScriptedBackend(default="x")
    with pytest.raises(ProgramError, match="not a dict"):
        ask.run_batch(batch, backend=backend)  # type: ignore[reportArgumentType]
    with pytest.raises(SamplingError):
        ask.run_batch([{"question": "a"}, {"question": "b", "top_p": "x"}], backend=backend)
    assert not backend.sent


@pytest.mark.parametrize("name", ["seed", "namespace", "timeout_s", "strict_text", "backend"])
def test_a_parameter_that_a_run_would_take_is_refused(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def f(s, {name}=None): pass", scope)
    with pytest.raises(ProgramError, match=name) as caught:
        function(scope["f"])
    assert caught.value.place == name


@pytest.mark.parametrize("arguments", [{}, {"y": 1}, {"x": 1, "y": 1}])
def test_wrong_arguments_of_a_program_run_in_place_are_named(arguments: dict[str, int]) -> None:
    @function
    def inner(s: State, x: int) -> None: ...

    @function
    def outer(s: State) -> None:
        inner(s, **arguments)

    with pytest.raises(ProgramError, match=r"inner.*\. It takes x"):
        outer.run(backend=ScriptedBackend())


def test_only_functions_become_programs_and_every_callable_does() -> None:
    with pytest.raises(ProgramError, match="5 is no function"):
        function(5)  # type: ignore[call-overload]

    def body(s: State, word: str) -> str:
        return word

    assert function(partial(body, word="hi")).run(backend=ScriptedBackend()).ret_value == "hi"


@pytest.mark.parametrize("timeout_s", [math.inf, 1e12])
def test_a_timeout_longer_than_any_lock_waits_is_none(timeout_s: float) -> None:
    backend = ScriptedBackend({"x": "hi"})
    with backend.paused(), ThreadPoolExecutor() as pool:
        run = pool.submit(
            function(lambda s: s.__iadd__("a" + gen("x"))).run, backend=backend, timeout_s=timeout_s
        )
        while not backend.num_waiting:
            time.sleep(0.001)
        backend.resume()
        assert run.result(10)["x"] == "hi"
