"""Anthropic's messages API in miniature: it checks requests as the real one does, and writes with a FakeModel.

What it refuses is refused with the real shape of errors: {"type": "error", "error": {"type", "message"}}.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from fake_model import FakeModel, Wrote, tokens_of
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from radixlm.grammar.spec import JsonSchema

_FIELDS = {
    "model", "max_tokens", "messages", "system", "stop_sequences", "stream", "temperature", "top_p", "top_k", "output_config",
    "cache_control", "metadata",
}  # fmt: skip
KEY = "sk-ant-secret"
NEW, OLD = (
    "claude-opus-5",
    "claude-3-5-haiku-latest",
)  # the new one takes neither a temperature nor a begun answer


class Refused(Exception):
    def __init__(
        self, message: str, kind: str = "invalid_request_error", status: int = 400
    ) -> None:
        self.response = JSONResponse(
            {"type": "error", "error": {"type": kind, "message": message}}, status_code=status
        )


@dataclass
class FakeAnthropic:
    model: FakeModel = field(default_factory=FakeModel)
    requests: list[dict[str, Any]] = field(default_factory=list)
    failures: deque[Response | str] = field(default_factory=deque)
    num_left: int = 0

    @property
    def app(self) -> Starlette:
        return Starlette(routes=[Route("/v1/messages", self._messages, methods=["POST"])])

    async def _messages(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append(body)
        if self.failures:
            failure = self.failures.popleft()
            if isinstance(failure, Response):
                return failure
        try:
            _check_headers(request)
            _check(body)
            wrote = self._write(body)
        except Refused as refused:
            return refused.response
        prompt = _prompt(body)
        if "SLOW" in prompt:
            return StreamingResponse(self._never(), media_type="text/event-stream")
        usage = {
            "input_tokens": len(tokens_of(prompt)), "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2,
            "output_tokens": len(wrote.tokens),
        }  # fmt: skip
        reason = (
            "max_tokens"
            if wrote.reason == "length"
            else "stop_sequence"
            if wrote.stop
            else "end_turn"
        )
        if body.get("stream"):
            return StreamingResponse(
                self._events(wrote, reason, usage), media_type="text/event-stream"
            )
        return JSONResponse(
            {
                "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"],
                "content": [{"type": "text", "text": wrote.text}], "stop_reason": reason,
                "stop_sequence": wrote.stop, "usage": usage,
            }
        )  # fmt: skip

    def _write(self, body: dict[str, Any]) -> Wrote:
        schema = (body.get("output_config") or {}).get("format", {}).get("schema")
        return self.model.write(
            _prompt(body), constraint=None if schema is None else JsonSchema(json.dumps(schema)),
            max_tokens=body["max_tokens"], stop=body.get("stop_sequences") or (), temperature=body.get("temperature", 0.0),
        )  # fmt: skip

    async def _events(
        self, wrote: Wrote, reason: str, usage: dict[str, Any]
    ) -> AsyncIterator[bytes]:
        begin = {
            "type": "message",
            "role": "assistant",
            "content": [],
            "usage": {**usage, "output_tokens": 1},
        }
        yield _frame({"type": "message_start", "message": begin})
        yield _frame(
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "text", "text": ""},
            }
        )
        yield _frame({"type": "ping"})
        for start in range(0, len(wrote.text), 3):
            delta = {"type": "text_delta", "text": wrote.text[start : start + 3]}
            yield _frame({"type": "content_block_delta", "index": 0, "delta": delta})
            await asyncio.sleep(0)
        yield _frame({"type": "content_block_stop", "index": 0})
        delta = {"stop_reason": reason, "stop_sequence": wrote.stop}
        yield _frame(
            {
                "type": "message_delta",
                "delta": delta,
                "usage": {"output_tokens": usage["output_tokens"]},
            }
        )
        yield _frame({"type": "message_stop"})

    async def _never(self) -> AsyncIterator[bytes]:
        try:
            yield _frame({"type": "message_start", "message": {"usage": {"input_tokens": 1}}})
            await asyncio.sleep(3600)
        finally:
            self.num_left += 1


def _frame(data: dict[str, Any]) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def _prompt(body: dict[str, Any]) -> str:
    lines = [f"system: {body.get('system', '')}"]
    lines += [f"{m['role']}: {m['content']}" for m in body["messages"]]
    return "\n".join(lines) + (
        "" if body["messages"][-1]["role"] == "assistant" else "\nassistant: "
    )


def _check_headers(request: Request) -> None:
    if request.headers.get("x-api-key") != KEY:
        raise Refused("invalid x-api-key", "authentication_error", 401)
    if request.headers.get("anthropic-version") != "2023-06-01":
        raise Refused("anthropic-version: header is required")


def _check(body: dict[str, Any]) -> None:
    unknown = next((name for name in body if name not in _FIELDS), None)
    if unknown is not None:
        raise Refused(f"{unknown}: Extra inputs are not permitted")
    if not isinstance(body.get("max_tokens"), int):
        raise Refused("max_tokens: Field required")
    if body["model"] not in (NEW, OLD):
        raise Refused(f"model: {body['model']}", "not_found_error", 404)
    if body["model"] == NEW and body.keys() & {"temperature", "top_p", "top_k"}:
        raise Refused("sampling parameters are not supported for this model")
    if not 0 <= body.get("temperature", 1.0) <= 1:
        raise Refused("temperature: range: 0..1")
    _check_messages(body)
    for stop in body.get("stop_sequences") or ():
        if not stop.strip():
            raise Refused("stop_sequences: each stop sequence must contain non-whitespace")
    form = (body.get("output_config") or {}).get("format")
    if form is not None:
        if set(form) != {"type", "schema"} or form["type"] != "json_schema":
            raise Refused("output_config.format: malformed")
        _check_schema(form["schema"])


def _check_messages(body: dict[str, Any]) -> None:
    messages = body["messages"]
    if not messages:
        raise Refused("messages: at least one message is required")
    for index, message in enumerate(messages):
        if message["role"] not in ("user", "assistant"):
            raise Refused(f'messages: Unexpected role "{message["role"]}"')
        if not message["content"].strip():
            raise Refused(f"messages.{index}: text content blocks must be non-empty")
    if messages[-1]["role"] == "assistant":
        if body["model"] == NEW:
            raise Refused("This model does not support assistant message prefill")
        if re.search(r"\s$", messages[-1]["content"]):
            raise Refused("messages: final assistant content cannot end with trailing whitespace")
        if body.get("output_config"):
            raise Refused("output_config.format: cannot be used with a prefill")


def _check_schema(schema: Any) -> None:
    if isinstance(schema, dict):
        if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
            raise Refused(
                "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false"
            )
        for value in schema.values():
            _check_schema(value)
    elif isinstance(schema, list):
        for value in schema:
            _check_schema(value)
