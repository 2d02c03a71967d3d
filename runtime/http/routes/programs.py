"""/radixlm/model, /radixlm/generate, /radixlm/score: the wire's own messages over HTTP, for programs that run on another machine.

A body is a Generate or Score without a branch: segments (text, ids, role borders), every sampling argument, every constraint. So a program
gets exactly what the local client gets; branches live at the client, and what they share is found by the prefix cache. An answer says how
its branch goes on: `continuation`, the segments of the first output with the ids that stay.

    whole    {"finished": Finished, "continuation": [segment, ...]}            stream   data: Delta ... data: the same object
    errors   status and body as everywhere, and the header x-radixlm-error with the error as data (in a stream: data: {"failed": ...})

Owns these bodies. Decides nothing: the messages go to the gateway as they are.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....errors import RadixError, SamplingError
from ....grammar.spec import Spec
from ... import messages as m
from ...branches import cut_output
from ...output_text import without_stop_token
from ..context import ServerContext, server_of
from ..json_answer import JsonAnswer, encode_json
from ..live_request import answer_of
from ..refusals import HttpRefusal, refusal_of
from ..request_body import ignored_headers, read_body
from ..sse import data, event_stream, unless_gone

ERROR_HEADER = "x-radixlm-error"
_MAX_ERROR_BYTES = 4096  # of the header


class GenerateBody(msgspec.Struct):
    """A Generate; `sampling` by the names of SamplingParams."""

    segments: tuple[m.Segment, ...]
    sampling: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    constraint: Spec | None = None
    stream: bool = False
    namespace: str = ""
    strict_text: bool = False
    hints: m.Hints = m.Hints()


class ScoreBody(msgspec.Struct):
    """A Score."""

    segments: tuple[m.Segment, ...]
    choices: tuple[str, ...]
    namespace: str = ""
    hints: m.Hints = m.Hints()


class GenerateAnswer(msgspec.Struct):
    """The end of a Generate."""

    finished: m.Finished
    continuation: tuple[m.Segment, ...]


async def model(request: Request) -> Response:
    """Facts of the model, as local clients get them."""
    server = server_of(request)
    return JsonAnswer(msgspec.structs.replace(server.client.facts, model=server.model))


async def generate(request: Request) -> Response:
    """Continue segments, whole or streamed."""
    server = server_of(request)
    body, ignored = await read_body(request, GenerateBody)
    try:
        sampling = sampling_of(body.sampling)
    except SamplingError as error:
        raise _exact(error) from None
    message = m.Generate(
        server.client.new_id("program"),
        segments=body.segments,
        sampling=sampling,
        constraint=body.constraint,
        stream=body.stream,
        namespace=server.namespace(request, body.namespace),
        strict_text=body.strict_text,
        hints=body.hints,
    )
    headers = ignored_headers(ignored)
    if body.stream:
        return event_stream(request, _frames(server, message), headers)
    return JsonAnswer(await unless_gone(request, _whole(server, message)), headers=headers)


async def score(request: Request) -> Response:
    """Log-probabilities of choices as the continuation of segments."""
    server = server_of(request)
    body, ignored = await read_body(request, ScoreBody)
    if server.is_draining:
        raise HttpRefusal("the server is shutting down", status=503, code="shutting_down")
    message = m.Score(
        server.client.new_id("program"),
        None,
        body.choices,
        body.segments,
        server.namespace(request, body.namespace),
        body.hints,
    )
    try:
        scored = await unless_gone(request, answer_of(server.client.request(message)))
    except RadixError as error:
        raise _exact(error) from None
    return JsonAnswer(scored, headers=ignored_headers(ignored))


def sampling_of(given: dict[str, Any]) -> m.SamplingParams:
    """The arguments as SamplingParams. SamplingError for an unknown name or a wrong type."""
    unknown = next((name for name in given if name not in m.SamplingParams.__struct_fields__), None)
    if unknown is not None:
        raise SamplingError(f"unknown option {unknown!r}", place=unknown)
    try:
        return msgspec.convert(given, m.SamplingParams, str_keys=True)
    except msgspec.ValidationError as error:
        raise SamplingError(str(error), place="sampling") from None


async def _whole(server: ServerContext, message: m.Generate) -> GenerateAnswer:
    try:
        with server.start(message) as live:
            return await _answer(server, message, await live.finished())
    except HttpRefusal:
        raise
    except RadixError as error:
        raise _exact(error) from None


async def _frames(server: ServerContext, message: m.Generate) -> AsyncGenerator[bytes, None]:
    """The stream. An error before its first text still gets a status."""
    has_begun = False
    try:
        with server.start(message) as live:
            async for delta in live:
                has_begun = True
                yield data(encode_json(delta))
            answer = await _answer(server, message, await live.finished())
        yield data(encode_json(answer))
    except HttpRefusal:
        raise
    except RadixError as error:
        if not has_begun:
            raise _exact(error) from None
        yield data(encode_json({"failed": m.WireError.of(error)}))


async def _answer(
    server: ServerContext, message: m.Generate, finished: m.Finished
) -> GenerateAnswer:
    output = finished.outputs[0]
    stop = output.matched_stop
    if not isinstance(stop, str):
        sample = m.Sample(output.token_ids, output.finish_reason, stop)
        kept = without_stop_token(
            sample,
            server.client.facts.eos_token_ids,
            include_stop=message.sampling.include_stop,
        )
        return GenerateAnswer(finished, (m.Ids(kept),) if kept else ())
    if "\ufffd" in output.text:  # its bytes are not known any more
        return GenerateAnswer(finished, (m.Text(output.text),))
    table = (await server.vocabulary.load()).plain_bytes
    ids, rest = cut_output(table, output.token_ids, len(output.text.encode()))
    pieces: tuple[m.Segment, ...] = (m.Ids(tuple(ids)),) if ids else ()
    return GenerateAnswer(finished, (*pieces, m.Text(rest)) if rest else pieces)


def _exact(error: RadixError) -> HttpRefusal:
    """The usual refusal with the error itself in a header."""
    refusal = refusal_of(error)
    wire = m.WireError.of(error)
    told = encode_ascii(wire)
    if len(told) > _MAX_ERROR_BYTES:
        told = encode_ascii(msgspec.structs.replace(wire, message=wire.message[:300], hint=""))
    headers = {**refusal.headers, ERROR_HEADER: told} if len(told) <= _MAX_ERROR_BYTES else {}
    return HttpRefusal(
        error.message,
        status=refusal.status,
        code=refusal.code,
        place=error.place,
        hint=error.hint,
        headers=headers,
    )


def encode_ascii(value: msgspec.Struct) -> str:
    """JSON whose other characters are escaped, as a header needs it."""
    text = encode_json(value).decode()
    return "".join(c if c.isascii() else "".join(f"\\u{u:04x}" for u in _utf16(c)) for c in text)


def _utf16(character: str) -> list[int]:
    units = character.encode("utf-16-be")
    return [int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2)]


ROUTES = (
    Route("/radixlm/model", model, methods=["GET"]),
    Route("/radixlm/generate", generate, methods=["POST"]),
    Route("/radixlm/score", score, methods=["POST"]),
)
