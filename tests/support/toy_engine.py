"""The real engine over a model that hashes its context, and the backend that runs it in this process."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fake_runner import FakeRunner
from toy_tokenizer import EOS, TOKEN_BYTES, ToyTokenizer

from radixlm.runtime import in_process
from radixlm.runtime import messages as m
from radixlm.runtime.engine import Engine
from radixlm.runtime.grammar_loading import GrammarLoader
from radixlm.runtime.scheduler_limits import SchedulerLimits
from radixlm.runtime.vocab_facts import VocabFacts

CONTEXT_LENGTH = 4096
FIRST_COME_FIRST_SERVED = replace(SchedulerLimits(), aging_tokens_per_step=1e12)


def toy_core(
    num_pages: int = 1024, page_size: int = 16, limits: SchedulerLimits | None = None
) -> Engine:
    """The real engine over the fake runner and the toy tokenizer's vocabulary."""
    tokenizer = ToyTokenizer()
    letters = {TOKEN_BYTES.index(bytes((b,))): 4.0 for b in b"abcdefghijklmnopqrstuvwxyz "}
    runner = FakeRunner(
        len(TOKEN_BYTES), num_pages, page_size, steer=lambda ids: {**letters, EOS: -3.0}
    )
    facts = VocabFacts(len(TOKEN_BYTES), CONTEXT_LENGTH, tokenizer.eos_token_ids, TOKEN_BYTES)
    return Engine(
        runner, facts, num_pages=num_pages, page_size=page_size, load_grammar=GrammarLoader(facts),
        encode_forced=tokenizer.encode_forced, limits=limits,
    )  # fmt: skip


def open_toy(num_pages: int, limit: Any) -> Any:
    """What a bench opens: the engine, its announcement, its tokenizer, whose tokens are shorter than a real one's."""
    core = toy_core(2 * num_pages, limits=limit(SchedulerLimits()))
    return core, ready_of(core), ToyTokenizer()


def ready_of(core: Engine) -> m.EngineReady:
    return m.EngineReady(0, core.cache.num_pages, core.cache.page_size, CONTEXT_LENGTH)


class InProcess(in_process.InProcess):
    """Over a toy engine."""

    def __init__(self, core: Engine, tokenizer: Any, **options: Any) -> None:
        super().__init__(core, ready_of(core), tokenizer, **options)
