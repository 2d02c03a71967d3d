"""Defects that were reproduced on another system with this language, each with what happens here instead.

Its import takes seconds; ours is held by `tests/test_import_weight.py`.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pytest
from lagging_backend import lagging
from toy_engine import InProcess, toy_core
from toy_tokenizer import ToyTokenizer

import radixlm as sgl
from radixlm import EngineDied, GrammarError, ProgramError, ScriptedBackend, State
from radixlm.lang import live_run
from radixlm.radix_cache import eviction
from radixlm.radix_cache.cache import PrefixCache
from radixlm.runtime.messages import Append, Generate, Score, Text
from radixlm.runtime.program_store import ProgramStore

DEAD = EngineDied("the engine process ended")


# ------------------------------------------------------------------------------------ errors that were lost


def test_a_backend_error_raises_at_run_and_not_as_a_bare_key_error_later() -> None:
    @sgl.function
    def unread(s: State) -> None:
        s += "Q:" + sgl.gen("a")

    @sgl.function
    def read(s: State) -> None:
        s += "Q:" + sgl.gen("a")
        _ = s["a"]

    for program in (unread, read):
        with pytest.raises(EngineDied, match="the engine process ended") as caught:
            program.run(backend=ScriptedBackend({"a": DEAD}))
        assert not isinstance(caught.value, KeyError)
        notes = "\n".join(caught.value.__notes__)
        assert __file__ in notes
        assert "'Q:'" in notes


@pytest.mark.parametrize("mode", ["gather_variable", "concate_and_append"])
def test_a_join_with_a_failed_child_raises_and_is_not_silently_shorter(mode: str) -> None:
    @sgl.function
    def program(s: State) -> None:
        forks = s.fork(3)
        forks += sgl.gen("v")
        forks.join(mode)

    backend = ScriptedBackend({"v": ["one", DEAD, "three"]})
    with pytest.raises(EngineDied) as caught:
        program.run(backend=backend)
    assert any("child 1 of fork(3)" in note for note in caught.value.__notes__)


def test_an_exception_of_the_users_code_in_a_streaming_run_reaches_the_reader() -> None:
    boom = ZeroDivisionError("mine")

    @sgl.function
    def program(s: State) -> None:
        s += sgl.gen("a")
        raise boom

    def read() -> None:
        with program.run(stream=True, backend=ScriptedBackend({"a": "x"})) as live:
            list(live.text_iter())

    with pytest.raises(ZeroDivisionError) as caught:
        read()
    assert caught.value is boom


# ------------------------------------------------------------------------------------ things that broke or were dropped


def test_a_string_is_appended_to_every_child_of_a_fork() -> None:
    @sgl.function
    def program(s: State) -> list[str]:
        forks = s.fork(2)
        forks += "abc"
        return [fork.text() for fork in forks]

    assert program.run(backend=ScriptedBackend()).ret_value == ["abc", "abc"]


def test_gens_without_a_name_do_not_share_one() -> None:
    @sgl.function
    def program(s: State) -> None:
        s += sgl.gen() + "," + sgl.gen()

    state = program.run(backend=ScriptedBackend(default=lambda request: f"<{request.name}>"))
    assert state.text() == "<gen_0>,<gen_1>"
    assert [state[name] for name in state.keys()] == ["<gen_0>", "<gen_1>"]  # noqa: SIM118


def test_bind_keeps_arguments_and_options() -> None:
    @sgl.function
    def program(s: State, a: str, b: str) -> None:
        s += a + b + sgl.gen("x")

    backend = ScriptedBackend(default=".")
    bound = program.bind(a="A", temperature=0.5, max_tokens=7, backend=backend).bind(top_k=3)
    state = bound.run(b="B")
    assert state.text() == "AB."
    (request,) = backend.requests
    sampling = request.sampling
    assert (sampling.temperature, sampling.max_tokens, sampling.top_k) == (0.5, 7, 3)
    bound.run_batch([{"b": "C"}])
    assert backend.requests[-1].sampling.max_tokens == 7


def test_a_gen_of_no_choices_is_refused_and_not_a_free_gen() -> None:
    with pytest.raises((ProgramError, GrammarError), match="choice"):
        sgl.gen("a", choices=[])
    with pytest.raises(ProgramError, match="choice"):
        sgl.select("a", choices=[])


# ------------------------------------------------------------------------------------ waste


def test_text_iter_of_a_variable_waits_for_news_and_does_not_spin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @sgl.function
    def program(s: State) -> None:
        s += sgl.gen("a")

    waits: list[Any] = []
    plain = live_run.wait_for
    monkeypatch.setattr(live_run, "wait_for", lambda *args: (waits.append(args), plain(*args)))
    script = {"a": "one two three four"}
    with (
        lagging(script, by_word=True, delay_s=0.05) as backend,
        program.run(stream=True, backend=backend) as live,
    ):
        pieces = list(live.text_iter("a"))
    assert "".join(pieces) == "one two three four"
    assert 0 < len(waits) <= 2 * len(pieces) + 2, "a wait for each piece of news"


def test_200_programs_use_no_thread_of_their_own() -> None:
    backend = ScriptedBackend(default="x")
    backend.pause()
    threads: set[int] = set()

    @sgl.function
    def program(s: State) -> None:
        threads.add(threading.get_ident())
        s += sgl.gen("a")
        _ = s["a"]

    async def run_all() -> None:
        before = threading.active_count()
        tasks = [asyncio.create_task(program.arun(backend=backend)) for _ in range(200)]
        while backend.num_waiting < 200:
            await asyncio.sleep(0)
        assert threading.active_count() == before
        backend.resume()
        await asyncio.gather(*tasks)

    asyncio.run(run_all())
    assert threads == {threading.get_ident()}


def test_a_select_is_one_request_however_many_choices_and_heals_nothing() -> None:
    @sgl.function
    def program(s: State) -> None:
        s += "Is it? Answer:" + sgl.select("a", [" yes", " no", " perhaps"])

    backend = ScriptedBackend({"a": " no"})
    assert program.run(backend=backend).text() == "Is it? Answer: no"
    assert [type(message) for message in backend.sent if isinstance(message, Generate | Score)] == [Score]  # fmt: skip
    assert backend.requests[0].choices == (" yes", " no", " perhaps")


def test_a_gen_sends_only_what_is_new() -> None:
    @sgl.function
    def program(s: State) -> None:
        for turn in range(20):
            s += f"<turn {turn}>" + sgl.gen("a")

    backend = ScriptedBackend(default="answer")
    program.run(backend=backend)
    texts = [
        segment.text
        for message in backend.sent
        if isinstance(message, Append)
        for segment in message.segments
        if isinstance(segment, Text)
    ]
    assert texts == [f"<turn {turn}>" for turn in range(20)]
    assert not any(m.segments for m in backend.sent if isinstance(m, Generate))


# ------------------------------------------------------------------------------------ the runtime below


def test_longest_prefix_order_holds_with_more_than_128_waiting() -> None:
    @sgl.function
    def program(s: State, number: int) -> None:
        s += f"Family {number % 2}: " + "its rules are long. " * 8 + f"{number}"
        s += sgl.gen("a", max_tokens=2, ignore_eos=True)

    core = toy_core(num_pages=60)
    items = [{"number": number} for number in range(300)]
    with InProcess(core, ToyTokenizer()) as backend:
        states = program.run_batch(items, backend=backend, progress_bar=False, num_threads=300)
    assert not any(state.error() for state in states)
    uncached = sum(len(sequence) - 1 for sequence in backend.sequences)
    assert core.stats()["computed_tokens"] < 0.1 * uncached


def test_eviction_does_not_look_at_every_leaf_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = PrefixCache(num_pages=1024, page_size=4)
    for first in range(1024):
        ids = np.full(4, first, dtype=np.int32)
        lease = cache.open(ids)
        assert cache.extend(lease, 4)
        cache.release(lease, ids, 4)
    rebuilt: list[int] = []
    plain = eviction.heapify
    monkeypatch.setattr(eviction, "heapify", lambda heap: (rebuilt.append(len(heap)), plain(heap)))
    for _ in range(500):
        assert cache.evict(1) == 1
    assert len(rebuilt) <= 1


def test_loaded_grammars_are_bounded_in_number_and_bytes() -> None:
    class Loaded:
        num_bytes = 30

    store = ProgramStore(lambda data: Loaded(), 4, 100)
    for number in range(50):
        store.put(f"{number}", b"x")
    assert store.num_bytes <= 100


def test_a_broken_invariant_ends_what_it_hit_and_the_next_program_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @sgl.function
    def program(s: State) -> None:
        s += "Some words to begin with." + sgl.gen("a", max_tokens=4, ignore_eos=True)

    core = toy_core()
    with InProcess(core, ToyTokenizer()) as backend:
        plain = core.cache.commit
        monkeypatch.setattr(core.cache, "commit", lambda *args: 1 / 0)
        with pytest.raises(sgl.ServiceError):
            program.run(backend=backend)
        monkeypatch.setattr(core.cache, "commit", plain)
        assert program.run(backend=backend)["a"]
    core.check()
