"""Models, tokens and text over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from http_server import served
from toy_tokenizer import EOS, ToyTokenizer

from radixlm.runtime.launch import Runtime


@pytest.fixture(scope="module")
def client(slow_runtime: Runtime) -> Iterator[httpx.Client]:
    with (
        served(slow_runtime, served_name="org/toy") as server,
        httpx.Client(base_url=server.url) as client,
    ):
        yield client


def test_the_served_model_is_listed_and_found_by_its_name(client: httpx.Client) -> None:
    (model,) = client.get("/v1/models").json()["data"]
    assert (model["id"], model["object"], model["max_model_len"]) == ("org/toy", "model", 4096)
    assert client.get("/v1/models/org/toy").json() == model
    unknown = client.get("/v1/models/nope")
    assert unknown.status_code == 404
    assert unknown.json()["error"]["code"] == "model_not_found"


def test_text_becomes_the_ids_of_a_prompt_and_text_again(client: httpx.Client) -> None:
    text = "the banana é <eos>"
    tokens = client.post("/tokenize", json={"prompt": text}).json()
    assert tokens["tokens"] == ToyTokenizer().encode(text).ids
    assert tokens["count"] == len(tokens["tokens"])
    body = {"tokens": [*tokens["tokens"], EOS]}
    assert client.post("/detokenize", json=body).json()["prompt"] == text + "<eos>"
    skipping = {**body, "skip_special_tokens": True}
    assert client.post("/detokenize", json=skipping).json()["prompt"] == text


def test_messages_become_the_ids_of_the_rendered_chat(client: httpx.Client) -> None:
    body = {"messages": [{"role": "user", "content": "hi"}]}
    tokens = client.post("/tokenize", json=body).json()["tokens"]
    text = client.post("/detokenize", json={"tokens": tokens}).json()["prompt"]
    assert text == "<begin>user\nhi<end>\n<begin>assistant\n"


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/tokenize", {}, "prompt"),
        ("/tokenize", {"prompt": "x", "messages": []}, "prompt"),
        ("/tokenize", {"prompt": 1}, "prompt"),
        ("/tokenize", {"prompt": "x", "model": "nope"}, "model"),
        ("/tokenize", {"messages": [{"role": "user"}]}, "messages"),
        ("/detokenize", {}, "tokens"),
        ("/detokenize", {"tokens": [1, -1]}, "tokens[1]"),
        ("/detokenize", {"tokens": [1, 9999]}, "tokens[1]"),
        ("/detokenize", {"tokens": ["a"]}, "tokens[0]"),
        ("/detokenize", {"tokens": [1] * 65537}, "tokens"),
    ],
)
def test_a_wrong_body_is_named(client: httpx.Client, path: str, body: object, param: str) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code in (400, 404)
    assert answer.json()["error"]["param"] == param
