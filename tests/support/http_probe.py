"""The smallest generating endpoints, to test the server's frame without any API's shapes: POST /probe {"text", "max_tokens", "stream"}."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from radixlm.grammar.spec import Regex
from radixlm.runtime import messages as m
from radixlm.runtime.http.context import server_of
from radixlm.runtime.http.json_answer import JsonAnswer, encode_json
from radixlm.runtime.http.live_request import LiveRequest
from radixlm.runtime.http.request_body import ignored_headers, read_body
from radixlm.runtime.http.sse import DONE, data, event_stream, unless_gone


class ProbeBody(msgspec.Struct):
    """A request of the probe."""

    text: str = "tell the long tale"
    max_tokens: int = 4
    stream: bool = False
    regex: str | None = None
    cache_salt: str | None = None


async def probe(request: Request) -> Response:
    """Text, streamed or whole, with the number of cached tokens."""
    server = server_of(request)
    body, ignored = await read_body(request, ProbeBody)
    message = m.Generate(
        server.client.new_id("probe"),
        segments=(m.Text(body.text),),
        sampling=m.SamplingParams(max_tokens=body.max_tokens, ignore_eos=True),
        constraint=None if body.regex is None else Regex(body.regex),
        stream=body.stream,
        namespace=server.namespace(request, body.cache_salt),
    )
    live = server.start(message)
    if body.stream:
        return event_stream(request, _frames(live), is_accepted=lambda: live.is_accepted)
    finished = await unless_gone(request, live.finished())
    return JsonAnswer(_answer(finished), headers=ignored_headers(ignored))


def _answer(finished: m.Finished) -> dict[str, Any]:
    return {
        "text": finished.outputs[0].text,
        "cached": finished.usage.cached_tokens,
        "queue_s": finished.queue_s,
    }


async def _frames(live: LiveRequest) -> AsyncGenerator[bytes, None]:
    with live:
        async for delta in live:
            yield data(encode_json({"text": delta.text}))
        yield data(encode_json(_answer(await live.finished())))
        yield DONE


async def flood(request: Request) -> Response:
    """A stream without end, as fast as it is read."""
    return event_stream(request, _endless())


async def _endless() -> AsyncGenerator[bytes, None]:
    while True:
        yield data(b'"%b"' % (b"x" * 65536))
        await asyncio.sleep(0)


async def silence(request: Request) -> Response:
    """A stream that says nothing for a while, then fails."""
    return event_stream(request, _silent())


async def _silent() -> AsyncGenerator[bytes, None]:
    await asyncio.sleep(0.5)
    raise KeyError("a defect")
    yield b""


async def defect(request: Request) -> Response:
    """An endpoint with a bug."""
    raise KeyError("secret of the inside")


PROBES = (
    Route("/probe", probe, methods=["POST"]),
    Route("/flood", flood, methods=["POST"]),
    Route("/silence", silence, methods=["POST"]),
    Route("/defect", defect, methods=["POST"]),
)
