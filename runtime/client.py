"""The client's end of the wire: futures by request name, over one DEALER socket on a loop that another thread runs.

Any thread may send and ask; messages leave in the order in which they were handed in, and nothing waits for a reply. Answers, new text
and errors arrive on the loop's thread. A heartbeat keeps the lease at the gateway.

    any thread --send/request--> deque --wake--> loop thread: DEALER <--> gateway
                   Future <--------------------- loop thread

Owns the pending futures. Starts no process (`launch` does) and knows no text, token or engine.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import secrets
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from typing import Any

import msgspec

from ..errors import PromptError, RadixError, ServiceError
from . import messages as m
from .transport import Frames, LoopSocket, Transport

log = logging.getLogger(__name__)

OnDelta = Callable[[m.Delta], None]
OnAccepted = Callable[[m.Accepted], None]
Request = m.Generate | m.Score | m.StatsRequest | m.FlushCache | m.Tokenize | m.VocabularyRequest
Notice = m.OpenBranch | m.Append | m.Fork | m.CloseBranch | m.Abort

_ON_BRANCH = (m.OpenBranch, m.Append, m.Generate, m.Score)


@dataclass(slots=True)
class _Pending:
    future: Future[Any]
    on_delta: OnDelta | None
    on_accepted: OnAccepted | None


class Client:
    """One client of a gateway. Everything but `connect` and `disconnect` may be called from any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, heartbeat_s: float) -> None:
        self.name = secrets.token_hex(8)
        self.ready: Future[m.Ready] = Future()  # the first word of the gateway
        self._loop = loop
        self._heartbeat_s = heartbeat_s
        self._facts: m.Ready | None = None
        self._pending: dict[str, _Pending] = {}
        self._outgoing: deque[m.ClientMessage] = deque()
        self._is_woken = False
        self._failure: RadixError | None = None  # set for good: nothing can be asked any more
        self._socket: LoopSocket | None = None
        self._max_bytes = 0  # of one message
        self._broken: dict[
            str, RadixError
        ] = {}  # branches that miss a message that was refused here
        self._timer: asyncio.TimerHandle | None = None
        self._numbers = itertools.count(1)

    # ------------------------------------------------------------------------------------------ loop thread only

    def connect(self, transport: Transport, address: str) -> None:
        """Connect and begin the heartbeat."""
        self._max_bytes = transport.max_message_bytes
        self._socket = LoopSocket(
            self._loop, transport.dealer(address, self.name.encode()), self._on_frames
        )
        self._beat()

    def disconnect(self) -> None:
        """Stop the heartbeat and close the socket."""
        if self._timer is not None:
            self._timer.cancel()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _beat(self) -> None:
        self._timer = self._loop.call_later(self._heartbeat_s, self._beat)
        self._write(m.Hello(self.name, os.getpid()))

    def _write(self, message: m.ClientMessage) -> None:
        if self._socket is None:
            return
        data = m.encode(message)
        if len(data) > self._max_bytes:
            raise PromptError(
                f"the message has {len(data)} bytes, a message holds {self._max_bytes}",
                hint="Send less text at once, or raise max_message_bytes",
            )
        self._socket.send(data)

    def _flush(self) -> None:
        self._is_woken = (
            False  # before the queue is emptied: what is added from here on wakes again
        )
        while self._outgoing:
            message = self._outgoing.popleft()
            branch = getattr(message, "branch", None)
            if isinstance(message, m.CloseBranch):
                self._broken.pop(message.branch, None)
            elif branch in self._broken:
                self._refuse(message, self._broken[branch])
                continue
            try:
                self._write(message)
            except (TypeError, ValueError, OverflowError, RecursionError) as error:
                # only what a user put in can be unwritable: an integer beyond 64 bits, half a surrogate pair, endless nesting
                self._refuse(message, PromptError(f"the request cannot be written: {error}"))
            except RadixError as error:
                self._refuse(message, error)

    def _refuse(self, message: m.ClientMessage, failure: RadixError) -> None:
        """Fail what is not sent; a branch that misses it, and the forks of that branch, fail with the same error from here on."""
        if isinstance(message, m.Fork):
            self._broken.update(dict.fromkeys(message.children, failure))
        elif isinstance(message, _ON_BRANCH) and message.branch is not None:
            self._broken.setdefault(message.branch, failure)
        pending = self._pending.pop(getattr(message, "request", ""), None)
        if pending is not None:
            _settle(pending.future, error=failure)
        else:
            log.error("%s", failure)

    # ------------------------------------------------------------------------------------------ any thread

    @property
    def facts(self) -> m.Ready:
        """Facts of the model; `engine_epoch` rises when the engine was restarted."""
        if self._facts is None:
            raise self._failure or ServiceError("the engine is not ready yet")
        return self._facts

    @property
    def failure(self) -> RadixError | None:
        """Why nothing can be asked any more; None while the service lives."""
        return self._failure

    def new_id(self, prefix: str) -> str:
        """A name for a branch or request, unique in this client."""
        return f"{prefix}.{next(self._numbers)}"

    def send(self, message: Notice) -> None:
        """Send a message that has no answer."""
        if self._failure is not None:
            raise self._failure
        self._enqueue(message)

    def request(
        self,
        message: Request,
        on_delta: OnDelta | None = None,
        on_accepted: OnAccepted | None = None,
    ) -> Future[Any]:
        """Ask; the future gets the answer or an error of `errors.py`. Cancelling it aborts the request."""
        future: Future[Any] = Future()
        name = message.request
        if name in self._pending:
            raise ServiceError(f"a request called {name!r} is still pending")
        self._pending[name] = _Pending(future, on_delta, on_accepted)
        if (
            self._failure is not None
        ):  # looked at after the entry is in the table, which `fail_all` empties after setting it
            self._pending.pop(name, None)
            _settle(future, error=self._failure)
            return future
        future.add_done_callback(lambda done: self._on_cancel(name) if done.cancelled() else None)
        self._enqueue(message)
        return future

    def fail_all(self, error: RadixError, *, for_good: bool = True) -> None:
        """End every pending request with `error`, and every later one too if `for_good`."""
        if for_good:
            self._failure = error
        for name in list(self._pending):
            pending = self._pending.pop(name, None)
            if pending is not None:
                _settle(pending.future, error=error)
        if not self.ready.done() and for_good:
            _settle(self.ready, error=error)

    def abort_all(self) -> None:
        """Abort every pending request."""
        for name in list(self._pending):
            self._enqueue(m.Abort(name))

    def _enqueue(self, message: m.ClientMessage) -> None:
        self._outgoing.append(message)
        if not self._is_woken:
            self._is_woken = True
            try:
                self._loop.call_soon_threadsafe(self._flush)
            except RuntimeError:  # the loop is closed: `fail_all` has answered or will
                log.debug("a message came after the end")

    def _on_cancel(self, name: str) -> None:
        if self._pending.pop(name, None) is not None:
            self._enqueue(m.Abort(name))

    # ------------------------------------------------------------------------------------------ answers

    def _on_frames(self, frames: Frames) -> None:
        try:
            messages = m.decode_frame(m.gateway_frame_decoder, frames[-1])
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            log.error("a message of the gateway was not understood: %s", error)
            return
        for message in messages:
            self._on_message(message)

    def _on_message(self, message: m.GatewayMessage) -> None:
        if isinstance(message, m.Ready):
            self._facts = message
            if not self.ready.done():
                _settle(self.ready, result=message)
        elif isinstance(message, m.Delta | m.Accepted):
            self._on_progress(message)
        else:
            pending = self._pending.pop(message.request, None)
            if pending is None:
                return
            if isinstance(message, m.Failed):
                _settle(pending.future, error=_exception_of(message))
            else:
                _settle(pending.future, result=message)

    def _on_progress(self, message: m.Delta | m.Accepted) -> None:
        pending = self._pending.get(message.request)
        if pending is None:
            return
        try:
            if isinstance(message, m.Accepted):
                if pending.on_accepted is not None:
                    pending.on_accepted(message)
            elif pending.on_delta is not None:
                pending.on_delta(message)
        except Exception as error:  # noqa: BLE001 - the caller's callback: its error is the answer of its own request
            self._pending.pop(message.request, None)
            self._enqueue(m.Abort(message.request))
            _settle(pending.future, error=error)


def _exception_of(failed: m.Failed) -> RadixError:
    error = failed.error.to_exception()
    error.partial = failed.partial  # type: ignore[attr-defined]
    return error


def _settle(future: Future[Any], *, result: Any = None, error: BaseException | None = None) -> None:
    """Set the outcome unless the caller cancelled meanwhile."""
    try:
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)
    except InvalidStateError:
        pass
