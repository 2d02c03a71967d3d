"""Text to token ids and back, for one model: plain text, chat messages, forced bytes.

SKELETON: signatures are final, bodies follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .detokenizer import IncrementalDecoder
from .model_files import ModelFiles


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a prompt: plain text, or (special) the exact spelling of one special token."""

    text: str
    special: bool = False


@dataclass(frozen=True, slots=True)
class Encoded:
    """Ids of a text, and the characters that no token spells and that were replaced, each once, in order of appearance."""

    ids: list[int]
    replaced: tuple[str, ...] = ()


class Tokenizer:
    """One model's tokenizer. Immutable; safe to share between threads."""

    vocab_size: int  # columns of the logits; token_bytes has this length
    bos_token_id: int | None
    add_bos: bool  # a prompt starts with bos_token_id (unless its first id is that already)
    eos_token_ids: tuple[int, ...]
    special_token_ids: frozenset[int]
    token_bytes: list[bytes | None]
    has_chat_template: bool
    template_uses_tools: bool

    def encode(self, text: str, *, strict: bool = False) -> Encoded:
        """Ids of plain text; never special tokens. Unspellable characters are replaced and reported; strict: PromptError(place="line:column")."""
        raise NotImplementedError

    def encode_pieces(self, pieces: Sequence[Piece], *, strict: bool = False) -> Encoded:
        """Ids of pieces; neighbouring plain pieces are tokenized as one text."""
        raise NotImplementedError

    def render_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] = (),
        add_generation_prompt: bool = True,
    ) -> list[Piece]:
        """The conversation by the model's template."""
        raise NotImplementedError

    def role_begin(self, role: str, *, first: bool = False) -> list[Piece]:
        """What stands before a message of `role`. first: it opens the conversation, so what the template puts there (BOS, a default system prompt) is included."""
        raise NotImplementedError

    def role_end(self, role: str) -> list[Piece]:
        """What stands after a message of `role`."""
        raise NotImplementedError

    def safe_boundary(self, text: str) -> int:
        """Largest known k with encode(text[:k]) + encode(text[k:] + x) == encode(text + x) for every x."""
        raise NotImplementedError

    def encode_forced(self, data: bytes) -> list[int]:
        """Ids whose token bytes joined are exactly `data` (whole code points)."""
        raise NotImplementedError

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of ids; special tokens yield nothing, broken UTF-8 becomes U+FFFD."""
        raise NotImplementedError

    def decoder(self) -> IncrementalDecoder:
        """A fresh decoder for one stream."""
        raise NotImplementedError


def load_tokenizer(files: ModelFiles) -> Tokenizer:
    """The tokenizer of a model; ModelError when it is damaged or of an unknown kind."""
    raise NotImplementedError
