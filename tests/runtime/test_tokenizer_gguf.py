from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from text_samples import SAMPLES, odd_texts
from tiny_vocabularies import (
    SPECIALS,
    gguf_metadata,
    sentencepiece_metadata,
    train_byte_level,
    write_gguf,
)
from transformers import AutoTokenizer

from radixlm.errors import ModelError, PromptError
from radixlm.runtime.model_files import ModelFiles
from radixlm.runtime.tokenizer import Piece, Tokenizer, load_tokenizer
from radixlm.runtime.tokenizer_gguf import pre_tokenizer_of, read_gguf_tokenizer

quick = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def without_specials(text: str) -> str:
    for spelling in (*SPECIALS, "<s>", "</s>", "<unk>"):
        text = text.replace(spelling, "")
    return text


def oracle_of(path: Path) -> Any:
    return AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)


def both(path: Path) -> tuple[Tokenizer, Any]:
    return load_tokenizer(ModelFiles("tiny", "gguf", path)), oracle_of(path)


def reading(**changes: Any) -> Tokenizer:
    metadata = gguf_metadata(train_byte_level(), "smollm") | changes
    return Tokenizer(
        read_gguf_tokenizer({key: value for key, value in metadata.items() if value is not None})
    )


@pytest.fixture(scope="module", params=["smollm", "qwen2", "tekken", "gpt-4o", "llama3"])
def byte_level(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Tokenizer, Any]:
    metadata = gguf_metadata(train_byte_level(pre_tokenizer_of(request.param)), request.param)
    return both(write_gguf(tmp_path_factory.mktemp(request.param) / "tiny.gguf", metadata))


@pytest.fixture(scope="module")
def sentencepiece(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, Any]:
    return both(
        write_gguf(tmp_path_factory.mktemp("sentencepiece") / "tiny.gguf", sentencepiece_metadata())
    )


@pytest.fixture(scope="module")
def gappy() -> Tokenizer:
    """A vocabulary without the bytes 0x04, 0x13 and 0xF1."""
    letters = ("\u0104", "\u0113", "ñ")
    return Tokenizer(
        read_gguf_tokenizer(gguf_metadata(train_byte_level(), "smollm", without=letters))
    )


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_get_the_ids_that_transformers_gives(
    byte_level: tuple[Tokenizer, Any], name: str
) -> None:
    ours, theirs = byte_level
    assert (
        ours.encode(SAMPLES[name]).ids == theirs(SAMPLES[name], add_special_tokens=False).input_ids
    )


@quick
@given(odd_texts)
def test_any_text_gets_the_ids_that_transformers_gives(
    byte_level: tuple[Tokenizer, Any], text: str
) -> None:
    ours, theirs = byte_level
    text = without_specials(text)
    assert ours.encode(text).ids == theirs(text, add_special_tokens=False).input_ids


@quick
@given(odd_texts)
def test_sentencepiece_ids_are_those_of_transformers(
    sentencepiece: tuple[Tokenizer, Any], text: str
) -> None:
    ours, theirs = sentencepiece
    text = without_specials(text)
    encoded = ours.encode(text)
    assert encoded.ids == theirs(text, add_special_tokens=False).input_ids
    assert ours.decode(encoded.ids).removeprefix(" ") == text.removeprefix(" ")
    assert ours.decode(ours.encode(text, continued=True).ids) == text


def test_sentencepiece_merges_are_recovered_in_the_order_of_transformers(
    sentencepiece: tuple[Tokenizer, Any],
) -> None:
    _, theirs = sentencepiece
    ours = read_gguf_tokenizer(sentencepiece_metadata()).backend()
    merges = [
        json.loads(backend.to_str())["model"]["merges"]
        for backend in (ours, theirs.backend_tokenizer)
    ]
    assert merges[0] == merges[1]


def test_sentencepiece_merges_words_and_adds_a_space_only_before_a_prompt(
    sentencepiece: tuple[Tokenizer, Any],
) -> None:
    ours, _ = sentencepiece
    assert ours.decode(ours.encode("the").ids) == " the"
    assert len(ours.encode("the").ids) == 1
    pieces = [Piece("<s>", special=True), Piece("the")]
    assert ours.encode_pieces(pieces).ids == [1, *ours.encode("the", continued=True).ids]
    assert ours.safe_boundary("the other") == 0
    assert (ours.add_bos, ours.bos_token_id, ours.eos_token_ids) == (True, 1, (2,))


@quick
@given(odd_texts, odd_texts)
def test_a_text_can_be_continued_from_its_boundary(
    byte_level: tuple[Tokenizer, Any], text: str, more: str
) -> None:
    ours, _ = byte_level
    at = ours.safe_boundary(text)
    assert (
        ours.encode(text[:at]).ids + ours.encode(text[at:] + more).ids
        == ours.encode(text + more).ids
    )


@quick
@given(odd_texts)
def test_no_character_is_lost_in_silence(gappy: Tokenizer, text: str) -> None:
    encoded = gappy.encode(text)
    expected = "".join(
        "\ufffd" if character in encoded.replaced else character for character in text
    )
    assert gappy.decode(encoded.ids) == expected
    assert {"\x04", "\x13", "\U00040000"} & set(text) <= set(encoded.replaced)


def test_unspellable_characters_are_reported_once_and_in_order(gappy: Tokenizer) -> None:
    encoded = gappy.encode("\U00040001a\x13\x04\x13\ud800")
    assert encoded.replaced == ("\U00040001", "\x13", "\x04", "\\ud800")
    assert gappy.decode(encoded.ids) == "\ufffda\ufffd\ufffd\ufffd\ufffd"


@pytest.mark.parametrize(
    ("text", "place"),
    [("\x04", "1:1"), ("ab\x13", "1:3"), ("a\n\nb\x13\x04", "3:2"), ("é\n中\ud800", "2:2")],
)
def test_strict_encoding_refuses_them_with_line_and_column(
    gappy: Tokenizer, text: str, place: str
) -> None:
    with pytest.raises(PromptError) as refused:
        gappy.encode(text, strict=True)
    assert refused.value.place == place
    with pytest.raises(PromptError):
        gappy.encode_pieces(
            [Piece("fine"), Piece("<|im_end|>", special=True), Piece(text)], strict=True
        )


def test_without_any_replacement_character_such_text_is_refused() -> None:
    missing = ("\u0104", "?", "½")  # the byte 0x04, "?" and a byte of U+FFFD
    tokenizer = Tokenizer(
        read_gguf_tokenizer(gguf_metadata(train_byte_level(), "smollm", without=missing))
    )
    with pytest.raises(PromptError, match=r"U\+0004"):
        tokenizer.encode("a\x04")


@quick
@given(odd_texts)
def test_plain_text_never_yields_special_tokens(
    byte_level: tuple[Tokenizer, Any], text: str
) -> None:
    ours, _ = byte_level
    ids = ours.encode(text + "<|im_start|>" + text).ids
    assert ours.special_token_ids.isdisjoint(ids)
    assert ours.decode(ids) == text + "<|im_start|>" + text


def test_pieces_give_special_tokens_where_they_say_so_and_join_plain_neighbours() -> None:
    tokenizer = reading()
    pieces = [
        Piece("<|im_start|>", special=True),
        Piece("t"),
        Piece("heory"),
        Piece(""),
        Piece("<|im_end|>", special=True),
    ]
    assert tokenizer.encode_pieces(pieces).ids == [1, *tokenizer.encode("theory").ids, 2]
    assert (
        tokenizer.encode("theory").ids != tokenizer.encode("t").ids + tokenizer.encode("heory").ids
    )
    with pytest.raises(PromptError, match="<\\|no\\|>"):
        tokenizer.encode_pieces([Piece("<|no|>", special=True)])


@quick
@given(odd_texts)
def test_forced_bytes_are_spelled_exactly(byte_level: tuple[Tokenizer, Any], text: str) -> None:
    ours, _ = byte_level
    data = text.encode()
    assert ours.encode_forced(data) == ours.encode(text).ids
    for cut in range(min(len(data), 5)):  # a cut inside a character has no text of its own
        assert (
            b"".join(ours.token_bytes[i] or b"" for i in ours.encode_forced(data[cut:]))
            == data[cut:]
        )


def test_forced_bytes_that_nothing_spells_are_refused(gappy: Tokenizer) -> None:
    with pytest.raises(PromptError, match="0x04"):
        gappy.encode_forced(b"a\x04")


def test_every_byte_and_no_special_token_is_spelled() -> None:
    tokenizer = reading()
    assert {bytes([byte]) for byte in range(256)} <= set(tokenizer.token_bytes)
    assert [tokenizer.token_bytes[i] for i in sorted(tokenizer.special_token_ids)] == [None] * 3
    assert tokenizer.eos_token_ids == (2, 0)


def test_rows_of_the_embedding_beyond_the_vocabulary_spell_nothing() -> None:
    metadata = gguf_metadata(train_byte_level(), "smollm")
    num_tokens = len(metadata["tokenizer.ggml.tokens"])
    tokenizer = Tokenizer(read_gguf_tokenizer(metadata, num_tokens + 13))
    assert tokenizer.vocab_size == num_tokens + 13
    assert tokenizer.token_bytes[num_tokens:] == [None] * 13


def test_user_defined_tokens_are_found_in_plain_text() -> None:
    metadata = gguf_metadata(train_byte_level(), "smollm")
    tokens = [*metadata["tokenizer.ggml.tokens"], "<think>"]
    types = [*metadata["tokenizer.ggml.token_type"], 4]
    tokenizer = reading(**{"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types})
    ids = tokenizer.encode("a <think>b").ids
    assert len(tokens) - 1 in ids
    assert tokenizer.decode(ids) == "a <think>b"
    text = "so <thi"
    at = tokenizer.safe_boundary(text)
    assert (
        tokenizer.encode(text[:at]).ids + tokenizer.encode(text[at:] + "nk>").ids
        == tokenizer.encode(text + "nk>").ids
    )


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"tokenizer.ggml.model": "bert"}, "tokenizer.ggml.model"),
        ({"tokenizer.ggml.model": None}, "tokenizer.ggml.model"),
        ({"tokenizer.ggml.pre": "poro-chat"}, "tokenizer.ggml.pre"),
        ({"tokenizer.ggml.tokens": None}, "tokenizer.ggml.tokens"),
        ({"tokenizer.ggml.tokens": []}, "tokenizer.ggml.token_type"),
        ({"tokenizer.ggml.tokens": [1, 2]}, "tokenizer.ggml.tokens"),
        ({"tokenizer.ggml.token_type": [1]}, "tokenizer.ggml.token_type"),
        ({"tokenizer.ggml.merges": ["a"]}, "tokenizer.ggml.merges"),
        ({"tokenizer.ggml.merges": ["a  b"]}, "tokenizer.ggml.merges"),
        ({"tokenizer.ggml.merges": ["nosuch token"]}, "tokenizer.ggml.merges"),
        ({"tokenizer.ggml.eos_token_id": 10**6}, "tokenizer.ggml.eos_token_id"),
        ({"tokenizer.ggml.bos_token_id": "x"}, "tokenizer.ggml.bos_token_id"),
        ({"tokenizer.chat_template": 5}, "tokenizer.chat_template"),
    ],
)
def test_wrong_metadata_is_refused_by_key(changes: dict[str, Any], place: str) -> None:
    with pytest.raises(ModelError) as refused:
        reading(**changes).warm_up()
    assert refused.value.place == place


def test_an_unknown_pre_tokenizer_is_refused_by_name() -> None:
    with pytest.raises(ModelError, match="'poro-chat'"):
        reading(**{"tokenizer.ggml.pre": "poro-chat"})


def test_a_model_without_a_template_says_so_when_it_is_asked_to_chat() -> None:
    tokenizer = reading(**{"tokenizer.chat_template": None})
    assert not tokenizer.has_chat_template
    with pytest.raises(PromptError, match="no chat template"):
        tokenizer.render_chat([{"role": "user", "content": "x"}])
