"""A small tokenizer whose pieces merge, so that text tokenized in parts differs from text tokenized whole.

A word starts at every space; inside a word the longest known token wins from the left. Byte 7 has no token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from radixlm.errors import PromptError
from radixlm.runtime.detokenizer import IncrementalDecoder, decode_tokens
from radixlm.runtime.tokenizer import Encoded, Piece

EOS, BOS, BEGIN, END = 0, 1, 2, 3
SPECIAL = {"<eos>": EOS, "<bos>": BOS, "<begin>": BEGIN, "<end>": END}
FIRST_BYTE = 4
UNSPELLED = 7
WORDS = [
    b"an",
    b"ana",
    b"ban",
    b" YES",
    b" NO",
    b": Y",
    b"the",
    b" the",
    b"ing",
    b"xyz",
    b"<e",
    b"nd>",
    b'{"',
    b'":',
    "é".encode(),
    b"ab",
    b"abc",
]
TOKEN_BYTES: list[bytes | None] = (
    [None] * 4 + [bytes((b,)) if b != UNSPELLED else None for b in range(256)] + WORDS
)
LONGEST_FIRST = sorted(
    ((data, i) for i, data in enumerate(TOKEN_BYTES) if data), key=lambda pair: -len(pair[0])
)
BY_FIRST_BYTE: dict[int, list[tuple[bytes, int]]] = {}
for _pair in LONGEST_FIRST:
    BY_FIRST_BYTE.setdefault(_pair[0][0], []).append(_pair)


class ToyTokenizer:
    """Satisfies `branches.TokenizerLike` and what the engine process asks."""

    vocab_size = len(TOKEN_BYTES)
    bos_token_id: int | None = BOS
    token_bytes = TOKEN_BYTES
    special_token_ids = frozenset(SPECIAL.values())
    special_spellings: Mapping[int, str] = {index: text for text, index in SPECIAL.items()}

    def __init__(self, *, add_bos: bool = False) -> None:
        self.add_bos = add_bos
        self.eos_token_ids: tuple[int, ...] = (EOS, END)
        self.num_encoded_chars = 0

    def encode(self, text: str, *, strict: bool = False, continued: bool = False) -> Encoded:
        self.num_encoded_chars += len(text)
        replaced = ("\x07",) if "\x07" in text else ()
        if replaced and strict:
            raise PromptError("a character has no token", place="1:1")
        ids: list[int] = []
        for word in text.replace("\x07", "?").replace(" ", "\0 ").split("\0"):
            ids += _longest_match(word.encode())
        return Encoded(ids, replaced)

    def encode_pieces(
        self, pieces: Sequence[Piece], *, strict: bool = False, continued: bool = False
    ) -> Encoded:
        ids: list[int] = []
        replaced: dict[str, None] = {}
        text = ""
        for piece in [*pieces, Piece("", special=True)]:
            if not piece.special:
                text += piece.text
                continue
            encoded = self.encode(text, strict=strict)
            ids += encoded.ids
            replaced.update(dict.fromkeys(encoded.replaced))
            text = ""
            if piece.text:
                ids.append(SPECIAL[piece.text])
        return Encoded(ids, tuple(replaced))

    def render_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] = (),
        add_generation_prompt: bool = True,
    ) -> list[Piece]:
        pieces: list[Piece] = []
        for message in messages:
            if not isinstance(message.get("content"), str):
                raise PromptError("a message has no content", place="messages")
            pieces += [
                *self.role_begin(message["role"]),
                Piece(message["content"]),
                *self.role_end(message["role"]),
            ]
        return pieces + (self.role_begin("assistant") if add_generation_prompt else [])

    def role_begin(self, role: str, *, first: bool = False) -> list[Piece]:
        return [Piece("<begin>", special=True), Piece(f"{role}\n")]

    def role_end(self, role: str) -> list[Piece]:
        return [Piece("<end>", special=True), Piece("\n")]

    def safe_boundary(self, text: str) -> int:
        return max(text.rfind(" "), 0)

    def encode_forced(self, data: bytes) -> list[int]:
        return _longest_match(data)

    def decode(self, token_ids: Sequence[int]) -> str:
        return decode_tokens(self.token_bytes, token_ids)

    def decoder(self) -> IncrementalDecoder:
        return IncrementalDecoder(self.token_bytes)


def _longest_match(data: bytes) -> list[int]:
    ids: list[int] = []
    at = 0
    while at < len(data):
        found, token_id = next(
            pair for pair in BY_FIRST_BYTE[data[at]] if data.startswith(pair[0], at)
        )
        ids.append(token_id)
        at += len(found)
    return ids
