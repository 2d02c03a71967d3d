"""A body becomes a struct, or an error that names the field; what nobody knows is reported by its path."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from radixlm.runtime.http.refusals import BodyError
from radixlm.runtime.http.request_body import MAX_IGNORED, ignored_headers, parse_body


class Part(msgspec.Struct, tag_field="type", tag="text"):
    text: str


class Message(msgspec.Struct):
    role: str
    content: str | list[Part] | None = None


class Body(msgspec.Struct):
    model: str
    messages: list[Message]
    temperature: float | None = None
    metadata: dict[str, Any] | None = None
    renamed: int | None = msgspec.field(default=None, name="from")


GOOD = b'{"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}'


@pytest.mark.parametrize(
    ("data", "param", "words"),
    [
        (b"", "", "empty"),
        (b"[]", "", "not a JSON object"),
        (b'{"model": ', "", "is no JSON"),
        (b'{\n "model": x}', "", "line 2, column 11"),
        (b'{"model": "\xff"}', "", "is no JSON"),
        (b'{"model": "\\ud800"}', "", "is no JSON"),
        (b'{"temperature": NaN}', "", "is no JSON"),
        (b"[" * 100_000, "", "is no JSON"),
        (b'{"messages": []}', "model", "model: this field is required"),
        (b'{"model": "m", "messages": [{}]}', "messages[0].role", "messages[0].role: this field is required"),
        (b'{"model": 5, "messages": []}', "model", "model: expected `str`, got `int`"),
        (b'{"model": "m", "messages": [], "temperature": "hot"}', "temperature", "got `str`"),
        (b'{"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": 1}]}]}',
         "messages[0].content[0].text", "expected `str`, got `int`"),
        (b'{"model": "m", "messages": [{"role": "user", "content": [{"type": "image"}]}]}',
         "messages[0].content[0].type", "'image'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(data: bytes, param: str, words: str) -> None:
    with pytest.raises(BodyError) as caught:
        parse_body(data, Body)
    assert caught.value.place == param
    assert words in caught.value.message


def test_unknown_fields_are_found_at_every_depth_and_known_ones_are_not() -> None:
    data = (
        b'{"model": "m", "zap": 1, "from": 3, "metadata": {"free": 1}, "temperature": null, "messages":'
        b' [{"role": "user", "content": [{"type": "text", "text": "x", "cache": 1}], "mood": 2}]}'
    )
    body, ignored = parse_body(data, Body)
    assert body.renamed == 3
    assert ignored == ("zap", "messages[0].content[0].cache", "messages[0].mood")
    assert parse_body(GOOD, Body)[1] == ()


def test_the_report_of_ignored_fields_is_bounded_and_cannot_smuggle_headers() -> None:
    fields = {f"k{i}": 1 for i in range(1000)} | {"model": "m", "messages": []}
    assert len(parse_body(msgspec.json.encode(fields), Body)[1]) == MAX_IGNORED
    value = ignored_headers(("a\r\nset-cookie: x", "é", "n" * 1000))["x-radixlm-ignored-fields"]
    assert "\r" not in value
    assert "\n" not in value
    assert value.isascii()
    assert len(value) < 200
    assert ignored_headers(()) == {}


def test_keys_given_twice_and_numbers_at_the_border_do_no_harm() -> None:
    body, _ = parse_body(
        b'{"model": "a", "model": "b", "messages": [], "temperature": 1e308}', Body
    )
    assert body.model == "b"
    with pytest.raises(BodyError):
        parse_body(b'{"model": "a", "messages": [], "temperature": 1e999}', Body)
