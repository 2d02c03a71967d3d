"""Messages survive the codec unchanged, and sampling arguments name the first value out of range."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from radixlm.errors import GrammarError, RadixError, SamplingError
from radixlm.grammar.spec import Choice, JsonSchema, Regex, spec_key
from radixlm.runtime import messages as m

CLIENT_MESSAGES = [
    m.Hello("c1", pid=4),
    m.OpenBranch("b", namespace="tenant"),
    m.Append("b", (m.Text("hi"), m.Ids((1, 2)), m.RoleBegin("user"), m.RoleEnd("user"))),
    m.Generate("r", "b", sampling=m.SamplingParams(temperature=0.5, logit_bias={3: -1.0}), constraint=Regex("a+")),
    m.Generate("r", segments=(m.Chat(({"role": "user", "content": [{"type": "text", "text": "x"}]},)),)),
    m.Score("r", "b", ("yes", "no")),
    m.Fork("b", ("b.0", "b.1")),
    m.CloseBranch("b"),
    m.Abort("r"),
    m.StatsRequest("r"),
    m.FlushCache("r"),
    m.Tokenize("r", (m.Text("x"),)),
    m.VocabularyRequest("r"),
]  # fmt: skip


@pytest.mark.parametrize("message", CLIENT_MESSAGES, ids=lambda message: type(message).__name__)
def test_a_client_message_survives_the_codec(message: msgspec.Struct) -> None:
    assert m.client_decoder.decode(m.encode(message)) == message


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", b"\x80", b"\x81\xa4type\xa3foo", b"\x93\x01\x02\x03"]
)
def test_broken_bytes_are_a_decode_error_never_an_object(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        m.client_decoder.decode(data)


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": math.nan}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": None}, "temperature"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.01}, "top_p"),
        ({"top_k": -1}, "top_k"),
        ({"top_k": 1.5}, "top_k"),
        ({"n": 0}, "n"),
        ({"n": True}, "n"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": 2, "min_tokens": 3}, "min_tokens"),
        ({"stop": ("",)}, "stop"),
        ({"stop": "END"}, "stop"),
        ({"stop": ("x",) * 65}, "stop"),
        ({"stop": ("x" * 16385,)}, "stop"),
        ({"stop_token_ids": tuple(range(1025))}, "stop_token_ids"),
        ({"logit_bias": {-1: 0.0}}, "logit_bias"),
        ({"logit_bias": {1: math.nan}}, "logit_bias"),
    ],
)
def test_a_wrong_sampling_argument_is_named(arguments: dict[str, Any], place: str) -> None:
    with pytest.raises(SamplingError) as caught:
        m.SamplingParams(**arguments).check()
    assert caught.value.place == place


def test_default_sampling_arguments_are_right() -> None:
    m.SamplingParams().check()


def test_an_error_crosses_the_wire_with_its_class_place_and_hint() -> None:
    error = GrammarError(
        "keyword not enforced", place="/properties/a", hint="drop it", keyword="not"
    )
    back = m.WireError.of(error).to_exception()
    assert isinstance(back, GrammarError)
    assert (back.message, back.place, back.hint) == (error.message, error.place, error.hint)


def test_an_unknown_error_name_is_a_service_error() -> None:
    assert isinstance(m.WireError("FromTheFuture", "x").to_exception(), RadixError)
    assert isinstance(m.WireError("sys", "x").to_exception(), RadixError)


def test_equal_specs_have_equal_keys_and_kinds_never_collide() -> None:
    assert spec_key(Regex("a")) == spec_key(Regex("a"))
    assert (
        len({spec_key(s) for s in (Regex("a"), JsonSchema("a"), Choice(("a",)), Regex("b"))}) == 4
    )


def test_a_frame_holds_one_message_as_it_is_or_several_in_their_order() -> None:
    deltas: list[m.GatewayMessage] = [m.Delta("a", 0, "x"), m.Delta("b", 0, "y"), m.Accepted("c")]
    assert m.encode_frame(deltas[:1]) == m.encode(deltas[0])
    for several in (deltas[:1], deltas):
        assert m.decode_frame(m.gateway_frame_decoder, m.encode_frame(several)) == several
    with pytest.raises(msgspec.DecodeError):
        m.decode_frame(m.gateway_frame_decoder, m.encode_frame([m.Abort("a"), m.Abort("b")]))
