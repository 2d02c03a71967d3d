"""The gateway's decisions: what each message of a client, the engine or the compile worker leads to. Text on one side, ids on the other.

Every branch is a queue of operations carried out in order; a Generate or Score holds its queue until it is answered, so everything can
be sent ahead without waiting. A failed request breaks its branch: what was queued behind it, or arrives later, fails with the same error.
Every request is answered exactly once, with Finished, Scored or Failed.

    on_client -> BranchQueue -> start -> (grammar compiled?) -> Submit -> engine -> on_engine -> Delta* -> Finished | Failed

Owns sessions, branches, the text memory and the compiled programs. Sockets and processes are functions handed in, so that all of this
runs in a test without either (`gateway_process` holds the sockets). Must not know torch, ZMQ or processes.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from ..errors import Aborted, EngineDied, Overloaded
from ..grammar.spec import spec_key
from . import messages as m
from .branch_queues import apply_branch_message, as_wire_error, change_branch, no_branch
from .branches import Branch, TokenizerLike
from .compiled_programs import CompiledPrograms, alphabet_of
from .config import EngineConfig
from .engine_link import EngineLink
from .gateway_answers import (
    facts_of,
    finished_of,
    parts_of,
    refusal_of_bytes,
    scored_of,
    stream_rest,
    vocabulary_of,
)
from .sessions import BranchQueue, Session, Work
from .text_memory import TextMemory

log = logging.getLogger(__name__)


class Gateway:
    """All clients of one engine. Not thread-safe: one loop calls it."""

    def __init__(
        self,
        config: EngineConfig,
        tokenizer: TokenizerLike,
        *,
        send_client: Callable[[bytes, m.GatewayMessage], None],
        send_engine: Callable[[m.EngineInbound], None],
        compile_job: Callable[[m.CompileJob], None],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._tokenizer = tokenizer
        self._send_client = send_client
        self._clock_s = clock_s
        self.memory = TextMemory(config.text_memory_bytes if config.text_memory else 0)
        alphabet = alphabet_of(tokenizer.token_bytes)
        self.programs = CompiledPrograms(config.program_cache_bytes, alphabet, compile_job)
        self.engine = EngineLink(send_engine, self.programs.get)
        self.sessions: dict[bytes, Session] = {}
        self.num_malformed = 0
        self._num_sessions = 0
        self._num_live = 0  # requests not answered yet
        self._parts: dict[str, Work] = {}  # the engine's request name -> whose it is
        self._to_pump: deque[BranchQueue] = deque()

    # ------------------------------------------------------------------------------------------ from clients

    def on_client(self, client: bytes, message: m.ClientMessage) -> None:
        """Carry out one message; never raises."""
        session = self._session(client)
        session.last_seen_s = self._clock_s()
        try:
            self._dispatch(session, message)
        except Exception as error:  # noqa: BLE001 - one message must not end the service
            self._answer_error(session, message, error)
        self._pump_all()

    def on_malformed(self, client: bytes, data: bytes, error: Exception) -> None:
        """Answer bytes that are no message, if they at least name a request; else count and drop them."""
        self.num_malformed += 1
        answer = refusal_of_bytes(data, error)
        if answer is not None:
            self._send_client(client, answer)

    def _answer_error(self, session: Session, message: m.ClientMessage, error: Exception) -> None:
        name = getattr(message, "request", None)
        answer = as_wire_error(error)
        if isinstance(name, str) and not isinstance(message, m.Abort):
            self._send_client(session.client, m.Failed(name, answer))

    def _session(self, client: bytes) -> Session:
        session = self.sessions.get(client)
        if session is None:
            self._num_sessions += 1
            session = self.sessions[client] = Session(client, self._num_sessions, self._clock_s())
        return session

    def _dispatch(self, session: Session, message: m.ClientMessage) -> None:
        match message:
            case m.Hello(pid=pid):
                session.pid = pid
                session.wants_ready = True
                session.greeted = True
                self._answer_hello(session, self.engine.ready)
            case m.Generate() | m.Score():
                self._accept(session, message)
            case m.OpenBranch() | m.Append() | m.Fork() | m.CloseBranch():
                queue = apply_branch_message(session, message, self._new_branch)
                if queue is not None:
                    self._to_pump.append(queue)
            case m.Abort(name):
                if name in session.requests:
                    self._abort(session.requests[name])
            case m.StatsRequest() | m.FlushCache():
                self.engine.ask(session.client, message)
            case m.Tokenize(name, segments):
                branch = self._new_branch()
                branch.append(segments)
                self._send_client(session.client, m.Tokenized(name, tuple(branch.prompt_ids())))
            case m.VocabularyRequest(name):
                self._send_client(session.client, vocabulary_of(name, self._tokenizer))

    def _new_branch(self, namespace: str = "", strict_text: bool = False) -> Branch:
        return Branch(
            self._tokenizer,
            self.memory,
            namespace=namespace,
            strict_text=strict_text,
            max_tokens=self.engine.context_length,
        )

    def _accept(self, session: Session, message: m.Generate | m.Score) -> None:
        if message.request in session.requests:
            # an error under this name would end the first one at its client
            log.error("dropped: a request called %r is still running", message.request)
            return
        if self._num_live >= self._config.max_live_requests:
            raise Overloaded(f"{self._config.max_live_requests} requests are waiting already")
        if message.branch is None:
            strict = isinstance(message, m.Generate) and message.strict_text
            queue = BranchQueue(None, self._new_branch(message.namespace, strict))
        else:
            found = session.branches.get(message.branch)
            if found is None:
                raise no_branch(message.branch)
            queue = found
        session.num_works += 1
        work = Work(session, queue, message, session.num_works)
        session.requests[message.request] = work
        self._num_live += 1
        queue.operations.append(work)
        self._to_pump.append(queue)

    # ------------------------------------------------------------------------------------------ branch queues

    def _pump_all(self) -> None:
        while self._to_pump:
            queue = self._to_pump.popleft()
            while queue.operations and queue.running is None and queue.branch is not None:
                operation = queue.operations.popleft()
                if isinstance(operation, Work):
                    self._guarded(operation, self._start, queue, operation)
                else:
                    self._to_pump.extend(change_branch(queue, queue.branch, operation))

    def _guarded(self, work: Work, action: Callable[..., None], *arguments: Any) -> None:
        """Run one step of `work`; whatever it raises is the answer of this request alone."""
        try:
            action(*arguments)
        except Exception as error:  # noqa: BLE001 - a user's mistake or a defect
            self._fail(work, as_wire_error(error))

    def _start(self, queue: BranchQueue, work: Work) -> None:
        if work.is_answered:  # aborted while it waited here
            queue.broken = queue.broken or _aborted(work)
            return
        if queue.broken is not None:
            self._fail(work, queue.broken)
            return
        queue.running = work
        message = work.message
        assert queue.branch is not None
        queue.branch.append(message.segments)
        if isinstance(message, m.Score) or message.constraint is None:
            self._submit(work)
            return
        message.sampling.check()
        work.program = spec_key(message.constraint)
        self.programs.request(work.program, message.constraint, partial(self._on_grammar, work))

    def _on_grammar(self, work: Work, error: m.WireError | None) -> None:
        if error is not None:
            self._fail(work, error)
        elif not work.is_answered:
            self._guarded(work, self._submit, work)

    def _submit(self, work: Work) -> None:
        """Send a request's parts to the engine."""
        if isinstance(work.message, m.Generate):
            work.message.sampling.check()
        parts = parts_of(work, self._tokenizer)
        work.is_submitted = True
        if isinstance(work.message, m.Generate) and work.message.stream:
            self._send_client(work.session.client, m.Accepted(work.name))
        for index, part in parts:
            work.parts[part.request] = index
            self._parts[part.request] = work
            self.engine.submit(part)
        if not parts:
            self._finish(work)  # choices that add no token need no engine

    # ------------------------------------------------------------------------------------------ answers

    def _fail(self, work: Work, error: m.WireError, partial: str = "") -> None:
        if work.is_answered:
            return
        work.queue.broken = work.queue.broken or error
        self._send_client(work.session.client, m.Failed(work.name, error, partial))
        self._leave(work)

    def _finish(self, work: Work) -> None:
        if isinstance(work.message, m.Generate):
            (done,) = work.parts_done.values()
            answer = finished_of(work, done, self._tokenizer)
            if work.message.stream:
                for delta in stream_rest(work, done, answer):
                    self._send_client(work.session.client, delta)
        else:
            answer = scored_of(work)
        self._send_client(work.session.client, answer)
        self._leave(work)

    def _leave(self, work: Work) -> None:
        """Take an answered request out of all books; the engine ends what it still has of it."""
        work.is_answered = True
        self._num_live -= 1
        work.session.requests.pop(work.name, None)
        for part in work.parts:
            if self._parts.pop(part, None) is not None:
                self.engine.send(m.Cancel(part))
        if work.queue.running is work:
            work.queue.running = None
            self._to_pump.append(work.queue)

    def _abort(self, work: Work) -> None:
        """End a request: by itself while it waits here; by the engine's word, with the text so far, once it is there."""
        if not work.is_submitted or self.engine.ready is None:
            self._fail(work, _aborted(work))
        elif not work.is_cancelled:
            work.is_cancelled = True
            for part in work.parts:
                if part in self._parts:
                    self.engine.send(m.Cancel(part))

    def drop_client(self, client: bytes, reason: str) -> None:
        """Free all that a client holds. What it still waits for is answered, should it come back."""
        session = self.sessions.pop(client, None)
        if session is None:
            return
        error = m.WireError.of(Aborted(reason))
        for work in list(session.requests.values()):
            self._fail(work, error)
        session.branches.clear()
        self.engine.forget_client(client)
        self._pump_all()

    def expire(self) -> list[bytes]:
        """Drop the clients silent for longer than the lease; their names."""
        oldest_s = self._clock_s() - self._config.lease_s
        silent = [
            client for client, session in self.sessions.items() if session.last_seen_s < oldest_s
        ]
        for client in silent:
            self.drop_client(
                client, f"the client gave no sign of life for {self._config.lease_s:g} s"
            )
        return silent

    # ------------------------------------------------------------------------------------------ from engine and worker

    def on_engine(self, message: m.EngineOutbound) -> None:
        """Carry out one message of the engine; never raises."""
        work = self._parts.get(getattr(message, "request", ""))
        if work is not None:
            self._guarded(work, self._on_part, work, message)
        elif isinstance(message, m.EngineReady):
            self._on_ready(message)
        elif isinstance(message, m.EngineReply):
            self._on_reply(message)
        elif isinstance(message, m.NeedProgram):
            self._reload(message.program)
        self._pump_all()  # anything else belongs to a request that was answered already

    def _on_part(self, work: Work, message: m.EngineOutbound) -> None:
        match message:
            case m.Progress(_, index, token_ids, logprobs):
                if not work.is_cancelled:
                    text = work.outputs[index].push(token_ids)
                    work.num_streamed[index] += len(token_ids)
                    self._send_client(
                        work.session.client, m.Delta(work.name, index, text, token_ids, logprobs)
                    )
            case m.Done(name):
                del self._parts[name]
                work.parts_done[work.parts[name]] = message
                if len(work.parts_done) == len(work.parts):
                    self._finish(work)
            case m.EngineFailed(name, error, token_ids):
                del self._parts[name]
                decoder = self._tokenizer.decoder()
                self._fail(work, error, decoder.push(token_ids) + decoder.finish())
            case _:  # no other message names a request
                pass

    def _on_ready(self, ready: m.EngineReady) -> None:
        known = self.engine.ready
        if known is not None and known.epoch != ready.epoch:
            self.on_engine_died("the engine process was replaced")
        for session in self.sessions.values():  # before any answer of this engine
            session.wants_ready = session.wants_ready or session.greeted
            self._answer_hello(session, ready)
        self.engine.on_ready(ready)

    def _answer_hello(self, session: Session, ready: m.EngineReady | None) -> None:
        if ready is None or not session.wants_ready:
            return
        session.wants_ready = False
        facts = facts_of(self._config.model, self._tokenizer, ready)
        self._send_client(session.client, facts)

    def on_engine_died(self, reason: str) -> None:
        """Fail what the engine was working on. Requests that had not reached it wait for the next one."""
        if self.engine.ready is None:
            return
        queries = self.engine.on_died()
        error = m.WireError.of(EngineDied(reason, hint="Submit the request again"))
        lost, self._parts = self._parts, {}
        for work in dict.fromkeys(lost.values()):
            self._fail(work, error)
        for query in queries:
            self._send_client(query.client, m.Failed(query.message.request, error))
        self._pump_all()

    def _on_reply(self, reply: m.EngineReply) -> None:
        query = self.engine.take_query(reply.request)
        if query is None:
            return
        name = query.message.request
        if reply.error is not None:
            answer = m.Failed(name, reply.error)
        elif isinstance(query.message, m.StatsRequest):
            answer = m.StatsReply(name, {**reply.counters, **self.counters()})
        else:
            self.memory.clear()
            answer = m.Flushed(name)
        self._send_client(query.client, answer)

    def counters(self) -> dict[str, float]:
        """The gateway's own counters, by name."""
        return {
            "gateway_clients": len(self.sessions),
            "gateway_branches": sum(len(session.branches) for session in self.sessions.values()),
            "gateway_requests": self._num_live,
            "gateway_malformed_messages": self.num_malformed,
            **self.memory.counters(),
            **self.programs.counters(),
        }

    def on_worker(self, message: m.WorkerMessage) -> None:
        """Take the compile worker's answer."""
        self.programs.on_answer(message)
        self._pump_all()

    def _reload(self, key: str) -> None:
        """The engine dropped a grammar that a request needs: give it again, compiled anew if it left the store too."""
        users = [work for work in dict.fromkeys(self._parts.values()) if work.program == key]
        if self.engine.load(key):
            return
        for work in users:
            message = work.message
            if isinstance(message, m.Generate) and message.constraint is not None:
                self.programs.request(key, message.constraint, partial(self._on_reload, work))

    def _on_reload(self, work: Work, error: m.WireError | None) -> None:
        if error is not None:
            self._fail(work, error)
        else:
            self.engine.load(work.program)


def _aborted(work: Work) -> m.WireError:
    return m.WireError.of(Aborted(f"request {work.name!r} was aborted"))
