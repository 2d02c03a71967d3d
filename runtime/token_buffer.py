"""A growing array of token ids. Owns one int32 buffer; appending is O(1) amortised and reading never copies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .plan import I32


class TokenBuffer:
    """The tokens of one sequence, prompt then output."""

    __slots__ = ("_buffer", "length")

    def __init__(self, token_ids: Sequence[int] | I32) -> None:
        self._buffer: I32 = np.array(token_ids, dtype=np.int32)
        self.length = int(self._buffer.size)
        """How many tokens there are; an attribute, because the scheduler asks for it several times a token."""

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, position: int) -> int:
        """The token at `position`, which must be within the length."""
        return int(self._buffer[: self.length][position])

    def append(self, token_id: int) -> None:
        """Add one token at the end."""
        if self.length == self._buffer.size:
            grown = np.empty(max(2 * self._buffer.size, 64), dtype=np.int32)
            grown[: self.length] = self._buffer[: self.length]
            self._buffer = grown
        self._buffer[self.length] = token_id
        self.length += 1

    def view(self, start: int = 0, stop: int | None = None) -> I32:
        """Tokens `start .. stop` without a copy; valid until the next append."""
        return self._buffer[start : self.length if stop is None else min(stop, self.length)]

    def copy(self) -> TokenBuffer:
        """An independent buffer with the same tokens."""
        return TokenBuffer(self.view())
