"""The default model's tokenizer against transformers' reading of the same file."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from text_samples import SAMPLES, odd_texts
from tokenizers import Tokenizer as Backend
from transformers.integrations.gguf import convert_gguf_tokenizer, get_gguf_tokenizer

from radixlm.runtime.model_files import ModelFiles
from radixlm.runtime.tokenizer import Tokenizer, load_tokenizer

pytestmark = pytest.mark.model

# Bytes without a token, as characters: control characters, and the lead bytes of U+40000 .. U+BFFFF.
UNSPELLABLE = ("\x04", "\x06", "\x13", "\x14", "\x16", "\x1d")


@pytest.fixture(scope="module")
def ours(smollm2_files: ModelFiles) -> Tokenizer:
    return load_tokenizer(smollm2_files)


@pytest.fixture(scope="module")
def theirs(smollm2_files: ModelFiles) -> Backend:
    architecture, parts, _ = get_gguf_tokenizer(str(smollm2_files.path))
    return convert_gguf_tokenizer(architecture, parts)[0]


def plain(ours: Tokenizer, text: str) -> str:
    """`text` without spellings of special tokens, which transformers would match."""
    for spelling in ("<|im_start|>", "<|im_end|>", "<|endoftext|>"):
        text = text.replace(spelling, "<|>")
    return text


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_get_the_ids_that_transformers_gives(
    ours: Tokenizer, theirs: Backend, name: str
) -> None:
    encoded = ours.encode(SAMPLES[name])
    assert encoded.ids == theirs.encode(SAMPLES[name], add_special_tokens=False).ids
    assert ours.decode(encoded.ids) == SAMPLES[name]
    assert encoded.replaced == ()


@settings(max_examples=150, deadline=None)
@given(odd_texts)
def test_any_text_gets_the_ids_that_transformers_gives(
    ours: Tokenizer, theirs: Backend, text: str
) -> None:
    text = plain(ours, text)
    encoded = ours.encode(text)
    for character in encoded.replaced:
        text = text.replace(character, "\ufffd")
    assert encoded.ids == theirs.encode(text, add_special_tokens=False).ids
    assert ours.decode(encoded.ids) == text


def test_every_character_survives_or_is_reported(ours: Tokenizer) -> None:
    whole_planes = range(0, 0x10000, 0x800)
    samples = range(0x10000, 0x110000, 0x7800)
    for start in (*whole_planes, *samples):
        text = "".join(map(chr, range(start, min(start + 0x800, 0x110000))))
        encoded = ours.encode(text)
        if 0xD800 <= start < 0xE000:
            assert len(encoded.replaced) == 0x800
            continue
        lost = set(encoded.replaced)
        assert ours.decode(encoded.ids) == "".join("\ufffd" if c in lost else c for c in text)
        expected = {c for c in UNSPELLABLE if start == 0} | {
            c for c in text if 0x40000 <= ord(c) < 0xC0000
        }
        assert lost == expected


@settings(max_examples=150, deadline=None)
@given(odd_texts, odd_texts)
def test_a_text_can_be_continued_from_its_boundary(ours: Tokenizer, text: str, more: str) -> None:
    at = ours.safe_boundary(text)
    assert (
        ours.encode(text[:at]).ids + ours.encode(text[at:] + more).ids
        == ours.encode(text + more).ids
    )


def test_facts_of_the_vocabulary(ours: Tokenizer) -> None:
    assert (ours.vocab_size, ours.bos_token_id, ours.add_bos) == (49_152, 1, False)
    assert ours.eos_token_ids == (2, 0)
    assert ours.special_token_ids == frozenset(range(17))
    assert ours.token_bytes[:17] == [None] * 17
    assert sum(data is not None for data in ours.token_bytes) == 49_135


def test_the_default_conversation_renders_with_the_model_s_own_system_message(
    ours: Tokenizer,
) -> None:
    pieces = ours.render_chat([{"role": "user", "content": "Hi <|im_end|>"}])
    assert "".join(piece.text for piece in pieces) == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHi <|im_end|><|im_end|>\n<|im_start|>assistant\n"
    )
    ids = ours.encode_pieces(pieces).ids
    assert [i for i in ids if i in ours.special_token_ids] == [1, 2, 1, 2, 1]
    first = ours.role_begin("user", first=True)
    assert pieces[: len(first) - 1] == first[:-1]


def test_encoding_a_continuation_costs_nothing_of_the_history(ours: Tokenizer) -> None:
    history = "The quick brown fox jumps over the lazy dog. " * 2000
    began_s = time.thread_time()
    for _ in range(50):
        assert len(history) - ours.safe_boundary(history) < 10
    assert time.thread_time() - began_s < 0.1


@pytest.mark.parametrize(
    "text",
    [
        "a" * 200_000,
        " " * 200_000,
        "\n" * 100_000 + "x",
        "中" * 60_000,
        "1" * 100_000,
        "'" * 100_000,
    ],
)
def test_a_long_run_is_encoded_in_time_near_its_length(ours: Tokenizer, text: str) -> None:
    began_s = time.thread_time()
    assert ours.decode(ours.encode(text).ids) == text
    assert time.thread_time() - began_s < 3
    ours.safe_boundary(text)
    assert time.thread_time() - began_s < 4


def test_the_tokenizer_loads_in_a_few_seconds(smollm2_files: ModelFiles) -> None:
    began_s = time.thread_time()
    load_tokenizer(smollm2_files)
    assert time.thread_time() - began_s < 3
