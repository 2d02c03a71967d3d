"""Gateway and engine in one thread of this process, without sockets: a Backend over the real parts.

What a measurement cannot have of the processes it has here: what was asked of the engine, what the engine computed, how many messages
and steps it took; and an engine from which one thing is left out. Owns the thread. Knows no programs.
"""

from __future__ import annotations

import logging
import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec

from ..errors import RadixError, ServiceError
from ..grammar.compiler import compile_spec
from . import messages as m
from .config import EngineConfig
from .gateway import Gateway

if TYPE_CHECKING:
    from typing import Self

    from .branches import TokenizerLike
    from .engine import Engine

log = logging.getLogger(__name__)

_CLIENT = b"c1"
_SWITCH_S = 2e-4  # two Python threads hand over so often, in place of every 5 ms


class InProcess:
    """See the module. `has_hints=False` drops hints on the way to the engine; with `has_cache=False` no two requests share a prefix."""

    def __init__(
        self,
        core: Engine,
        ready: m.EngineReady,
        tokenizer: TokenizerLike,
        *,
        has_hints: bool = True,
        has_cache: bool = True,
    ) -> None:
        self.core = core
        self.submitted: dict[str, m.Submit] = {}
        """By the engine's name of the request, in the order of their coming."""
        self.num_messages = 0
        """From the programs."""
        self._samples: dict[str, list[tuple[int, ...]]] = {}
        self._has_hints = has_hints
        self._has_cache = has_cache
        self._inbox: queue.SimpleQueue[m.ClientMessage | None] = queue.SimpleQueue()
        self._futures: dict[str, Future[Any]] = {}
        self._on_delta: dict[str, Callable[[m.Delta], None]] = {}
        self._numbers = count(1)
        self._jobs: list[m.CompileJob] = []
        self._gateway = Gateway(
            EngineConfig(),
            tokenizer,
            send_client=self._answered,
            send_engine=self._submit,
            compile_job=self._jobs.append,
            clock_s=lambda: 0.0,
        )
        self._gateway.on_engine(ready)
        self.facts = m.Ready(
            "in process",
            ready.context_length,
            tokenizer.vocab_size,
            tuple(tokenizer.eos_token_ids),
        )
        self._switch_s = sys.getswitchinterval()
        self._failure: ServiceError | None = None  # what ended the thread
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        sys.setswitchinterval(_SWITCH_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._inbox.put(None)
        self._thread.join(60)
        sys.setswitchinterval(self._switch_s)

    @property
    def sequences(self) -> list[tuple[int, ...]]:
        """Prompt and output of each sample, in the order in which the requests came."""
        return [each for request in self.submitted for each in self._samples.get(request, ())]

    def num_open(self) -> int:
        """Branches that clients have left open."""
        return sum(len(session.branches) for session in self._gateway.sessions.values())

    # ------------------------------------------------------------------------------------ Backend

    def new_id(self, prefix: str) -> str:
        """A name for a branch or request."""
        return f"{prefix}#{next(self._numbers)}"

    def send(self, message: m.OpenBranch | m.Append | m.Fork | m.CloseBranch | m.Abort) -> None:
        """Pass a message to the gateway."""
        self._put(message)

    def generate(
        self, message: m.Generate, on_delta: Callable[[m.Delta], None] | None = None
    ) -> Future[m.Finished]:
        """Pass a request on."""
        if on_delta is not None:
            self._on_delta[message.request] = on_delta
        return self._ask(message)

    def score(self, message: m.Score) -> Future[m.Scored]:
        """Pass a request on."""
        return self._ask(message)

    def _ask(self, message: m.Generate | m.Score) -> Future[Any]:
        self._futures[message.request] = future = Future[Any]()
        self._put(message)
        if self._failure is not None:
            self._fail_pending(self._failure)
        return future

    def _put(self, message: m.ClientMessage) -> None:
        self.num_messages += 1
        self._inbox.put(message)

    # ------------------------------------------------------------------------------------ on the thread

    def _run(self) -> None:
        try:
            self._serve()
        except BaseException as error:
            log.exception("the thread of gateway and engine ended")
            failure = ServiceError(f"gateway and engine ended: {error!r}")
            failure.__cause__ = error
            self._failure = failure  # before the futures: who asks from now on fails its own
            self._fail_pending(failure)

    def _fail_pending(self, failure: ServiceError) -> None:
        for request in list(self._futures):
            future = self._futures.pop(request, None)
            if future is not None and not future.done():
                future.set_exception(failure)

    def _serve(self) -> None:
        while True:
            try:
                message = self._inbox.get(block=not self.core.has_work)
                if message is None:
                    return
                self._gateway.on_client(_CLIENT, message)
                self._compile()
                continue
            except queue.Empty:
                pass
            for answer in self.core.step():
                if isinstance(answer, m.Done):
                    prompt = self.submitted[answer.request].token_ids
                    self._samples[answer.request] = [
                        prompt + sample.token_ids for sample in answer.samples
                    ]
                self._gateway.on_engine(answer)
            self._compile()

    def _compile(self) -> None:
        while self._jobs:
            job = self._jobs.pop()
            try:
                program = compile_spec(job.spec, job.alphabet).to_bytes()
            except RadixError as error:
                self._gateway.on_worker(m.Refused(job.program, m.WireError.of(error)))
                continue
            self._gateway.on_worker(m.Compiled(job.program, program))

    def _submit(self, message: m.EngineInbound) -> None:
        if isinstance(message, m.Submit):
            self.submitted[message.request] = message
            if not self._has_hints:
                message = msgspec.structs.replace(message, hints=m.Hints())
            if not self._has_cache:
                message = msgspec.structs.replace(message, namespace=f"of {message.request}")
        self.core.receive(message)

    def _answered(self, client: bytes, message: m.GatewayMessage) -> None:
        request = getattr(message, "request", "")
        if isinstance(message, m.Delta):
            if request in self._on_delta:
                self._on_delta[request](message)
            return
        if not isinstance(message, m.Finished | m.Scored | m.Failed):
            return
        self._on_delta.pop(request, None)
        future = self._futures.pop(request, None)
        if future is None or future.done():  # it was cancelled
            return
        if isinstance(message, m.Failed):
            future.set_exception(message.error.to_exception())
        else:
            future.set_result(message)
