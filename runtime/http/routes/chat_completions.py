"""POST /v1/chat/completions: OpenAI's chat, whole or streamed. The parts are in `http/openai`; here they meet the live request.

A tool whose schema the grammar refuses does not fail a request that did not ask for strictness: it is asked again with that argument
unconstrained, and the answer says so under `radixlm.warnings`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....errors import RadixError
from ... import messages as m
from ..context import ServerContext, server_of
from ..exchange import answer_exchange
from ..live_request import LiveRequest
from ..openai.answers import ChatAnswer, Head, Notes
from ..openai.bodies import ChatBody, StreamOptions
from ..openai.chat import ChatPlan, ChatStream, chat_answer, plan_chat
from ..openai.frames import frames_of
from ..openai.logprobs import NoTokens, TokenTable
from ..openai.places import in_terms_of_body
from ..openai.unsupported import ineffective_fields
from ..request_body import read_body
from ..sse import DONE, Outlet

MAX_RELAXED = 16  # arguments of one request: each costs a compilation of all its tools


async def chat_completions(request: Request) -> Response:
    """Answer one chat."""
    server = server_of(request)
    body, unknown = await read_body(request, ChatBody)
    server.check_model(body.model)
    namespace = server.namespace(request, body.cache_salt)
    plan = plan_chat(body, server.client.facts, server.client.new_id, namespace)
    ignored = (*unknown, *ineffective_fields(body))
    exchange = _Exchange(server, body, plan, Notes(ignored))
    return await answer_exchange(request, exchange, ignored, is_streamed=bool(body.stream))


@dataclass(slots=True)
class _Exchange:
    """One request on its way; plan and notes change when a tool is relaxed."""

    server: ServerContext
    body: ChatBody
    plan: ChatPlan
    notes: Notes
    live: LiveRequest | None = None  # that runs now

    def is_accepted(self) -> bool:
        """Is the constraint compiled? One that a tool was relaxed in is another."""
        return self.live is not None and self.live.is_accepted

    async def whole(self) -> ChatAnswer:
        """The answer that is not streamed."""
        table = await self._table()
        while True:
            try:
                with self.server.start(self.plan.generate) as live:
                    finished = await live.finished()
            except RadixError as error:
                self._relax(error)
            else:
                return chat_answer(self.plan, self._head(), finished, table, self.notes)

    async def frames(self, outlet: Outlet) -> AsyncGenerator[bytes, None]:
        """The stream. Nothing is given out before the first text is there, so that an error still gets its status."""
        table = await self._table()
        options = self.body.stream_options
        while True:
            stream = ChatStream(self.plan, self._head(), table, self.notes)
            try:
                with self.server.start(self.plan.generate) as live:
                    self.live = live
                    live.hand_over(partial(_write_at_once, outlet, stream, options))
                    async for delta in live:
                        if chunks := stream.push(delta):
                            yield frames_of(chunks, options)
                    finished = await live.finished()
            except RadixError as error:
                if stream.has_begun:
                    raise
                self._relax(error)
            else:
                yield frames_of(stream.end(finished), options) + DONE
                return

    def _relax(self, error: RadixError) -> None:
        """Go on with a tool less constrained, or raise the error in terms of the body."""
        relaxed = None
        if len(self.notes.warnings) < MAX_RELAXED:
            relaxed = self.plan.relaxed(error, self.server.client.new_id("chat"))
        if relaxed is None:
            raise in_terms_of_body(error, self.body, self.plan.answer, "messages") from None
        self.plan, warning = relaxed
        self.notes = Notes(self.notes.ignored_fields, (*self.notes.warnings, warning))

    def _head(self) -> Head:
        return Head.new("chatcmpl", self.server.model)

    async def _table(self) -> TokenTable:
        if self.plan.num_top_logprobs is None:
            return NoTokens()
        return await self.server.vocabulary.load()


def _write_at_once(
    outlet: Outlet, stream: ChatStream, options: StreamOptions | None, delta: m.Delta
) -> bool:
    """See `LiveRequest.hand_over`."""
    if not outlet.is_open:
        return False
    if pushed := stream.push(delta):
        outlet.write(frames_of(pushed, options))
    return True


ROUTES = (Route("/v1/chat/completions", chat_completions, methods=["POST"]),)
