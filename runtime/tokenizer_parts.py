"""What a tokenizer consists of once it was read from a file, whatever the file's format.

Owns the hand-over between the readers (`tokenizer_gguf`, `tokenizer_hf`) and `tokenizer`, and the byte alphabet of byte-level BPE.
Knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import tokenizers

# Turn and text ends that chat models sample, beside the declared EOS: whichever of these spellings is special stops a generation.
END_SPELLINGS = (
    "<|im_end|> <|endoftext|> <|eot_id|> <|eom_id|> <|end_of_text|> <|end|> <|eot|> <end_of_turn> <|endofturn|>"
    " <｜end▁of▁sentence｜> </s> <EOT> <eos>"
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a prompt: plain text, or (special) the exact spelling of one special token."""

    text: str
    special: bool = False


@dataclass(frozen=True, slots=True)
class TokenizerParts:
    """The facts of one tokenizer.

    `backend` makes what encodes plain text (`add_special_tokens=False`) and never matches a special token's spelling (the engine may never
    need it; ModelError when vocabulary and merges do not fit); `pipeline` is what decides its
    cuts, as in a tokenizer.json ("normalizer", "added_tokens", "pre_tokenizer"). `token_bytes[i]` is what token i spells, None for special
    and unused ids. `prefix_unless`: a prompt is encoded as if a space stood before it,
    unless it starts with one of these (an empty tuple: always; None: never).
    """

    backend: Callable[[], tokenizers.Tokenizer]
    pipeline: Mapping[str, Any]
    token_bytes: list[bytes | None]
    special_tokens: Mapping[str, int]  # spelling -> id
    spellable: (
        frozenset[int] | None
    )  # bytes that some token spells alone; None: text is not cut into bytes, see `characters`
    characters: (
        frozenset[str] | None
    )  # characters with a token of their own, where unknown ones have no bytes to fall back to
    prefix_unless: tuple[str, ...] | None
    bos_token_id: int | None
    eos_token_ids: tuple[int, ...]
    add_bos: bool
    chat_template: str | None
    template_variables: Mapping[str, str]  # bos_token, eos_token ... as spelled


def byte_alphabet() -> dict[str, int]:
    """The 256 characters that byte-level BPE writes bytes with (GPT-2's table): printable bytes as themselves, others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(256 + index): byte for index, byte in enumerate(others)
    }


def end_token_ids(special_tokens: Mapping[str, int], declared: tuple[int, ...]) -> tuple[int, ...]:
    """All ids that end a generation: the declared ones first, then end-of-turn tokens known by their spelling."""
    known = (special_tokens[text] for text in END_SPELLINGS.split() if text in special_tokens)
    return tuple(dict.fromkeys((*declared, *known)))
