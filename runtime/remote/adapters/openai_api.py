"""OpenAI-compatible servers: chat and text completions, in the dialect of the server.

A branch with roles is a chat, one without is a text completion (on api.openai.com the model decides). The dialect says what the server
enforces and how; what it cannot do is done here another way (n by several calls, stop strings beyond its number by cutting, select by what
it can, see `choosing`) or refused by name. Owns the bodies and the reading of the answers. Knows no branches, threads or sockets.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import msgspec

from ....errors import ConfigError, GrammarError, ProgramError, SamplingError, ServiceError
from ....grammar.spec import Choice
from ... import messages as m
from .. import choosing
from ..adapter import Ask, Choose, OnDelta, Told, all_of
from ..arguments import fields_of
from ..connection import Connection
from ..dialect import Dialect, dialect_of, dialect_of_owner
from ..failures import error_in_stream
from ..openai_answers import logprobs_of, read_chunk, tokens_of, usage_of
from ..prompts import Conversation, conversation, has_roles, plain_text
from ..readings import Reading
from ..structured import ROOM_TOKENS, Constrained

OPENAI_URL = "https://api.openai.com/v1"
_COMPLETION_MODELS = re.compile(r"(-instruct|^davinci|^babbage|^text-)")
_NO_TEMPERATURE = re.compile(r"^(o\d|gpt-5)")  # they sample as they like
_LIMITS = ("max_tokens", "max_completion_tokens")
_ALL = {
    name: name for name in ("top_p", "frequency_penalty", "presence_penalty", "seed", "logit_bias")
}


@dataclass(frozen=True, slots=True)
class OpenAIOptions:
    """`dialect`: "auto" looks at the server's list of models. `is_chat`: None decides by the branch (on api.openai.com by the model)."""

    model: str
    dialect: str = "auto"
    is_chat: bool | None = None
    default_max_tokens: int = 1024
    context_length: int = 128_000


class OpenAIServer:
    """An Adapter."""

    def __init__(self, connection: Connection, options: OpenAIOptions) -> None:
        self._connection = connection
        self._options = options
        self._dialect = None if options.dialect == "auto" else dialect_of(options.dialect)
        if self._dialect is None and connection.base_url == OPENAI_URL:
            self._dialect = dialect_of("openai")
        if self._dialect is not None:
            connection.server = self._dialect.title
        self._looking = asyncio.Lock()
        self._context_length = options.context_length

    @property
    def name(self) -> str:
        """What errors call the server."""
        return self._connection.server

    @property
    def facts(self) -> m.Ready:
        """The model's name; what the server does not tell is assumed."""
        return m.Ready(self._options.model, self._context_length, 0, ())

    async def generate(self, ask: Ask, on_delta: OnDelta | None) -> Told:
        """Continue by one call, or by n where the server has no n."""
        dialect = await self._known_dialect()
        message = ask.message
        num = message.sampling.n
        if num == 1 or (
            dialect.has_n and message.sampling.temperature != 0
        ):  # vLLM: no n when greedy
            return await self._call(dialect, ask, on_delta)
        each = [self._nth(dialect, ask, index, on_delta) for index in range(num)]
        told = await all_of(each)
        outputs = tuple(one.finished.outputs[0] for one in told)
        usage = m.sum_usage(one.finished.usage for one in told)
        return Told(m.Finished(message.request, outputs, usage, message.sampling.seed or 0))

    async def _nth(self, dialect: Dialect, ask: Ask, index: int, on_delta: OnDelta | None) -> Told:
        """One of n calls; with a seed each has its own."""
        sampling = ask.message.sampling
        seed = None if sampling.seed is None else (sampling.seed + index) % 2**63
        own = msgspec.structs.replace(sampling, n=1, seed=seed)
        one = replace(ask, message=msgspec.structs.replace(ask.message, sampling=own))

        def give(delta: m.Delta) -> None:
            if on_delta is not None:
                on_delta(msgspec.structs.replace(delta, index=index))

        return await self._call(dialect, one, give if on_delta is not None else None)

    async def _call(self, dialect: Dialect, ask: Ask, on_delta: OnDelta | None) -> Told:
        is_chat = self._is_chat(dialect, ask)
        constrained = Constrained({})
        if ask.message.constraint is not None:
            constrained = dialect.constrain(ask.message.constraint, is_chat)
        body = {**self._body(dialect, ask, is_chat), **constrained.fields}
        if constrained.wrapped is not None:
            body |= {name: body[name] + ROOM_TOKENS for name in _LIMITS if name in body}
        known_stops = ask.message.sampling.stop[: dialect.max_stops]
        is_told_all = len(known_stops) == len(ask.message.sampling.stop)
        if known_stops:
            body["stop"] = list(known_stops)
        reading = Reading(
            dialect.title,
            ask.message,
            on_delta,
            stops=() if is_told_all else ask.message.sampling.stop,
            wrapped=constrained.wrapped,
        )
        path = "/chat/completions" if is_chat else "/completions"
        has_ids = ask.message.sampling.logprobs is not None
        usage = m.Usage()
        if on_delta is None:
            answer = await self._connection.post(path, body)
            self._read(dialect, reading, answer, has_ids)
            usage = usage_of(answer)
        else:
            streamed = {**body, "stream": True, "stream_options": {"include_usage": True}}
            async for event in self._connection.events(path, streamed):
                if event.data == "[DONE]":
                    break
                chunk = event.json(dialect.title)
                if chunk.get("error") is not None:
                    raise reading.partial(error_in_stream(dialect.title, chunk["error"]))
                self._read(dialect, reading, chunk, has_ids)
                usage = usage_of(chunk) if chunk.get("usage") else usage
        seed = ask.message.sampling.seed or 0
        finished = m.Finished(ask.message.request, reading.outputs(), usage, seed)
        return Told(finished, None, reading.tokens)

    def _read(
        self, dialect: Dialect, reading: Reading, answer: Mapping[str, Any], has_ids: bool
    ) -> None:
        for choice in read_chunk(answer, dialect.title):
            if choice.text:
                reading.push(choice.index, choice.text)
            if has_ids:
                reading.add_tokens(
                    choice.index, logprobs=logprobs_of(choice.logprobs, dialect.title)
                )
            else:
                reading.add_tokens(choice.index, tokens=tokens_of(choice.logprobs))
            if choice.reason is not None:
                reading.end(choice.index, choice.reason, choice.stop)

    # ------------------------------------------------------------------------------------------ bodies

    def _body(self, dialect: Dialect, ask: Ask, is_chat: bool) -> dict[str, Any]:
        sampling = ask.message.sampling
        body: dict[str, Any] = {"model": self._options.model, **dialect.always}
        known = {**_ALL, **dialect.sampling}
        body |= fields_of(sampling, known, dialect.title, ("logprobs",))
        body |= self._logprob_fields(dialect, ask, is_chat)
        if sampling.temperature != 0 or not _NO_TEMPERATURE.match(self._options.model):
            body["temperature"] = sampling.temperature
        if sampling.n > 1:
            body["n"] = sampling.n
        if sampling.include_stop and sampling.stop:
            if dialect.include_stop is None:
                raise SamplingError(
                    f"{dialect.title} does not take include_stop", place="include_stop"
                )
            body[dialect.include_stop] = True
        if ask.namespace and dialect.namespace is not None:
            body[dialect.namespace] = ask.namespace
        max_tokens = sampling.max_tokens
        if max_tokens is None and not is_chat and dialect.has_short_default:
            max_tokens = self._options.default_max_tokens
        if max_tokens is not None:
            body[dialect.max_tokens_field if is_chat else "max_tokens"] = max_tokens
        if is_chat:
            return body | self._messages(dialect, ask)
        return {**body, "prompt": plain_text(ask.pieces, dialect.title)}

    def _messages(self, dialect: Dialect, ask: Ask) -> dict[str, Any]:
        talk = conversation(ask.pieces, dialect.title)
        if not talk.prefix:
            return {"messages": _some(talk, dialect.title)}
        if dialect.chat_prefix is None:
            raise ProgramError(
                f"{dialect.title} cannot go on with an assistant's message that has begun: {talk.prefix[-60:]!r}",
                place="role",
                hint="Let gen or select be the first in assistant(...)",
            )
        last = {"role": "assistant", "content": talk.prefix}
        return {"messages": [*talk.messages, last], **dialect.chat_prefix}

    def _logprob_fields(self, dialect: Dialect, ask: Ask, is_chat: bool) -> dict[str, Any]:
        wanted = ask.message.sampling.logprobs
        if wanted is None:
            return {"logprobs": 0} if ask.wants_tokens and dialect.has_echo and not is_chat else {}
        if dialect.logprob_ids is None:
            fields_of(m.SamplingParams(logprobs=wanted), {}, dialect.title)
        num: dict[str, Any] = {"logprobs": wanted}
        if is_chat:
            num = {"logprobs": True, "top_logprobs": wanted}
        return num | dict(dialect.logprob_ids or {})

    def _is_chat(self, dialect: Dialect, ask: Ask | Choose) -> bool:
        if self._options.is_chat is not None:
            return self._options.is_chat
        if self._connection.base_url == OPENAI_URL:
            return _COMPLETION_MODELS.search(self._options.model) is None
        return has_roles(ask.pieces)

    # ------------------------------------------------------------------------------------------ choices

    async def score(self, choose: Choose) -> m.Scored:
        """By the echo of a text completion, else by an enforced choice, else by what the model writes."""
        dialect = await self._known_dialect()
        message = choose.message
        is_chat = self._is_chat(dialect, choose)
        if dialect.has_echo and not is_chat:
            return await self._echoed(dialect, choose)
        choosing.refuse_alone(message, bool(choose.pieces), dialect.title)
        sampling = m.SamplingParams(max_tokens=choosing.max_tokens_of(message.choices))
        free = m.Generate(message.request, message.branch, (), sampling)
        ask = Ask(choose.pieces, free, choose.namespace)
        try:
            forced = msgspec.structs.replace(free, constraint=Choice(message.choices))
            dialect.constrain(Choice(message.choices), is_chat)
        except GrammarError:
            told = await self._call(dialect, ask, None)
            judge = choosing.written
        else:
            told = await self._call(dialect, replace(ask, message=forced), None)
            judge = choosing.enforced
        finished = told.finished
        return judge(message, finished.outputs[0].text, finished.usage, dialect.title)

    async def _echoed(self, dialect: Dialect, choose: Choose) -> m.Scored:
        message = choose.message
        start = plain_text(choose.pieces, dialect.title)
        if not start:
            raise ProgramError(
                "there is no text before the choices to judge them by",
                place="choices",
                hint="Append some text first",
            )
        if not all(message.choices):
            raise ProgramError(
                f"{dialect.title} cannot judge an empty choice: it has no tokens", place="choices"
            )
        prompts = [start + choice for choice in message.choices]
        body: dict[str, Any] = {
            "model": self._options.model,
            "prompt": prompts,
            "max_tokens": 0,
            "temperature": 0.0,
            "echo": True,
            "logprobs": 1,
        }
        if choose.namespace and dialect.namespace is not None:
            body[dialect.namespace] = choose.namespace
        answer = await self._connection.post("/completions", body)
        told: Any = answer.get("choices")
        if not isinstance(told, list) or len(cast("list[Any]", told)) != len(prompts):
            raise ServiceError(f"{dialect.title} did not answer each of {len(prompts)} prompts")
        in_order = sorted(cast("list[dict[str, Any]]", told), key=lambda one: one.get("index", 0))
        logprobs = tuple(
            choosing.logprobs_of_echo(prompt, choice, one, dialect.title)
            for prompt, choice, one in zip(prompts, message.choices, in_order, strict=True)
        )
        token_ids = ((),) * len(prompts)
        return m.Scored(message.request, token_ids, logprobs, usage_of(answer))

    # ------------------------------------------------------------------------------------------ the server

    def speculates(self, ask: Ask) -> bool:
        """A chat may write ahead only from the beginning of a message: else it could not begin at all."""
        dialect = self._dialect
        if dialect is None or not self._is_chat(dialect, ask):
            return True
        return not conversation(ask.pieces, dialect.title).prefix or dialect.chat_prefix is not None

    async def _known_dialect(self) -> Dialect:
        async with self._looking:
            if self._dialect is None:
                self._dialect = await self._look()
                self._connection.server = self._dialect.title
            return self._dialect

    async def _look(self) -> Dialect:
        """The dialect of the server, by its list of models; OpenAI's own if it keeps none."""
        try:
            answer = await self._connection.get("/models")
        except ConfigError as error:
            if error.place == "api_key":
                raise
            return dialect_of("openai")
        models = cast("list[dict[str, Any]]", answer.get("data") or [])
        named = [one for one in models if one.get("id") == self._options.model]
        about = (named or models or [{}])[0]
        length: Any = about.get("max_model_len")
        if isinstance(length, int) and length > 0:
            self._context_length = length
        return dialect_of_owner(str(about.get("owned_by", "")))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()


def _some(talk: Conversation, server: str) -> list[dict[str, Any]]:
    if not talk.messages:
        raise ProgramError(
            f"there is no message for {server} to answer",
            place="role",
            hint='Begin with user("...")',
        )
    return talk.messages
