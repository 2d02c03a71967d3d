"""Gateway and engine in one thread of this process, without sockets: a Backend over the real parts, on a toy or a real model.

What a test or a bench cannot have of the processes it has here: the scheduler's limits, what was asked of the engine, what it computed.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from itertools import count
from typing import Any

from radixlm.grammar.compiler import compile_spec
from radixlm.runtime import messages as m
from radixlm.runtime.config import EngineConfig
from radixlm.runtime.engine import Engine
from radixlm.runtime.gateway import Gateway

CLIENT = b"c1"


def toy_core(num_pages: int = 1024, page_size: int = 16, context_length: int = 4096) -> Engine:
    """The real engine over the fake runner and the toy tokenizer's vocabulary."""
    from fake_runner import FakeRunner
    from toy_tokenizer import EOS, TOKEN_BYTES, ToyTokenizer

    from radixlm.runtime.grammar_loading import GrammarLoader
    from radixlm.runtime.vocab_facts import VocabFacts

    tokenizer = ToyTokenizer()
    letters = {TOKEN_BYTES.index(bytes((b,))): 4.0 for b in b"abcdefghijklmnopqrstuvwxyz "}
    runner = FakeRunner(
        len(TOKEN_BYTES), num_pages, page_size, steer=lambda ids: {**letters, EOS: -3.0}
    )
    facts = VocabFacts(len(TOKEN_BYTES), context_length, tokenizer.eos_token_ids, TOKEN_BYTES)
    return Engine(
        runner, facts, num_pages=num_pages, page_size=page_size, load_grammar=GrammarLoader(facts),
        encode_forced=tokenizer.encode_forced,
    )  # fmt: skip


def first_come_first_served(core: Engine) -> None:
    """Admit in the order of arrival, whatever is cached."""
    core._scheduler._admission._queue._aging = 1e12


def without_cache(core: Engine) -> None:
    """Every request computes all of its prompt."""
    cache, scheduler = core.cache, core._scheduler
    plain_open = cache.open
    cache.open = lambda ids, namespace="", max_match=None: plain_open(ids, namespace, 0)  # type: ignore[method-assign]
    cache.match_length = lambda ids, namespace="", max_match=None: 0  # type: ignore[method-assign]
    limits = replace(scheduler._limits, min_follow_tokens=1 << 30)
    scheduler._limits = scheduler._admission._limits = limits


class InProcess:
    """See the module. `has_hints=False` drops hints on the way to the engine."""

    def __init__(self, core: Engine, tokenizer: Any, *, has_hints: bool = True) -> None:
        self.core = core
        self.submitted: dict[str, m.Submit] = {}
        self.sequences: list[tuple[int, ...]] = []  # prompt and output of each sample
        self._has_hints = has_hints
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._futures: dict[str, Future[Any]] = {}
        self._numbers = count(1)
        self._jobs: list[m.CompileJob] = []
        self._gateway = Gateway(
            EngineConfig(), tokenizer, send_client=self._answered, send_engine=self._submit,
            compile_job=self._jobs.append, clock_s=lambda: 0.0,
        )  # fmt: skip
        facts = core._facts
        self._gateway.on_engine(m.EngineReady(0, core.cache.num_pages, core.cache.page_size, facts.context_length))  # fmt: skip
        self.facts = m.Ready("in process", facts.context_length, facts.vocab_size, tuple(facts.eos_token_ids))  # fmt: skip
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._inbox.put(None)
        self._thread.join(60)

    def num_open(self) -> int:
        """Branches that clients have left open."""
        return sum(len(session.branches) for session in self._gateway.sessions.values())

    # -- Backend

    def new_id(self, prefix: str) -> str:
        return f"{prefix}#{next(self._numbers)}"

    def send(self, message: Any) -> None:
        self._inbox.put(message)

    def generate(self, message: m.Generate, on_delta: Any = None) -> Future[m.Finished]:
        return self._ask(message)

    def score(self, message: m.Score) -> Future[m.Scored]:
        return self._ask(message)

    def _ask(self, message: Any) -> Future[Any]:
        self._futures[message.request] = future = Future()
        self._inbox.put(message)
        return future

    # -- on the thread

    def _serve(self) -> None:
        while True:
            try:
                message = self._inbox.get(block=not self.core.has_work)
                if message is None:
                    return
                self._gateway.on_client(CLIENT, message)
                self._compile()
                continue
            except queue.Empty:
                pass
            for answer in self.core.step():
                if isinstance(answer, m.Done):
                    prompt = self.submitted[answer.request].token_ids
                    self.sequences += [prompt + sample.token_ids for sample in answer.samples]
                self._gateway.on_engine(answer)
            self._compile()

    def _compile(self) -> None:
        while self._jobs:
            job = self._jobs.pop()
            program = compile_spec(job.spec, job.alphabet).to_bytes()
            self._gateway.on_worker(m.Compiled(job.program, program))

    def _submit(self, message: m.EngineInbound) -> None:
        if isinstance(message, m.Submit):
            self.submitted[message.request] = message
            if not self._has_hints:
                message = m.Submit(**{**_fields(message), "hints": m.Hints()})
        self.core.receive(message)

    def _answered(self, client: bytes, message: Any) -> None:
        future = self._futures.pop(getattr(message, "request", ""), None)
        if future is None:
            return
        if isinstance(message, m.Failed):
            future.set_exception(message.error.to_exception())
        else:
            future.set_result(message)


def _fields(message: Any) -> dict[str, Any]:
    return {name: getattr(message, name) for name in message.__struct_fields__}


def union_trie_size(sequences: Iterable[Sequence[int]]) -> int:
    """Distinct non-empty prefixes: what a cache without limits has to compute."""
    ordered = sorted(map(tuple, sequences))
    size, before = 0, ()
    for sequence in ordered:
        pairs = zip(sequence, before, strict=False)
        shared = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(sequence), len(before)))  # fmt: skip
        size += len(sequence) - shared
        before = sequence
    return size
