"""OpenAI-compatible servers in miniature: each takes the fields of its dialect and no others, checks them, and writes with a FakeModel.

`requests` holds the bodies that came, `failures` what the next requests are answered with instead, `num_left` how many clients went away before
their answer. A prompt that holds SLOW is never answered to its end.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from fake_model import FakeModel, Wrote, tokens_of
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from radixlm.grammar.dialects import spec_of_text
from radixlm.grammar.spec import Choice, Gbnf, JsonSchema, Regex, Spec

_BASIC = {
    "model", "temperature", "top_p", "n", "stop", "seed", "frequency_penalty", "presence_penalty", "logit_bias", "stream",
    "stream_options", "logprobs",
}  # fmt: skip
_CHAT = _BASIC | {"messages", "top_logprobs"}
_COMPLETION = _BASIC | {"prompt", "max_tokens", "echo"}
_MORE = {"top_k", "min_p", "repetition_penalty", "min_tokens", "ignore_eos", "stop_token_ids"}
_VLLM = _MORE | {
    "include_stop_str_in_output", "continue_final_message", "add_generation_prompt", "return_tokens_as_token_ids", "cache_salt",
}  # fmt: skip
FIELDS: dict[str, tuple[set[str], set[str]]] = {  # of chats, of completions
    "openai": (_CHAT | {"max_completion_tokens", "response_format"}, _COMPLETION),
    "vllm": (_CHAT | _VLLM | {"max_tokens", "structured_outputs"}, _COMPLETION | _VLLM | {"structured_outputs"}),
    "vllm-guided": (
        _CHAT | _VLLM | {"max_tokens", "guided_json", "guided_regex", "guided_choice", "guided_grammar"},
        _COMPLETION | _VLLM | {"guided_json", "guided_regex", "guided_choice", "guided_grammar"},
    ),
    "sglang": (
        _CHAT | _MORE | {"max_tokens", "response_format", "regex", "ebnf", "no_stop_trim", "continue_final_message"},
        _COMPLETION | _MORE | {"json_schema", "regex", "ebnf", "no_stop_trim"},
    ),
    "llama.cpp": (
        _CHAT | {"max_tokens", "top_k", "min_p", "typical_p", "repeat_penalty", "ignore_eos", "grammar", "json_schema"},
        _COMPLETION | {"top_k", "min_p", "typical_p", "repeat_penalty", "ignore_eos", "grammar", "json_schema"},
    ),
}  # fmt: skip
OWNERS = {
    "openai": "system",
    "vllm": "vllm",
    "vllm-guided": "vllm",
    "sglang": "sglang",
    "llama.cpp": "llamacpp",
}


class Refused(Exception):
    def __init__(self, message: str, param: str = "", status: int = 400) -> None:
        self.status = status
        self.body = {
            "error": {
                "message": message,
                "type": "invalid_request_error",
                "param": param,
                "code": None,
            }
        }


@dataclass
class FakeOpenAI:
    dialect: str
    model: FakeModel = field(default_factory=FakeModel)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    failures: deque[Response | str] = field(
        default_factory=deque
    )  # a text: the stream breaks off after it
    num_left: int = 0
    num_active: int = 0
    max_active: int = 0

    @property
    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/models", self._models),
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/completions", self._completions, methods=["POST"]),
            ]
        )

    async def _models(self, request: Request) -> Response:
        about = {
            "id": "fake",
            "object": "model",
            "owned_by": OWNERS[self.dialect],
            "max_model_len": 4096,
        }
        return JSONResponse({"object": "list", "data": [about]})

    async def _chat(self, request: Request) -> Response:
        return await self._answer(request, is_chat=True)

    async def _completions(self, request: Request) -> Response:
        return await self._answer(request, is_chat=False)

    async def _answer(self, request: Request, *, is_chat: bool) -> Response:
        self.num_active += 1
        self.max_active = max(self.max_active, self.num_active)
        try:
            await asyncio.sleep(0.005)
            return await self._answered(request, is_chat)
        finally:
            self.num_active -= 1

    async def _answered(self, request: Request, is_chat: bool) -> Response:
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        broken_after = None
        if self.failures:
            failure = self.failures.popleft()
            if isinstance(failure, Response):
                return failure
            broken_after = failure
        try:
            prompts = self._checked(body, is_chat)
            choices = [
                c
                for i, prompt in enumerate(prompts)
                for c in self._choices(body, prompt, i, is_chat)
            ]
        except Refused as refused:
            return JSONResponse(refused.body, status_code=refused.status)
        if any("SLOW" in prompt for prompt in prompts):
            return StreamingResponse(self._never(request, body), media_type="text/event-stream")
        usage = {
            "prompt_tokens": sum(len(tokens_of(prompt)) for prompt in prompts),
            "completion_tokens": sum(len(c[1].tokens) for c in choices),
            "prompt_tokens_details": {"cached_tokens": 1},
        }
        if body.get("stream"):
            chunks = self._chunks(body, choices, usage, is_chat, broken_after)
            return StreamingResponse(chunks, media_type="text/event-stream")
        return JSONResponse(
            {"choices": [self._whole(body, i, c, is_chat) for i, c in choices], "usage": usage}
        )

    # ------------------------------------------------------------------------------------------ what came

    def _checked(self, body: dict[str, Any], is_chat: bool) -> list[str]:
        allowed = FIELDS[self.dialect][0 if is_chat else 1]
        unknown = next((name for name in body if name not in allowed), None)
        if unknown is not None:
            raise Refused(f"Unrecognized request argument supplied: {unknown}", unknown)
        if body["model"] != "fake":
            raise Refused("no such model", "model", 404)
        if self.dialect == "openai" and len(body.get("stop") or ()) > 4:
            raise Refused("at most 4 stop sequences", "stop")
        if self.dialect.startswith("vllm") and body.get("n", 1) > 1 and body["temperature"] == 0:
            raise Refused("n must be 1 when using greedy sampling", "n")
        if self.dialect == "llama.cpp" and body.get("n", 1) > 1:
            raise Refused("only one completion choice is allowed", "n")
        if not is_chat:
            prompt = body["prompt"]
            return [prompt] if isinstance(prompt, str) else prompt
        return [self._chat_prompt(body)]

    def _chat_prompt(self, body: dict[str, Any]) -> str:
        messages = body["messages"]
        if not messages or any(
            set(m) != {"role", "content"} or not isinstance(m["content"], str) for m in messages
        ):
            raise Refused("a message has a role and a content", "messages")
        if any(m["role"] not in ("system", "user", "assistant") for m in messages):
            raise Refused("unknown role", "messages")
        goes_on = messages[-1]["role"] == "assistant"
        if goes_on and self.dialect == "openai":
            raise Refused("the last message is the assistant's", "messages")
        if (
            goes_on
            and self.dialect.startswith("vllm")
            and not (
                body.get("continue_final_message") and body.get("add_generation_prompt") is False
            )
        ):
            raise Refused("it would begin a new message", "messages")
        lines = [f"{m['role']}: {m['content']}" for m in messages]
        return "\n".join(lines) + ("" if goes_on else "\nassistant: ")

    def _constraint(self, body: dict[str, Any]) -> Spec | None:
        given = body.get("structured_outputs") or {}
        given = {**given, **{k[7:]: v for k, v in body.items() if k.startswith("guided_")}}
        given |= {k: body[k] for k in ("regex", "ebnf", "grammar", "json_schema") if k in body}
        form = body.get("response_format")
        if form is not None:
            if form["type"] != "json_schema":
                raise Refused("unknown format", "response_format")
            given["json"] = form["json_schema"]["schema"]
            if self.dialect == "openai":
                _check_strict(form["json_schema"])
        if len(given) > 1:
            raise Refused("one constraint only", "response_format")
        for kind, value in given.items():
            if kind in ("json", "json_schema"):
                return JsonSchema(value if isinstance(value, str) else json.dumps(value))
            if kind == "regex":
                return Regex(value)
            if kind == "choice":
                return Choice(tuple(value))
            return Gbnf(value) if kind == "ebnf" else spec_of_text(value)
        return None

    # ------------------------------------------------------------------------------------------ what goes

    def _choices(
        self, body: dict[str, Any], prompt: str, number: int, is_chat: bool
    ) -> list[tuple[int, Wrote]]:
        limit = body.get("max_completion_tokens", body.get("max_tokens"))
        if limit is None and not is_chat and self.dialect != "llama.cpp":
            limit = 16
        constraint = self._constraint(body)
        num = body.get("n", 1)
        return [
            (
                number * num + index,
                self.model.write(
                    prompt, constraint=constraint, max_tokens=limit, stop=body.get("stop") or (),
                    temperature=body.get("temperature", 1.0), seed=body.get("seed"), index=index,
                    include_stop=bool(body.get("include_stop_str_in_output") or body.get("no_stop_trim")),
                ),
            )
            for index in range(num)
        ]  # fmt: skip

    def _whole(
        self, body: dict[str, Any], index: int, wrote: Wrote, is_chat: bool
    ) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": index, "finish_reason": wrote.reason}
        if self.dialect.startswith("vllm"):
            choice["stop_reason"] = wrote.stop
        if is_chat:
            choice["message"] = {"role": "assistant", "content": wrote.text, "refusal": None}
        elif body.get("echo"):
            prompts = body["prompt"] if isinstance(body["prompt"], list) else [body["prompt"]]
            choice["text"] = prompts[index] + wrote.text
            choice["logprobs"] = self._echo(prompts[index])
        else:
            choice["text"] = wrote.text
        if _wants_logprobs(body) and not body.get("echo"):
            choice["logprobs"] = self._logprobs(body, wrote, is_chat)
        return choice

    def _echo(self, prompt: str) -> dict[str, Any]:
        tokens = tokens_of(prompt)
        starts = [sum(len(t) for t in tokens[:i]) for i in range(len(tokens))]
        values = [-(len(token) + i) / 7 for i, token in enumerate(tokens)]
        return {
            "tokens": tokens,
            "token_logprobs": [None, *values[1:]],
            "text_offset": starts,
            "top_logprobs": None,
        }

    def _logprobs(self, body: dict[str, Any], wrote: Wrote, is_chat: bool) -> dict[str, Any]:
        names = [
            f"token_id:{len(t)}" if body.get("return_tokens_as_token_ids") else t
            for t in wrote.tokens
        ]
        if is_chat:
            num = body.get("top_logprobs") or 0
            return {
                "content": [
                    {
                        "token": t,
                        "logprob": -0.5,
                        "top_logprobs": [{"token": t, "logprob": -0.5}] * num,
                    }
                    for t in names
                ]
            }
        return {
            "tokens": names, "token_logprobs": [-0.5] * len(names), "text_offset": list(range(len(names))),
            "top_logprobs": [{t: -0.5} for t in names] if body["logprobs"] else None,
        }  # fmt: skip

    async def _chunks(
        self,
        body: dict[str, Any],
        choices: list[tuple[int, Wrote]],
        usage: dict[str, Any],
        is_chat: bool,
        broken: str | None,
    ) -> AsyncIterator[bytes]:
        if broken is not None:
            yield _frame(_chunk(0, broken, None, is_chat))
            return
        for index, wrote in choices:
            for start in range(0, len(wrote.text), 3):
                yield _frame(_chunk(index, wrote.text[start : start + 3], None, is_chat))
                await asyncio.sleep(0)
        for index, wrote in choices:
            last = _chunk(index, "", wrote.reason, is_chat)
            if self.dialect.startswith("vllm"):
                last["choices"][0]["stop_reason"] = wrote.stop
            if _wants_logprobs(body):
                last["choices"][0]["logprobs"] = self._logprobs(body, wrote, is_chat)
            yield b": keepalive\n\n" + _frame(last)
        if (body.get("stream_options") or {}).get("include_usage"):
            yield _frame({"choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"

    async def _never(self, request: Request, body: dict[str, Any]) -> AsyncIterator[bytes]:
        try:
            if body.get("stream"):
                yield _frame(_chunk(0, "so", None, "messages" in body))
            await asyncio.sleep(3600)
        finally:
            self.num_left += 1


def _wants_logprobs(body: dict[str, Any]) -> bool:
    given = body.get("logprobs")
    return given is not None and given is not False  # 0 is a wish for the token itself


def _chunk(index: int, text: str, reason: str | None, is_chat: bool) -> dict[str, Any]:
    own = {"delta": {"content": text}} if is_chat else {"text": text}
    return {"choices": [{"index": index, "finish_reason": reason, **own}]}


def _frame(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def _check_strict(form: dict[str, Any]) -> None:
    """OpenAI's rules of strict mode."""
    if form.get("strict") is not True or not form.get("name"):
        raise Refused("strict and name are needed", "response_format")
    if form["schema"].get("type") != "object":
        raise Refused("schema must be a JSON Schema of 'type: \"object\"'", "response_format")
    _check_closed(form["schema"])


def _check_closed(schema: Any) -> None:
    if isinstance(schema, list):
        for item in schema:
            _check_closed(item)
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            raise Refused(
                "'additionalProperties' is required to be supplied and to be false",
                "response_format",
            )
        if sorted(schema.get("required", [])) != sorted(schema.get("properties", {})):
            raise Refused("'required' must include every key in properties", "response_format")
    for value in schema.values():
        _check_closed(value)
