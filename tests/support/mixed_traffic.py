"""The mixture of requests that a day brings: chats, completions, schemas, patterns, tools, and all that must be refused.

`Traffic(seed).next_case()` gives one at a time, the same row for the same seed; `Case.judge(reply)` says how it ended, or what is wrong
with it. Some schemas come again, others are new each time, so that caches both hit and overflow.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jsonschema
from http_answers import Answer, read_answer
from http_wire import STAY, Ending, Leave, Leaving, Reply

CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"
LEAVING_SHARE = 0.3
ROLES = ("a pirate", "a librarian", "a gardener", "an astronaut")
THINGS = ("the sea", "a lamp", "old books", "tomatoes", "the moon", "a clock", "rain", "bread")
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather of a city",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "maxLength": 10},
                    "days": {"type": "integer", "minimum": 1, "maximum": 9},
                },
                "required": ["city", "days"],
                "additionalProperties": False,
            },
        },
    },
    {"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}},
]

Check = Callable[[Answer], None]


@dataclass(frozen=True)
class Case:
    """One request, and what its answer has to be: a status of refusal, or an answer that passes `check`."""

    kind: str
    path: str
    body: bytes
    check: Check = lambda answer: None
    refusal: int = 0
    may_refuse: bool = (
        False  # as a user's mistake: it depends on what the grammar compiler can do in time
    )
    is_generation: bool = True
    leaving: Leaving = STAY

    def judge(self, reply: Reply, *, may_die: bool) -> str:
        """The outcome in a word. AssertionError when this must not happen; `may_die`: an engine's death is a reason."""
        if self.leaving.when is not Leave.NEVER and reply.ending in (Ending.LEFT, Ending.TORN):
            return "left"
        assert reply.ending is Ending.WHOLE, f"the exchange ended {reply.ending.value}"
        if self.refusal:
            assert reply.status == self.refusal, f"status {reply.status}: {reply.body[:300]!r}"
            assert read_answer(reply).error
            return "refused"
        if not self.is_generation:
            assert reply.status == 200, f"status {reply.status}: {reply.body[:300]!r}"
            return "answered"
        answer = read_answer(reply)
        if answer.error is not None:
            if self.may_refuse and reply.status == 400:
                return "refused"
            if "wall clock" in answer.error["message"]:  # the compiler got no processor in time
                assert reply.status == 503
                return "busy"
            is_death = answer.error["code"] == "engine_died"
            assert is_death, f"status {reply.status}: {answer.error}"
            assert may_die, "the engine's death is the answer though it lived"
            return "engine died"
        self.check(answer)
        return "answered"


class Traffic:
    """An endless row of cases."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._number = 0
        self._makers: list[tuple[int, Callable[[], Case]]] = [
            (12, self._chat), (6, self._completion), (3, self._prompts), (10, self._schema), (6, self._regex),
            (5, self._choice), (8, self._tools), (4, self._long), (3, self._sampled), (2, self._tokenize),
            (3, self._bad_schema), (2, self._bad_pattern), (1, self._hard_pattern), (2, self._bad_body), (2, self._bad_field),
            (1, self._unknown_model), (3, self._huge), (1, self._too_large),
        ]  # fmt: skip

    def next_case(self) -> Case:
        """One more."""
        self._number += 1
        weights, makers = zip(*self._makers, strict=True)
        case = self._random.choices(makers, weights)[0]()
        return replace(case, leaving=self._leaving())

    def _leaving(self) -> Leaving:
        draw = self._random
        if draw.random() >= LEAVING_SHARE:
            return STAY
        when = draw.choice((Leave.IN_BODY, Leave.AT_ONCE, Leave.WAITING, Leave.READING))
        return Leaving(when, draw.expovariate(0.5), draw.random() < 0.5)

    # ------------------------------------------------------------------------------------------ bodies

    def _ask(self, **fields: Any) -> dict[str, Any]:
        """A chat with a shared beginning; sometimes it has a history."""
        draw = self._random
        messages = [
            {
                "role": "system",
                "content": f"You are {draw.choice(ROLES)}. Be brief, kind and clear.",
            }
        ]
        for _ in range(draw.choice((0, 0, 1, 2))):
            messages += [
                {"role": "user", "content": f"Tell me about {draw.choice(THINGS)}."},
                {"role": "assistant", "content": "Gladly. It is one of my favourite things."},
            ]
        messages.append({"role": "user", "content": f"What do you think of {draw.choice(THINGS)}?"})
        return {
            "messages": messages,
            "max_tokens": draw.randint(4, 40),
            "stream": draw.random() < 0.6,
            "stream_options": {"include_usage": True},
            **fields,
        }

    def _case(self, kind: str, body: dict[str, Any], check: Check, path: str = CHAT) -> Case:
        def whole(answer: Answer) -> None:
            num_wanted = body.get("n", 1) * (len(body["prompt"]) if "prompts" in kind else 1)
            assert len(answer.choices) == num_wanted, f"{len(answer.choices)} choices"
            assert answer.usage["total_tokens"] > 0
            check(answer)

        if not body["stream"]:
            body = {name: value for name, value in body.items() if name != "stream_options"}
        return Case(kind, path, json.dumps(body).encode(), whole)

    def _refused(self, kind: str, status: int, body: dict[str, Any] | bytes) -> Case:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return Case(kind, CHAT, data, refusal=status)

    def _chat(self) -> Case:
        return self._case("chat", self._ask(), lambda answer: None)

    def _completion(self) -> Case:
        draw = self._random
        num = draw.choice((1, 2, 3))
        body = {
            "prompt": f"Once upon a time, {draw.choice(THINGS)}",
            "n": num,
            "logprobs": 2,
            "max_tokens": draw.randint(4, 24),
            "stream": draw.random() < 0.5,
            "stream_options": {"include_usage": True},
        }

        def check(answer: Answer) -> None:
            assert all(choice.num_logprobs for choice in answer.choices.values())

        return self._case("completion", body, check, TEXT)

    def _prompts(self) -> Case:
        draw = self._random
        prompts = [f"A word about {thing}:" for thing in draw.sample(THINGS, 3)]
        body = {
            "prompt": prompts, "max_tokens": draw.randint(2, 12), "stream": draw.random() < 0.5,
            "stream_options": {"include_usage": True},
        }  # fmt: skip
        return self._case("prompts", body, lambda answer: None, TEXT)

    def _schema(self) -> Case:
        draw = self._random
        key = draw.choice(("mood", f"key{self._number}"))  # known to the caches, or new
        schema = {
            "type": "object",
            "properties": {
                key: {"enum": ["good", "bad", "so-so"]},
                "score": {"type": "integer", "minimum": 0, "maximum": 10},
                "why": {"type": "string", "maxLength": 12},
            },
            "required": [key, "score", "why"],
            "additionalProperties": False,
        }

        def check(answer: Answer) -> None:
            for choice in answer.choices.values():
                if choice.finish_reason == "stop":
                    jsonschema.validate(json.loads(choice.text), schema)

        wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        return self._case("schema", self._ask(response_format=wanted, max_tokens=48), check)

    def _regex(self) -> Case:
        pattern = self._random.choice(
            (r"[a-z]{3,8}", r"\d{4}-\d{2}-\d{2}", rf"(yes|no), because of {self._number}")
        )

        def check(answer: Answer) -> None:
            for choice in answer.choices.values():
                if choice.finish_reason == "stop":
                    assert re.fullmatch(pattern, choice.text), f"{choice.text!r} is not {pattern}"

        return self._case("regex", self._ask(regex=pattern, max_tokens=24), check)

    def _choice(self) -> Case:
        options = ["yes", "no", "perhaps", "the yesterday of tomorrow"]
        num = self._random.choice((1, 2))

        def check(answer: Answer) -> None:
            assert all(choice.text in options for choice in answer.choices.values())

        return self._case("choice", self._ask(choices=options, n=num, max_tokens=16), check)

    def _tools(self) -> Case:
        named = {"type": "function", "function": {"name": "get_weather"}}
        wanted = self._random.choice(("auto", "required", named))

        def check(answer: Answer) -> None:
            (choice,) = answer.choices.values()
            assert choice.calls or wanted == "auto" or choice.finish_reason == "length"
            for call in choice.calls.values():
                if choice.finish_reason != "length" and call["name"] == "get_weather":
                    schema = TOOLS[0]["function"]["parameters"]
                    jsonschema.validate(json.loads(call["arguments"]), schema)

        return self._case("tools", self._ask(tools=TOOLS, tool_choice=wanted, max_tokens=56), check)

    def _long(self) -> Case:
        words = " ".join(self._random.choices(THINGS, k=self._random.randint(100, 400)))
        body = self._ask(messages=[{"role": "user", "content": f"Count: {words}"}], max_tokens=8)
        return self._case("long", body, lambda answer: None)

    def _sampled(self) -> Case:
        body = self._ask(
            temperature=1.3, top_k=50, top_p=0.9, min_p=0.01, frequency_penalty=0.5, repetition_penalty=1.1,
            logit_bias={"100": 2.5}, seed=self._number, stop=["moon", "\n\n"], logprobs=True, top_logprobs=3,
        )  # fmt: skip
        return self._case("sampled", body, lambda answer: None)

    def _tokenize(self) -> Case:
        body = {"prompt": "some words " * self._random.randint(1, 200)}
        return Case("tokenize", "/tokenize", json.dumps(body).encode(), is_generation=False)

    # ------------------------------------------------------------------------------------------ to be refused

    def _bad_schema(self) -> Case:
        schema = self._random.choice(
            (
                {"type": "object", "properties": {f"a{self._number}": {"pattern": "[unclosed"}}},
                {"type": "nothing known"},
                {"$ref": "#/nowhere"},
                {"minLength": "three"},
            )
        )
        wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        return self._refused("bad schema", 400, self._ask(response_format=wanted))

    def _bad_pattern(self) -> Case:
        return self._refused("bad pattern", 400, self._ask(regex=f"({self._number}"))

    def _hard_pattern(self) -> Case:
        body = self._ask(regex=f"(({self._number}|a|b){{1,900}}x){{1,900}}", max_tokens=8)
        return replace(self._case("hard pattern", body, lambda answer: None), may_refuse=True)

    def _bad_body(self) -> Case:
        body = json.dumps(self._ask()).encode()
        return self._refused("bad body", 400, body[: self._random.randrange(len(body))])

    def _bad_field(self) -> Case:
        name, value = self._random.choice(
            (("temperature", "hot"), ("n", 0), ("top_p", 7), ("max_tokens", -1), ("messages", []))
        )
        return self._refused("bad field", 400, self._ask(**{name: value}))

    def _unknown_model(self) -> Case:
        return self._refused("unknown model", 404, self._ask(model="gpt-17"))

    def _huge(self) -> Case:
        content = "many words " * self._random.randint(2_000, 500_000)
        body = self._ask(messages=[{"role": "user", "content": content}])
        return self._refused("huge prompt", 400, body)

    def _too_large(self) -> Case:
        return self._refused("too large", 413, b"[" + b" " * (9 << 20))
