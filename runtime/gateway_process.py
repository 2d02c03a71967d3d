"""The gateway process: the sockets, clocks and neighbours around `gateway.Gateway`.

    clients --ROUTER-- [ decode -> Gateway -> encode ] --PUSH--> engine
                          |        ^      <--PULL-- engine
                          `--PAIR-- compile worker (its child)

Owns the event loop's readers: sockets, the lease clock, and a watch on every local client and on the engine, whose deaths are known at
once. Decides nothing about requests. Must not import torch.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from pathlib import Path

import msgspec

from ..errors import PromptError, ServiceError
from . import messages as m
from .branches import TokenizerLike
from .client_outbox import ClientOutbox
from .compile_supervisor import CompileSupervisor
from .config import EngineConfig, child_environment
from .gateway import Gateway
from .loops import new_event_loop
from .process_watch import ProcessWatch
from .transport import Addresses, Frames, LoopSocket, PeerGone, Transport

COMPILER_AFTER_S = 0.3  # after the engine is ready, unless a grammar comes before
OUTBOX_INTERVAL_S = 0.01  # how often a slow client is tried again
log = logging.getLogger(__name__)


class GatewayServer:
    """A running gateway on `loop`. `compile_job` replaces the compile worker (tests)."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: EngineConfig,
        tokenizer: TokenizerLike,
        transport: Transport,
        addresses: Addresses,
        folder: Path,
    ) -> None:
        self._loop = loop
        self._config = config
        self._outboxes: dict[bytes, ClientOutbox] = {}
        self._together: dict[bytes, list[m.GatewayMessage]] | None = None  # not None: collected
        self._watches: dict[bytes, tuple[int, ProcessWatch]] = {}
        self._engine_watch: ProcessWatch | None = None
        self._is_flushing = False
        self._max_bytes = transport.max_message_bytes
        self._compiler = CompileSupervisor(
            loop,
            transport,
            command=lambda address: _worker_command(config, address),
            environment=child_environment(1),
            address_of=lambda number: f"ipc://{folder}/w{number}",
            on_answer=self._on_worker,
            cpu_s=config.compile_cpu_s,
            wall_s=config.compile_cpu_s * config.compile_wall_factor,
        )
        self.core = Gateway(
            config,
            tokenizer,
            send_client=self._send_client,
            send_engine=self._send_engine,
            compile_job=self._compiler.submit,
        )
        self._to_engine = LoopSocket(loop, transport.push(addresses.to_engine, bind=True))
        self._from_engine = LoopSocket(
            loop, transport.pull(addresses.from_engine, bind=True), self._on_engine_frames
        )
        self._clients = LoopSocket(
            loop, transport.router(addresses.clients), self._on_client_frames
        )
        self._lease_timer = loop.call_later(config.lease_s / 5, self._on_lease_tick)

    def close(self) -> None:
        """End the compile worker, the watches and the sockets."""
        self._lease_timer.cancel()
        self._compiler.close()
        for _, watch in self._watches.values():
            watch.cancel()
        if self._engine_watch is not None:
            self._engine_watch.cancel()
        for socket in (self._clients, self._to_engine, self._from_engine):
            socket.close()

    # ------------------------------------------------------------------------------------------ clients

    def _on_client_frames(self, frames: Frames) -> None:
        if len(frames) != 2:
            self.core.num_malformed += 1
            return
        client, data = frames
        try:
            message = m.client_decoder.decode(data)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            self.core.on_malformed(client, data, error)
            return
        if isinstance(message, m.Hello) and message.pid:
            self._watch_client(client, message.pid)
        self.core.on_client(client, message)

    def _watch_client(self, client: bytes, pid: int) -> None:
        known = self._watches.get(client)
        if known is not None:
            if known[0] == pid:
                return
            known[1].cancel()
        watch = ProcessWatch(
            self._loop, pid, lambda: self._drop(client, f"the client process {pid} ended")
        )
        self._watches[client] = (pid, watch)

    def _drop(self, client: bytes, reason: str) -> None:
        self._outboxes.pop(client, None)
        watched = self._watches.pop(client, None)
        if watched is not None:
            watched[1].cancel()
        self.core.drop_client(client, reason)

    def _on_lease_tick(self) -> None:
        self._lease_timer = self._loop.call_later(self._config.lease_s / 5, self._on_lease_tick)
        self._clients.drain()  # signs of life that arrived while this process was busy count
        for client in self.core.expire():
            self._drop(client, "")

    def _send_client(self, client: bytes, message: m.GatewayMessage) -> None:
        if self._together is not None:
            self._together.setdefault(client, []).append(message)
        else:
            self._deliver(client, [message])

    def _deliver(self, client: bytes, messages: list[m.GatewayMessage]) -> None:
        """Send messages in their order, in one frame where that holds them."""
        outbox = self._outboxes.get(client)
        if outbox is None and len(messages) > 1:
            frame = m.encode_frame(messages)
            if len(frame) <= self._max_bytes and self._try_send(client, frame):
                return
        for message in messages:
            if outbox is None and self._try_send(client, self._bytes_for_client(message)):
                continue
            if outbox is None:
                outbox = self._outboxes[client] = ClientOutbox()
            outbox.add(message)
        if outbox is not None:
            self._schedule_flush()

    def _try_send(self, client: bytes, frame: bytes) -> bool:
        """False when the client's queue is full. A client that is gone takes everything: nobody is left to miss it."""
        try:
            return self._clients.try_send([client, frame])
        except PeerGone:
            self._loop.call_soon(self._drop, client, "the client's connection is gone")
            return True

    def _bytes_for_client(self, message: m.GatewayMessage) -> bytes:
        """The message, or an error in its place when no message holds it."""
        data = m.encode(message)
        if len(data) <= self._max_bytes or isinstance(message, m.Ready):
            return data
        error = ServiceError(
            f"the answer has {len(data)} bytes, a message holds {self._max_bytes}",
            hint="Ask for fewer logprobs or samples",
        )
        return m.encode(m.Failed(message.request, m.WireError.of(error)))

    def _schedule_flush(self) -> None:
        if not self._is_flushing:
            self._is_flushing = True
            self._loop.call_later(OUTBOX_INTERVAL_S, self._flush_outboxes)

    def _flush_outboxes(self) -> None:
        self._is_flushing = False
        for client, outbox in list(self._outboxes.items()):
            while len(outbox) and self._try_send(client, self._bytes_for_client(outbox.first())):
                outbox.drop_first()
            if not len(outbox):
                self._outboxes.pop(client, None)
        if self._outboxes:
            self._schedule_flush()

    # ------------------------------------------------------------------------------------------ engine and worker

    def _send_engine(self, message: m.EngineInbound) -> None:
        data = m.encode(message)
        if len(data) <= self._max_bytes:
            self._to_engine.send(data)
            return
        error = PromptError(
            f"the prompt makes a message of {len(data)} bytes, a message holds {self._max_bytes}"
        )
        log.error("%s", error)
        if isinstance(message, m.Submit):  # answered in the engine's place, after what goes on now
            failed = m.EngineFailed(message.request, m.WireError.of(error))
            self._loop.call_soon(self.core.on_engine, failed)

    def _on_engine_frames(self, frames: Frames) -> None:
        """What a step brought: each client gets its part of it at once."""
        try:
            messages = m.decode_frame(m.engine_frame_decoder, frames[0])
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            log.error("a message of the engine was not understood: %s", error)
            return
        together: dict[bytes, list[m.GatewayMessage]] = {}
        self._together = together
        try:
            for message in messages:
                self._on_engine(message)
        finally:
            self._together = None
            for client, answers in together.items():
                self._deliver(client, answers)

    def _on_engine(self, message: m.EngineOutbound) -> None:
        if isinstance(message, m.EngineReady) and message.pid:
            if self._engine_watch is not None:
                self._engine_watch.cancel()
            # not at once: its start would take the time of the engine's, and of the first answer
            self._loop.call_later(COMPILER_AFTER_S, self._compiler.start_ahead)
            self._engine_watch = ProcessWatch(
                self._loop, message.pid, lambda: self._on_engine_death(message)
            )
        self.core.on_engine(message)

    def _on_engine_death(self, ready: m.EngineReady) -> None:
        self._from_engine.drain()  # what it finished before it ended counts
        if self.core.engine.ready is not None and self.core.engine.ready.epoch == ready.epoch:
            self._to_engine.discard_waiting()
            self.core.on_engine_died(
                f"the engine process {ready.pid} ended while the request was pending"
            )

    def _on_worker(self, message: m.WorkerMessage) -> None:
        self.core.on_worker(message)


def _worker_command(config: EngineConfig, address: str) -> list[str]:
    return [
        *(sys.executable, "-P", "-m", "radixlm", "compile-worker"),
        *("--config", config.to_json(), "--address", address, "--parent", str(os.getpid())),
    ]


def serve(config: EngineConfig, folder: Path, tokenizer: TokenizerLike) -> None:
    """Run a gateway in this process until SIGTERM."""
    loop = new_event_loop()
    transport = Transport(config.max_message_bytes)
    server = GatewayServer(loop, config, tokenizer, transport, Addresses.within(folder), folder)
    loop.add_signal_handler(signal.SIGTERM, loop.stop)
    try:
        loop.run_forever()
    finally:
        server.close()
        transport.close()
        loop.close()


def run(config: EngineConfig, folder: Path) -> None:
    """Load the tokenizer and serve."""
    from .model_files import resolve_model
    from .tokenizer import load_tokenizer

    tokenizer = load_tokenizer(resolve_model(config.model, Path(config.cache_dir)))
    gc.collect()
    gc.freeze()  # vocabulary and modules stay: a collection that looked at them would hold up every stream
    serve(config, folder, tokenizer)
