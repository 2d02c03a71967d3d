"""/tokenize and /detokenize: text or messages to ids as a prompt would get them, and back."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ... import messages as m
from ..context import server_of
from ..json_answer import JsonAnswer
from ..live_request import answer_of
from ..refusals import BodyError
from ..request_body import ignored_headers, read_body

MAX_DETOKENIZED = 1 << 16  # or what the context holds: more would hold up the streams of others


class TokenizeBody(msgspec.Struct):
    """`prompt` or `messages`, one of them."""

    model: str | None = None
    prompt: str | None = None
    messages: list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    add_generation_prompt: bool = True


class DetokenizeBody(msgspec.Struct):
    """`tokens` are ids."""

    tokens: list[int]
    model: str | None = None
    skip_special_tokens: bool = False


async def tokenize(request: Request) -> Response:
    """The ids, and what the model's context holds."""
    server = server_of(request)
    body, ignored = await read_body(request, TokenizeBody)
    server.check_model(body.model)
    message = m.Tokenize(server.client.new_id("tokenize"), (_segment(body),))
    tokenized: m.Tokenized = await answer_of(server.client.request(message))
    answer = {
        "tokens": tokenized.token_ids,
        "count": len(tokenized.token_ids),
        "max_model_len": server.client.facts.context_length,
    }
    return JsonAnswer(answer, headers=ignored_headers(ignored))


def _segment(body: TokenizeBody) -> m.Segment:
    if (body.prompt is None) == (body.messages is None):
        raise BodyError("give prompt or messages, one of them", place="prompt")
    if body.prompt is not None:
        return m.Text(body.prompt)
    return m.Chat(tuple(body.messages or ()), tuple(body.tools or ()), body.add_generation_prompt)


async def detokenize(request: Request) -> Response:
    """The text that the ids spell."""
    server = server_of(request)
    body, ignored = await read_body(request, DetokenizeBody)
    server.check_model(body.model)
    max_tokens = max(MAX_DETOKENIZED, server.client.facts.context_length)
    if len(body.tokens) > max_tokens:
        raise BodyError(
            f"{len(body.tokens)} tokens, at most {max_tokens} are taken", place="tokens"
        )
    vocabulary = await server.vocabulary.load()
    text = vocabulary.text_of(body.tokens, skip_special=body.skip_special_tokens)
    return JsonAnswer({"prompt": text}, headers=ignored_headers(ignored))


ROUTES = (
    Route("/tokenize", tokenize, methods=["POST"]),
    Route("/detokenize", detokenize, methods=["POST"]),
)
