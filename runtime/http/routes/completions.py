"""POST /v1/completions: OpenAI's text completions, whole or streamed. The parts are in `http/openai`; here they meet the live requests."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import ExitStack
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....errors import RadixError
from ... import messages as m
from ..context import ServerContext, server_of
from ..exchange import answer_exchange
from ..live_request import LiveGroup, answer_of
from ..openai.answers import Head, Notes, TextAnswer
from ..openai.bodies import CompletionBody
from ..openai.completions import (
    CompletionPlan,
    CompletionStream,
    completion_answer,
    plan_completion,
)
from ..openai.frames import frames_of
from ..openai.logprobs import NoTokens, TokenTable
from ..openai.places import in_terms_of_body
from ..openai.unsupported import ineffective_fields
from ..request_body import read_body
from ..sse import DONE, Outlet


async def completions(request: Request) -> Response:
    """Continue one prompt or several."""
    server = server_of(request)
    body, unknown = await read_body(request, CompletionBody)
    server.check_model(body.model)
    namespace = server.namespace(request, body.cache_salt)
    plan = plan_completion(body, server.client.new_id, namespace)
    ignored = (*unknown, *ineffective_fields(body))
    exchange = _Exchange(server, body, plan, Notes(ignored))
    return await answer_exchange(request, exchange, ignored, is_streamed=bool(body.stream))


@dataclass(slots=True)
class _Exchange:
    """One HTTP request on its way: a live request per prompt."""

    server: ServerContext
    body: CompletionBody
    plan: CompletionPlan
    notes: Notes
    group: LiveGroup | None = None  # that runs

    def is_accepted(self) -> bool:
        """Are all prompts on their way?"""
        return self.group is not None and all(live.is_accepted for live in self.group.lives)

    async def whole(self) -> TextAnswer:
        """The answer that is not streamed."""
        table = await self._table()
        if self.plan.needs_prompt_ids:
            self.plan = self.plan.with_prompt_ids([await self._ids(g) for g in self.plan.generates])
        try:
            with ExitStack() as stack:
                finished = await self._start(stack).finished()
        except RadixError as error:
            raise self._in_terms_of_body(error) from None
        return completion_answer(self.plan, self._head(), finished, table, self.notes)

    async def frames(self, outlet: Outlet) -> AsyncGenerator[bytes, None]:
        """The stream. Nothing is given out before the first text is there, so that an error still gets its status."""
        table = await self._table()
        options = self.body.stream_options
        stream = CompletionStream(self.plan, self._head(), table, self.notes)
        chunks = stream.begin()

        def write_at_once(which: int, delta: m.Delta) -> bool:
            if not outlet.is_open:
                return False
            if pushed := stream.push(which, delta):
                outlet.write(frames_of(pushed, options))
            return True

        try:
            with ExitStack() as stack:
                group = self._start(stack)
                group.hand_over(write_at_once)
                async for which, delta in group:
                    chunks += stream.push(which, delta)
                    if chunks:
                        yield frames_of(chunks, options)
                    chunks = []
                finished = await group.finished()
        except RadixError as error:
            raise self._in_terms_of_body(error) from None
        yield frames_of([*chunks, *stream.end(finished)], options) + DONE

    def _in_terms_of_body(self, error: RadixError) -> RadixError:
        which = self.group.failed if self.group is not None else 0
        place = "prompt" if len(self.plan.generates) == 1 else f"prompt[{which}]"
        return in_terms_of_body(error, self.body, self.plan.constraint, place)

    def _start(self, stack: ExitStack) -> LiveGroup:
        lives = [
            stack.enter_context(self.server.start(generate)) for generate in self.plan.generates
        ]
        self.group = stack.enter_context(LiveGroup(lives))
        return self.group

    async def _ids(self, generate: m.Generate) -> tuple[int, ...]:
        """The ids of a prompt whose tokens are told one by one."""
        client = self.server.client
        request = m.Tokenize(client.new_id("tokenize"), generate.segments)
        tokenized: m.Tokenized = await answer_of(client.request(request))
        return tokenized.token_ids

    def _head(self) -> Head:
        return Head.new("cmpl", self.server.model)

    async def _table(self) -> TokenTable:
        echoes_ids = self.plan.echo and any(
            isinstance(generate.segments[0], m.Ids) for generate in self.plan.generates
        )
        if self.plan.num_top_logprobs is None and not echoes_ids:
            return NoTokens()
        return await self.server.vocabulary.load()


ROUTES = (Route("/v1/completions", completions, methods=["POST"]),)
