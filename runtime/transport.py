"""The sockets between the processes, and the only module that knows ZMQ.

    client DEALER <--> ROUTER gateway          identity = the client's name; ROUTER_MANDATORY, so a lost peer is an error, not silence
    gateway PUSH  ---> PULL   engine           gateway PULL <--- PUSH engine
    gateway PAIR  <--> PAIR   compile worker   a fresh pair for every worker, so nothing of a killed one arrives late

The gateway (for the pair too) binds, the others connect, in any order of starting. Addresses are `ipc://` paths in a folder of mode
0700; `inproc://` serves tests. A frame is one message in msgpack, or a list of those that one step brought,
so that a reader wakes once for all streams; what does not decode is for the owner of the socket to answer or drop.

`LoopSocket` ties a socket to an asyncio loop without a thread: ZMQ's file descriptor is edge-triggered, so after every wake-up and after
every send the socket is read until it says "again". Owns socket options and readiness. Must not know the messages.
"""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import zmq

FRAMES_PER_WAKE = 256  # then other callbacks of the loop get their turn
# frames ZMQ holds for one slow client, each with what a step brought all its streams; beyond it the gateway's outbox coalesces
CLIENT_HIGH_WATER = 1000

Frames = list[bytes]


class PeerGone(Exception):
    """The addressed peer is not connected (ROUTER_MANDATORY)."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the processes of one engine meet."""

    clients: str
    to_engine: str
    from_engine: str

    @staticmethod
    def within(folder: Path | str) -> Addresses:
        """ipc addresses in `folder`."""
        return Addresses(f"ipc://{folder}/c", f"ipc://{folder}/e", f"ipc://{folder}/g")

    @staticmethod
    def inproc(name: str) -> Addresses:
        """Addresses inside one ZMQ context, for tests."""
        return Addresses(f"inproc://{name}-c", f"inproc://{name}-e", f"inproc://{name}-g")


class Transport:
    """One process's ZMQ context and the sockets made from it."""

    def __init__(
        self, max_message_bytes: int, context: zmq.Context[zmq.Socket[bytes]] | None = None
    ) -> None:
        self.max_message_bytes = max_message_bytes
        self.context: zmq.Context[zmq.Socket[bytes]] = context or zmq.Context()
        self._owns_context = context is None
        self._sockets: list[zmq.Socket[bytes]] = []

    def _make(
        self, kind: int, address: str, *, bind: bool, high_water: int = 0
    ) -> zmq.Socket[bytes]:
        socket = self.context.socket(kind)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.SNDHWM, high_water)
        socket.setsockopt(zmq.RCVHWM, high_water)
        socket.setsockopt(zmq.MAXMSGSIZE, self.max_message_bytes)
        if kind == zmq.ROUTER:
            socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
            socket.setsockopt(zmq.ROUTER_HANDOVER, 1)  # a client that reconnects keeps its name
        self._remember(socket)
        (socket.bind if bind else socket.connect)(address)
        return socket

    def _remember(self, socket: zmq.Socket[bytes]) -> None:
        self._sockets = [known for known in self._sockets if not known.closed]
        self._sockets.append(socket)

    def router(self, address: str) -> zmq.Socket[bytes]:
        """The gateway's side towards clients; frames are [client, message]."""
        return self._make(zmq.ROUTER, address, bind=True, high_water=CLIENT_HIGH_WATER)

    def dealer(self, address: str, identity: bytes) -> zmq.Socket[bytes]:
        """A client's side, named `identity`."""
        socket = self.context.socket(zmq.DEALER)
        socket.setsockopt(zmq.IDENTITY, identity)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.SNDHWM, 0)  # what the client submits is bounded by the client
        socket.setsockopt(zmq.RCVHWM, CLIENT_HIGH_WATER)
        socket.setsockopt(zmq.MAXMSGSIZE, self.max_message_bytes)
        socket.setsockopt(zmq.RECONNECT_IVL, 20)
        self._remember(socket)
        socket.connect(address)
        return socket

    def push(self, address: str, *, bind: bool) -> zmq.Socket[bytes]:
        """The sending end of a one-way channel."""
        return self._make(zmq.PUSH, address, bind=bind)

    def pull(self, address: str, *, bind: bool) -> zmq.Socket[bytes]:
        """The receiving end of a one-way channel."""
        return self._make(zmq.PULL, address, bind=bind)

    def pair(self, address: str, *, bind: bool) -> zmq.Socket[bytes]:
        """One end of a two-way channel between exactly two."""
        return self._make(zmq.PAIR, address, bind=bind)

    def close(self) -> None:
        """Close all sockets, and the context if it was made here."""
        for socket in self._sockets:
            socket.close(linger=0)
        self._sockets.clear()
        if self._owns_context:
            self.context.term()


class LoopSocket:
    """A socket on an asyncio loop: `on_frames` gets every message; `send` never blocks.

    What ZMQ does not take at once waits here in order. With `on_full`, a full peer is the caller's to handle instead.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        socket: zmq.Socket[bytes],
        on_frames: Callable[[Frames], None] | None = None,
    ) -> None:
        self._loop = loop
        self._socket = socket
        self._on_frames = on_frames
        self._waiting: deque[Frames] = deque()
        self._is_scheduled = False
        self._is_closed = False
        loop.add_reader(socket.fileno(), self._wake)
        self._schedule()

    def try_send(self, frames: Sequence[bytes]) -> bool:
        """Send now. False when the peer's queue is full; PeerGone when a ROUTER does not know it."""
        try:
            self._socket.send_multipart(frames, zmq.NOBLOCK)
        except zmq.Again:
            return False
        except zmq.ZMQError as error:
            if error.errno == errno.EHOSTUNREACH:
                raise PeerGone(frames[0]) from None
            raise
        finally:
            self._schedule()
        return True

    def send(self, message: bytes) -> None:
        """Send one message, now or as soon as the peer takes it; the order stays."""
        if self._waiting or not self.try_send([message]):
            self._waiting.append([message])

    def discard_waiting(self) -> None:
        """Forget what the peer has not taken, because it ended."""
        self._waiting.clear()

    def close(self) -> None:
        """Stop listening and close the socket."""
        if not self._is_closed:
            self._is_closed = True
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close(linger=0)

    def drain(self) -> None:
        """Handle everything that has arrived, now."""
        while self._receive_some():
            pass

    def _schedule(self) -> None:
        if not self._is_scheduled and not self._is_closed:
            self._is_scheduled = True
            self._loop.call_soon(self._wake)

    def _wake(self) -> None:
        self._is_scheduled = False
        if self._is_closed:
            return
        if self._receive_some():
            self._schedule()
        while self._waiting and not self._is_closed and self.try_send(self._waiting[0]):
            self._waiting.popleft()

    def _receive_some(self) -> bool:
        """Handle up to FRAMES_PER_WAKE frames; True when more may be there."""
        if self._on_frames is None:
            self._socket.getsockopt(
                zmq.EVENTS
            )  # takes in what woke us, or the descriptor stays readable
            return False
        for _ in range(FRAMES_PER_WAKE):
            if self._is_closed:
                return False
            try:
                frames = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return False
            self._on_frames(frames)
        return True


class BlockingEnd:
    """A receiving socket without a loop, for a process that steps: poll it, then take what is there."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket

    def wait(self, timeout_s: float) -> bool:
        """Wait until a message is there or the time is over."""
        return bool(self._socket.poll(int(timeout_s * 1000), zmq.POLLIN))

    def take(self) -> bytes | None:
        """The next message, or None; never blocks."""
        try:
            return self._socket.recv(zmq.NOBLOCK)
        except zmq.Again:
            return None

    def send(self, message: bytes) -> None:
        """Send one message (the queue is unbounded here: the receiver bounds what is asked for)."""
        self._socket.send(message)
