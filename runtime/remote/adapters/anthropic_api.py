"""Anthropic's messages API: roles, output_config json_schema, stop sequences, a begun answer where the model allows it.

What the API does not know is done another way (n by several calls; choices, patterns and plain values as the one property of a schema; stop
sequences of white space by cutting; a kept stop sequence by adding it) or refused by name (seed, penalties, log-probabilities, grammars).
Owns the bodies and the reading of the answers. Knows no branches, threads or sockets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, cast

import msgspec

from ....errors import ProgramError, RadixError, SamplingError
from ....grammar.spec import Choice
from ... import messages as m
from .. import choosing
from ..adapter import Ask, Choose, OnDelta, Told, all_of
from ..arguments import fields_of
from ..connection import Connection
from ..failures import error_in_stream
from ..prompts import conversation
from ..readings import Reading
from ..structured import ROOM_TOKENS, Constrained, closed, object_schema

ANTHROPIC_URL = "https://api.anthropic.com"
ANTHROPIC_VERSION = "2023-06-01"
_TITLE = "the Anthropic API"
# later models sample as they like, and begin their answers themselves
_TAKES_TEMPERATURE = re.compile(
    r"claude-(instant|2|3)|claude-(opus|sonnet|haiku)-4(-[0-6]\b|-20|$)"
)
_TAKES_PREFIX = re.compile(r"claude-(instant|2|3)|claude-(opus|sonnet|haiku)-4(-[0-5]\b|-20|$)")
_KNOWN = {"top_p": "top_p", "top_k": "top_k"}


@dataclass(frozen=True, slots=True)
class AnthropicOptions:
    """`allows_prefix`: may the answer be begun for the model; None decides by its name. `caches_prompts`: mark what forks share."""

    model: str
    default_max_tokens: int = 4096
    allows_prefix: bool | None = None
    caches_prompts: bool = False
    context_length: int = 200_000


class AnthropicServer:
    """An Adapter."""

    def __init__(self, connection: Connection, options: AnthropicOptions) -> None:
        self.name = _TITLE
        self._connection = connection
        self._options = options

    @property
    def facts(self) -> m.Ready:
        """The model's name; its context is assumed."""
        return m.Ready(self._options.model, self._options.context_length, 0, ())

    async def generate(self, ask: Ask, on_delta: OnDelta | None) -> Told:
        """Continue by one call for each output."""
        num = ask.message.sampling.n
        calls = [self._call(ask, index, on_delta) for index in range(num)]
        told = await all_of(calls)
        outputs = tuple(output for output, _ in told)
        usage = m.sum_usage(usage for _, usage in told)
        return Told(m.Finished(ask.message.request, outputs, usage))

    async def _call(
        self, ask: Ask, index: int, on_delta: OnDelta | None
    ) -> tuple[m.Output, m.Usage]:
        sampling = msgspec.structs.replace(ask.message.sampling, n=1)
        message = msgspec.structs.replace(ask.message, sampling=sampling)
        constrained = _constrain(message)
        body, swallowed = self._body(replace(ask, message=message), constrained)
        is_told_all = all(stop.strip() for stop in sampling.stop)

        def give(delta: m.Delta) -> None:
            if on_delta is not None:
                on_delta(msgspec.structs.replace(delta, index=index))

        reading = Reading(
            _TITLE,
            message,
            None if on_delta is None else give,
            stops=() if is_told_all else sampling.stop,
            wrapped=constrained.wrapped,
            swallowed=swallowed,
        )
        if on_delta is None:
            answer = await self._connection.post("/v1/messages", body)
            for block in answer.get("content") or ():
                if block.get("type") == "text":
                    reading.push(0, block["text"])
            self._end(reading, sampling, answer)
            usage = cast("dict[str, Any]", answer.get("usage") or {})
        else:
            usage = await self._stream(reading, sampling, body)
        return reading.outputs()[0], _usage(usage)

    async def _stream(
        self, reading: Reading, sampling: m.SamplingParams, body: dict[str, Any]
    ) -> dict[str, Any]:
        """Read the events; the usage they tell."""
        usage: dict[str, Any] = {}
        async for event in self._connection.events("/v1/messages", {**body, "stream": True}):
            data = event.json(_TITLE)
            kind = data.get("type")
            if kind == "message_start":
                usage |= data["message"].get("usage") or {}
            elif kind == "content_block_delta" and data["delta"].get("type") == "text_delta":
                reading.push(0, data["delta"]["text"])
            elif kind == "message_delta":
                told = cast("dict[str, Any]", data.get("usage") or {})
                usage |= {name: value for name, value in told.items() if value is not None}
                self._end(reading, sampling, data["delta"])
            elif kind == "error":
                raise reading.partial(error_in_stream(_TITLE, data.get("error")))
            elif kind == "message_stop":
                break
        return usage

    def _end(self, reading: Reading, sampling: m.SamplingParams, told: dict[str, Any]) -> None:
        stop: Any = told.get("stop_sequence")
        if stop is not None and sampling.include_stop:
            reading.push(0, stop)
        reading.end(0, str(told.get("stop_reason")), stop)

    # ------------------------------------------------------------------------------------------ bodies

    def _body(self, ask: Ask, constrained: Constrained) -> tuple[dict[str, Any], str]:
        """The body, and the white space at the end of a begun answer, which the API does not take."""
        sampling = ask.message.sampling
        fields = fields_of(sampling, _KNOWN, _TITLE)
        max_tokens = sampling.max_tokens
        if max_tokens == 0:
            raise SamplingError(f"{_TITLE} takes max_tokens from 1 on", place="max_tokens")
        messages, system, swallowed = self._messages(ask, bool(constrained.fields))
        body: dict[str, Any] = {
            "model": self._options.model,
            "max_tokens": self._options.default_max_tokens if max_tokens is None else max_tokens,
            "messages": messages,
            **fields,
            **constrained.fields,
        }
        if constrained.wrapped is not None:
            body["max_tokens"] += ROOM_TOKENS
        if system:
            body["system"] = system
        if sampling.temperature != 0 or _TAKES_TEMPERATURE.search(self._options.model):
            body["temperature"] = sampling.temperature
        stops = [stop for stop in sampling.stop if stop.strip()]
        if stops:
            body["stop_sequences"] = stops
        if self._options.caches_prompts and (ask.has_forks or ask.message.hints.num_forks):
            body["cache_control"] = {"type": "ephemeral"}
        return body, swallowed

    def _messages(self, ask: Ask, is_constrained: bool) -> tuple[list[dict[str, Any]], str, str]:
        """The messages, the system prompt, and the white space that was left out at the end."""
        talk = conversation(ask.pieces, _TITLE)
        system: list[str] = []
        messages: list[dict[str, Any]] = []
        for message in talk.messages:
            role, content = message["role"], message["content"]
            if role in ("system", "developer"):
                if messages:
                    raise ProgramError(
                        f"{_TITLE} takes system messages at the beginning only", place="role"
                    )
                system.append(content)
            elif role not in ("user", "assistant"):
                raise ProgramError(f"{_TITLE} knows no role {role!r}", place="role")
            elif content.strip():
                messages.append({"role": role, "content": content})
        if not messages:
            raise ProgramError(
                f"there is no message for {_TITLE} to answer",
                place="role",
                hint='Begin with user("...")',
            )
        prefix = talk.prefix.rstrip()
        if prefix:
            self._check_prefix(prefix, is_constrained)
            messages.append({"role": "assistant", "content": prefix})
        elif messages[-1]["role"] == "assistant":
            raise ProgramError(
                f"there is no message for {_TITLE} to answer after the assistant's",
                place="role",
                hint="Append a user message first",
            )
        return messages, "\n\n".join(system), talk.prefix[len(prefix) :]

    def _check_prefix(self, prefix: str, is_constrained: bool) -> None:
        allowed = self._options.allows_prefix
        if allowed is None:
            allowed = _TAKES_PREFIX.search(self._options.model) is not None
        if allowed and not is_constrained:
            return
        why = "under a constraint" if allowed else f"with {self._options.model}"
        raise ProgramError(
            f"{_TITLE} cannot go on with an assistant's message that has begun {why}: {prefix[-60:]!r}",
            place="role",
            hint="Let gen or select be the first in assistant(...)",
        )

    # ------------------------------------------------------------------------------------------ choices

    async def score(self, choose: Choose) -> m.Scored:
        """By an enforced choice; in an answer that has begun, by what the model writes."""
        message = choose.message
        choosing.refuse_alone(message, bool(choose.pieces), _TITLE)
        sampling = m.SamplingParams(max_tokens=choosing.max_tokens_of(message.choices))
        free = m.Generate(message.request, message.branch, (), sampling, hints=message.hints)
        is_begun = bool(conversation(choose.pieces, _TITLE).prefix.strip())
        forced = msgspec.structs.replace(free, constraint=Choice(message.choices))
        ask = Ask(choose.pieces, free if is_begun else forced, choose.namespace)
        output, usage = await self._call(ask, 0, None)
        judge = choosing.written if is_begun else choosing.enforced
        return judge(message, output.text, usage, _TITLE)

    def speculates(self, ask: Ask) -> bool:
        """An answer may be written ahead from its beginning."""
        try:
            return not conversation(ask.pieces, _TITLE).prefix
        except RadixError:
            return False

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()


def _constrain(message: m.Generate) -> Constrained:
    spec = message.constraint
    if spec is None:
        return Constrained({})
    schema, wrapped = object_schema(spec, _TITLE)
    form = {"type": "json_schema", "schema": closed(schema, _TITLE, all_required=False)}
    return Constrained({"output_config": {"format": form}}, wrapped)


def _usage(told: dict[str, Any]) -> m.Usage:
    """Cached and newly cached prompt tokens are counted apart there."""
    cached = told.get("cache_read_input_tokens") or 0
    written = told.get("cache_creation_input_tokens") or 0
    fresh = told.get("input_tokens") or 0
    return m.Usage(fresh + cached + written, cached, told.get("output_tokens") or 0)
