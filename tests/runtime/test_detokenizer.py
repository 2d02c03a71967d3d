from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from text_samples import odd_texts

from radixlm.runtime.detokenizer import IncrementalDecoder, decode_tokens, token_ids_to_bytes

BYTE_TOKENS: list[bytes | None] = [
    *(bytes([byte]) for byte in range(256)),
    None,
    "👨‍👩‍👧".encode()[:6],
    "é".encode(),
]


def stream(token_ids: list[int]) -> list[str]:
    decoder = IncrementalDecoder(BYTE_TOKENS)
    return [*(decoder.push([token_id]) for token_id in token_ids), decoder.finish()]


@given(odd_texts)
def test_a_streamed_text_never_shows_a_part_of_a_character(text: str) -> None:
    parts = stream(list(text.encode()))
    assert "".join(parts) == text
    assert all("\ufffd" not in part for part in parts) or "\ufffd" in text


@given(st.lists(st.integers(0, len(BYTE_TOKENS) - 1), max_size=30))
def test_the_parts_of_a_stream_joined_are_the_text_decoded_at_once(token_ids: list[int]) -> None:
    assert "".join(stream(token_ids)) == decode_tokens(BYTE_TOKENS, token_ids)


def test_a_cut_inside_a_character_gives_one_replacement_in_both_modes() -> None:
    for num_bytes in (1, 2, 3):
        ids = list("👍".encode()[:num_bytes])
        assert stream(ids)[:-1] == [""] * num_bytes
        assert "".join(stream(ids)) == decode_tokens(BYTE_TOKENS, ids) == "\ufffd"


def test_special_and_unknown_ids_spell_nothing() -> None:
    assert token_ids_to_bytes(BYTE_TOKENS, [65, 256, 10_000, -1, 66]) == b"AB"


def test_a_finished_decoder_starts_anew() -> None:
    decoder = IncrementalDecoder(BYTE_TOKENS)
    decoder.push([0xF0])
    assert decoder.finish() == "\ufffd"
    assert decoder.push_bytes(b"ok") == "ok"
    assert decoder.finish() == ""
