"""What the engine must know of the model's vocabulary, as plain data. Owns nothing else; knows no tokenizer and no text.

The tokenizer fills it at start, so that the engine's core never imports one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VocabFacts:
    """Sizes and token bytes of one model."""

    vocab_size: int  # columns of the logits
    context_length: int  # tokens a sequence may hold, prompt and output together
    eos_token_ids: tuple[int, ...]  # every id that ends a text by itself
    token_bytes: Sequence[
        bytes | None
    ]  # what each id spells; None: a special token, which spells nothing

    def bytes_of(self, token_id: int) -> bytes:
        """The bytes `token_id` adds to a text; empty for special tokens and for padding columns past the list."""
        if token_id >= len(self.token_bytes):
            return b""
        return self.token_bytes[token_id] or b""
