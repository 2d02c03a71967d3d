"""The engine process: the loop that feeds messages to `engine.Engine` and sends what its steps bring.

One Python thread does everything: take what has arrived, step, send. While there is work the socket is only looked at, never waited for;
the native pool under the model runner is the only other thing that computes, because a second Python thread would cost the stepping one
up to 5 ms per hand-over of the interpreter lock. Owns the sockets and the wiring; knows no schedule and no kernel.
"""

from __future__ import annotations

import gc
import logging
import os
import random
import secrets
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec

from ..errors import ServiceError
from . import messages as m
from .config import EngineConfig
from .cores import usable_cores
from .process_watch import leave_if_orphaned
from .transport import Addresses, BlockingEnd, Transport

if TYPE_CHECKING:
    from .engine import Engine
    from .model_files import ModelFiles
    from .packed_weights import PackedWeights
    from .runner_protocol import Runner
    from .scheduler_limits import SchedulerLimits

IDLE_WAIT_S = 1.0
WARM_UP_AFTER_S = 0.3  # without a message: nobody waits then
MESSAGES_PER_STEP = 1024
_NATIVE = ("auto", "cpu")  # values of `kernels` that let the native kernels serve
log = logging.getLogger(__name__)


class EngineCore(Protocol):
    """What the loop drives (see `engine.Engine`)."""

    @property
    def has_work(self) -> bool:
        """Would step() do anything?"""
        ...

    def receive(self, message: m.EngineInbound) -> None:
        """Take one message."""
        ...

    def step(self) -> list[m.EngineOutbound]:
        """Run one step; what is to be sent."""
        ...

    def idle(self) -> None:
        """Nothing to do: look for contradictions."""
        ...


class EngineLoop:
    """Moves messages between the gateway and a core. `parent_pid` 0: no parent to follow. `warm_up` is called once, when there is time."""

    def __init__(
        self,
        core: EngineCore,
        transport: Transport,
        addresses: Addresses,
        parent_pid: int = 0,
        warm_up: Callable[[], object] | None = None,
    ) -> None:
        self._core = core
        self._inbound = BlockingEnd(transport.pull(addresses.to_engine, bind=False))
        self._outbound = BlockingEnd(transport.push(addresses.from_engine, bind=False))
        self._parent_pid = parent_pid
        self._max_bytes = transport.max_message_bytes
        self._was_busy = False
        self._warm_up = warm_up

    def send(self, *messages: m.EngineOutbound) -> None:
        """Send messages to the gateway, in one frame where that holds them; an answer that none holds becomes an error."""
        if len(messages) > 1:
            data = m.encode_frame(messages)
            if len(data) <= self._max_bytes:
                self._outbound.send(data)
                return
        for message in messages:
            single = self._bytes_of(message)
            if single is not None:
                self._outbound.send(single)

    def _bytes_of(self, message: m.EngineOutbound) -> bytes | None:
        data = m.encode(message)
        if len(data) <= self._max_bytes:
            return data
        error = ServiceError(
            f"the answer has {len(data)} bytes, a message holds {self._max_bytes}",
            hint="Ask for fewer logprobs or samples",
        )
        log.error("%s", error)
        if isinstance(message, m.EngineReply):
            return m.encode(m.EngineReply(message.request, error=m.WireError.of(error)))
        if isinstance(message, m.Done | m.EngineFailed | m.Progress):
            return m.encode(m.EngineFailed(message.request, m.WireError.of(error)))
        return None

    def turn(self, idle_wait_s: float = IDLE_WAIT_S) -> None:
        """Take what has arrived and do one step; without work, wait up to `idle_wait_s` for a message."""
        if not self._core.has_work:
            if self._was_busy:
                self._was_busy = False
                self._core.idle()
            if self._warm_up is not None:
                idle_wait_s = min(idle_wait_s, WARM_UP_AFTER_S)
            if not self._inbound.wait(idle_wait_s):
                leave_if_orphaned(self._parent_pid)
                warm_up, self._warm_up = self._warm_up, None
                if warm_up is not None:
                    warm_up()
                return
        for _ in range(MESSAGES_PER_STEP):
            data = self._inbound.take()
            if data is None:
                break
            self._receive(data)
        if self._core.has_work:
            self._was_busy = True
            self.send(*self._core.step())

    def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Turn until told otherwise."""
        while not until():
            self.turn()

    def _receive(self, data: bytes) -> None:
        try:
            message = m.engine_inbound_decoder.decode(data)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            log.error("a message of the gateway was not understood: %s", error)
            return
        self._core.receive(message)


def run(config: EngineConfig, folder: Path, epoch: int, parent_pid: int) -> None:
    """Load the model and serve the gateway that meets us in `folder`."""
    core, ready, warm_up = build_engine(config, epoch)
    gc.collect()
    gc.freeze()  # weights, vocabulary and modules live as long as the process: no collection need look at them
    transport = Transport(config.max_message_bytes)
    loop = EngineLoop(core, transport, Addresses.within(folder), parent_pid, warm_up)
    loop.send(ready)
    loop.run()


def build_engine(
    config: EngineConfig,
    epoch: int,
    wrap: Callable[[Runner], Runner] = lambda runner: runner,
    limit: Callable[[SchedulerLimits], SchedulerLimits] = lambda limits: limits,
) -> tuple[Engine, m.EngineReady, Callable[[], object]]:
    """The engine of a real model, the message that announces it, and what is better done before the first grammar comes.

    `wrap` may put something around the runner, or look at it; `limit` may change the scheduler's numbers, for a measurement.
    """
    from .model_files import resolve_model

    # refused before the rest takes its time to load
    files = resolve_model(config.model, Path(config.cache_dir))

    from .engine import Engine
    from .grammar_loading import GrammarLoader
    from .scheduler_limits import SchedulerLimits
    from .tokenizer import load_tokenizer
    from .vocab_facts import VocabFacts

    tokenizer = load_tokenizer(files, chats=False)
    runner = wrap(build_runner(config, files))
    model = runner.facts
    context_length = min(model.context_length, config.context_length or model.context_length)
    facts = VocabFacts(
        vocab_size=model.vocab_size,
        context_length=context_length,
        eos_token_ids=tuple(tokenizer.eos_token_ids),
        token_bytes=tokenizer.token_bytes,
    )
    limits = SchedulerLimits(
        max_tokens_per_step=config.max_step_tokens,
        max_running=config.max_running,
        max_prefill_tokens_beside_decode=min(
            config.max_prefill_beside_decode, config.max_step_tokens
        ),
        prefill_pause_s=config.prefill_pause_s,
        max_program_bytes=config.program_cache_bytes,
    )
    load_grammar = GrammarLoader(facts)
    engine = Engine(
        runner,
        facts,
        num_pages=model.num_pages,
        page_size=model.page_size,
        load_grammar=load_grammar,
        encode_forced=tokenizer.encode_forced,
        limits=limit(limits),
        new_seed=seed_source(config.seed),
    )
    ready = m.EngineReady(
        epoch, model.num_pages, model.page_size, context_length, os.getpid(), model.kv_dtype
    )

    def warm_up() -> None:
        load_grammar.warm_up()
        tokenizer.warm_up()

    return engine, ready, warm_up


def build_runner(config: EngineConfig, files: ModelFiles) -> Runner:
    """What runs the model: the native kernels without torch where they can, else the backends that `kernels` allows."""
    options: dict[str, Any] = {
        "num_pages": config.num_pages,
        "kv_bytes": config.kv_bytes,
        "page_size": config.page_size,
        "quantization": config.quantization,
        "dtype": config.dtype,
        "kv_dtype": config.kv_dtype,
        "threads": config.threads,
    }
    if config.kernels in _NATIVE:
        from .native_runner import (
            can_serve,
            check_instruction_set,
            missing_library,
            open_native_runner,
        )

        missing = missing_library()
        if missing is not None:
            log.warning("the native kernels cannot serve, slower ones do (%s)", missing)
        if can_serve(config.dtype, config.kv_dtype):
            check_instruction_set(config.instruction_set)  # before packing for it
            weights = weights_of(config, files)
            if weights.find() is None and weights.can_be_kept():
                _pack_in_a_child(config)
        native = open_native_runner(
            files,
            cache_dir=Path(config.cache_dir),
            pin_threads=config.pin_threads,
            kv_ready_bytes=config.kv_ready_bytes,
            instruction_set=config.instruction_set,
            has_spare_core=config.threads < usable_cores(),
            **options,
        )
        if native is not None:
            return cast("Runner", native)
    from .model_runner import ModelRunner

    return cast("Runner", ModelRunner(files, kernels=config.kernels, **options))


def pack_weights(config: EngineConfig) -> Path | None:
    """The file of packed weights that an engine of `config` starts from, made when it is missing; None where none would be used."""
    from .model_files import resolve_model
    from .native_runner import can_serve

    if config.kernels not in _NATIVE or not can_serve(config.dtype, config.kv_dtype):
        return None
    weights = weights_of(config, resolve_model(config.model, Path(config.cache_dir)))
    weights.load()
    found = weights.find()
    return None if found is None else found[0]


def weights_of(config: EngineConfig, files: ModelFiles) -> PackedWeights:
    """The packed form of the model that an engine of `config` reads."""
    from .packed_weights import PackedWeights

    return PackedWeights(
        files,
        config.dtype,
        config.quantization,
        Path(config.cache_dir),
        config.instruction_set,
    )


def _pack_in_a_child(config: EngineConfig) -> None:
    """Make the packed file in another process, so that this one never holds torch. If that fails it is done here, and the error seen."""
    command = [sys.executable, "-P", "-m", "radixlm", "pack-weights", "--config", config.to_json()]
    done = subprocess.run(
        [*command, "--parent", str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        tail = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        log.warning("packing the weights ended with status %d: %s", done.returncode, tail[0])


def seed_source(base: int) -> Callable[[], int]:
    """Seeds for requests that bring none: from the system, or, with `base` > 0, the same row of seeds in every run."""
    if not base:
        return lambda: secrets.randbits(63)
    row = random.Random(base)
    return lambda: row.getrandbits(63)
