"""However an output is cut on its way, the chunks joined are the answer that is not streamed: text, calls, log-probabilities, endings."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from scripted_client import TOKEN_BYTES

from radixlm.runtime import messages as m
from radixlm.runtime.detokenizer import IncrementalDecoder
from radixlm.runtime.http.json_answer import encode_json
from radixlm.runtime.http.openai.answers import Head
from radixlm.runtime.http.openai.bodies import ChatBody
from radixlm.runtime.http.openai.chat import ChatPlan, ChatStream, chat_answer, plan_chat
from radixlm.runtime.http.openai.logprobs import NoTokens

TABLE = NoTokens(TOKEN_BYTES, TOKEN_BYTES)
HEAD = Head("chatcmpl-1", 1, "m")
FACTS = m.Ready("m", 4096, 257, (256,))
TOOLS = [{"type": "function", "function": {"name": "f"}}]

CALL = '<tool_call>\n{"name": "f", "arguments": {"a": "<é\\""}}\n</tool_call>'
texts = st.lists(
    st.sampled_from(
        [CALL, CALL[:-20], "<tool_call>", "</tool_call>", "\n", " ", "<", "é", "😀", "a", "text"]
    ),
    max_size=6,
).map("".join)


def plan_of(*, tools: bool, logprobs: bool) -> ChatPlan:
    body = msgspec.convert(
        {
            "messages": [{"role": "user", "content": "Hi"}],
            "stream": True,
            "tools": TOOLS if tools else None,
            "logprobs": logprobs,
            "top_logprobs": 1 if logprobs else None,
        },
        ChatBody,
    )
    return plan_chat(body, FACTS, lambda prefix: prefix, "")


def deltas_of(output: m.Output, cuts: list[int]) -> list[m.Delta]:
    """The output as a gateway would send it, cut after the given numbers of tokens."""
    decoder = IncrementalDecoder(TOKEN_BYTES)
    ids, logprobs = output.token_ids, output.logprobs or ()
    deltas: list[m.Delta] = []
    given_text, start = "", 0
    for end in [*sorted({cut for cut in cuts if cut < len(ids)}), len(ids)]:
        text = (given_text + decoder.push(ids[start:end]))[: len(output.text)][len(given_text) :]
        given_text += text
        deltas.append(m.Delta("r", 0, text, ids[start:end], logprobs[start:end]))
        start = end
    return deltas


@given(
    text=texts,
    cuts=st.lists(st.integers(1, 200), max_size=12),
    tools=st.booleans(),
    logprobs=st.booleans(),
    reason=st.sampled_from(["stop", "length"]),
    hidden=st.sampled_from([b"", b"STOP"]),
)
def test_chunks_joined_are_the_whole_answer(
    text: str, cuts: list[int], tools: bool, logprobs: bool, reason: str, hidden: bytes
) -> None:
    ids = tuple(text.encode() + hidden) + ((256,) if reason == "stop" and not hidden else ())
    known = tuple(m.TokenLogprob(i, -0.25 - i, ((i, -0.25 - i),)) for i in ids)
    stop = "STOP" if hidden and reason == "stop" else None
    if reason == "length":
        ids, known = ids[: len(text.encode())], known[: len(text.encode())]
    output = m.Output(text, ids, reason, stop, known)
    finished = m.Finished("r", (output,), m.Usage(3, 0, len(ids), 0), 1)
    plan = plan_of(tools=tools, logprobs=logprobs)

    whole = msgspec.json.decode(encode_json(chat_answer(plan, HEAD, finished, TABLE)))["choices"][0]
    stream = ChatStream(plan, HEAD, TABLE)
    chunks = [chunk for delta in deltas_of(output, cuts) for chunk in stream.push(delta)]
    chunks += stream.end(finished)
    parts = [msgspec.json.decode(encode_json(chunk))["choices"][0] for chunk in chunks]

    assert without_ids(joined(parts)) == without_ids(whole)


def joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The choice that a client puts together from its chunks."""
    calls: dict[int, Any] = {}
    for part in parts:
        for call in part["delta"].get("tool_calls", []):
            known = calls.setdefault(call["index"], {"function": {"arguments": ""}})
            function = call.pop("function")
            known.update({key: value for key, value in call.items() if key != "index"})
            known["function"]["arguments"] += function.pop("arguments", "")
            known["function"].update(function)
    content = "".join(part["delta"].get("content", "") for part in parts)
    entries = [e for part in parts for e in (part.get("logprobs") or {}).get("content", [])]
    message = {
        "role": parts[0]["delta"]["role"],
        "content": content or (None if calls else ""),
        "refusal": None,
    }
    choice: dict[str, Any] = {
        "index": 0,
        "message": message | ({"tool_calls": [*calls.values()]} if calls else {}),
        "finish_reason": parts[-1]["finish_reason"],
        "logprobs": {"content": entries, "refusal": None} if entries else None,
    }
    return choice | {key: parts[-1][key] for key in ("stop_reason",) if key in parts[-1]}


def without_ids(choice: dict[str, Any]) -> dict[str, Any]:
    """Call ids are fresh in each parser; a choice without tokens may tell an empty list of them or nothing."""
    for call in choice["message"].get("tool_calls", []):
        call.pop("id")
    if choice["logprobs"] is not None and not choice["logprobs"]["content"]:
        choice["logprobs"] = None
    return choice
