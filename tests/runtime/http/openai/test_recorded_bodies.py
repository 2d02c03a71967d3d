"""Bodies that real clients were seen to send: each gets the status it should, and an answer that OpenAI's types accept.

The data stands beside the checkout, not in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from scripted_client import Script, ScriptedClient
from stream_reading import events_of

from radixlm.grammar.spec import JsonSchema, StructuralTag
from radixlm.runtime import messages as m

BODIES = Path(__file__).resolve().parents[5] / "shared" / "data" / "api" / "client_requests.jsonl"
PATHS = ("/v1/chat/completions", "/v1/completions")

# What cannot be honoured is refused by name.
REFUSED = {
    ("openai", "completions"): "suffix",
}

pytestmark = pytest.mark.data


def rows() -> list[Any]:
    if not BODIES.is_file():
        return []
    found = [json.loads(line) for line in BODIES.read_text().splitlines()]
    return [row for row in found if row["path"] in PATHS and row["method"] == "POST"]


def name_of(row: Any) -> str:
    return f"{row['client']}-{row['case']}-{row['seq']}"


def scripted(asked: m.Generate) -> Script:
    """An output of the kind that was asked for."""
    match asked.constraint:
        case StructuralTag(tags=tags, at_least_one=True):
            return Script(f"{tags[0].begin}{{}}{tags[0].end}")
        case JsonSchema():
            return Script("{}")
        case _:
            return Script("Hello")


def test_the_recorded_bodies_are_there() -> None:
    if not BODIES.is_file():
        pytest.skip(f"{BODIES} is not there")
    assert len(rows()) > 100


@pytest.mark.parametrize("row", rows(), ids=name_of)
def test_a_recorded_body_gets_its_answer(
    row: Any, client: ScriptedClient, over_http: Callable[[Any], httpx2.Response]
) -> None:
    client.answer = scripted
    body = row["body"] | {"model": "m"}
    answer = over_http(lambda http: http.post(row["path"], json=body))
    refused = REFUSED.get((row["client"], row["case"]))
    if refused is not None:
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == refused
        return
    assert answer.status_code == 200, answer.text
    assert "x-radixlm-ignored-fields" not in answer.headers or row["client"] in (
        "openai",
        "guidance",
    )
    if body.get("stream"):
        *chunks, done = events_of(answer.text)
        assert done == "[DONE]"
        for chunk in chunks:
            ChatCompletionChunk.model_validate(chunk)
        wants_usage = (body.get("stream_options") or {}).get("include_usage", False)
        assert (chunks[-1]["choices"] == []) == wants_usage
    else:
        kind = ChatCompletion if "chat" in row["path"] else Completion
        parsed = kind.model_validate(answer.json())
        assert len(parsed.choices) == body.get("n", 1)
        assert parsed.usage is not None
        assert parsed.usage.prompt_tokens_details is not None
        assert parsed.usage.prompt_tokens_details.cached_tokens is not None
        must_call = body.get("tool_choice") not in (None, "auto", "none") and body.get("tools")
        if must_call:
            assert parsed.choices[0].finish_reason == "tool_calls"
