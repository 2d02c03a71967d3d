"""Answers of the completion endpoints, whole or streamed, brought to one form, with every rule of their shape checked.

`read_answer` raises AssertionError for what no client could make sense of: a choice that ends twice or never, text after an end, a
stream without [DONE] or with something behind it, an error of another shape. Knows no sockets.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from http_wire import Reply


@dataclass
class Choice:
    """One output."""

    text: str = ""
    finish_reason: str | None = None
    num_logprobs: int = 0
    calls: dict[int, dict[str, str]] = field(default_factory=dict[int, dict[str, str]])


@dataclass
class Answer:
    """What a request led to: choices and usage, or an error."""

    choices: dict[int, Choice] = field(default_factory=dict[int, Choice])
    usage: dict[str, Any] = field(default_factory=dict[str, Any])
    error: dict[str, Any] | None = None


def read_answer(reply: Reply) -> Answer:
    """The answer in a reply that came to its end."""
    if reply.headers.get("content-type", "").startswith("text/event-stream"):
        assert reply.status == 200, f"a stream with status {reply.status}"
        return _read_stream(reply.body.decode())
    content = reply.json()
    if reply.status != 200:
        return Answer(error=_error(content))
    answer = Answer(usage=content["usage"])
    for choice in content["choices"]:
        assert choice["finish_reason"], "a choice without an end"
        found = answer.choices.setdefault(choice["index"], Choice())
        assert found.finish_reason is None, "a choice comes twice"
        found.finish_reason = choice["finish_reason"]
        _add(found, choice, choice.get("message", choice))
    return answer


def _error(content: Any) -> dict[str, Any]:
    error = content["error"]
    assert set(error) == {"message", "type", "param", "code"}, f"an error of another shape: {error}"
    assert error["message"]
    return error


def _read_stream(text: str) -> Answer:
    assert text.endswith("\n\n"), "the last frame is cut"
    frames = [frame for frame in text.split("\n\n") if frame and not frame.startswith(":")]
    assert all(frame.startswith("data: ") for frame in frames)
    lines = [frame.removeprefix("data: ") for frame in frames]
    assert lines, "a stream without a frame"
    answer = Answer()
    last = lines.pop()
    if last != "[DONE]":
        answer.error = _error(json.loads(last))
    for line in lines:
        chunk = json.loads(line)
        answer.usage = chunk.get("usage") or answer.usage
        for choice in chunk["choices"]:
            found = answer.choices.setdefault(choice["index"], Choice())
            assert found.finish_reason is None, "something follows the end of a choice"
            _add(found, choice, choice.get("delta", choice))
            found.finish_reason = choice.get("finish_reason")
    if answer.error is None:
        assert answer.choices, "a stream without a choice"
        assert all(choice.finish_reason for choice in answer.choices.values()), (
            "a choice never ends"
        )
    return answer


def _add(found: Choice, choice: dict[str, Any], part: dict[str, Any]) -> None:
    found.text += part.get("content") or part.get("text") or ""
    for number, call in enumerate(part.get("tool_calls") or ()):
        whole = found.calls.setdefault(call.get("index", number), {"name": "", "arguments": ""})
        given = call.get("function") or call["custom"]
        whole["name"] += given.get("name") or ""
        whole["arguments"] += given.get("arguments") or given.get("input") or ""
    logprobs = choice.get("logprobs") or {}
    found.num_logprobs += len(logprobs.get("content") or logprobs.get("token_logprobs") or ())
