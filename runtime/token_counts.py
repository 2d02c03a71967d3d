"""How often each token stands in prompt and output, for penalties. Owns one sparse table per request that has a penalty.

The prompt is counted once, vectorised; an output token costs O(1). Reading is a slice, so a step copies no dictionary.
"""

from __future__ import annotations

import numpy as np

from .plan import I32


class TokenCounts:
    """Sparse counts of one sequence: parallel arrays over the distinct tokens seen."""

    __slots__ = ("_index", "_length", "_output", "_prompt", "_token_ids")

    def __init__(self, prompt_ids: I32) -> None:
        """Counts with the prompt's tokens marked. Pass an empty array when only output tokens matter."""
        self._token_ids: I32 = np.unique(prompt_ids).astype(np.int32)
        self._length = int(self._token_ids.size)
        self._prompt: I32 = np.ones(self._length, dtype=np.int32)
        self._output: I32 = np.zeros(self._length, dtype=np.int32)
        self._index: dict[int, int] = {int(t): i for i, t in enumerate(self._token_ids)}

    @property
    def token_ids(self) -> I32:
        """[N] distinct tokens."""
        return self._token_ids[: self._length]

    @property
    def in_prompt(self) -> I32:
        """[N] 1 where the token stands in the prompt."""
        return self._prompt[: self._length]

    @property
    def in_output(self) -> I32:
        """[N] times in the output."""
        return self._output[: self._length]

    def add_output(self, token_id: int) -> None:
        """Count one output token."""
        place = self._index.get(token_id)
        if place is None:
            place = self._length
            if place == self._token_ids.size:
                self._grow()
            self._token_ids[place] = token_id
            self._index[token_id] = place
            self._length += 1
        self._output[place] += 1

    def _grow(self) -> None:
        extra = np.zeros(max(self._length, 32), dtype=np.int32)
        self._token_ids = np.concatenate((self._token_ids, extra))
        self._prompt = np.concatenate((self._prompt, extra))
        self._output = np.concatenate((self._output, extra))

    def copy(self) -> TokenCounts:
        """Independent counts with the same content."""
        twin = TokenCounts(np.empty(0, dtype=np.int32))
        twin._token_ids, twin._prompt, twin._output = (
            self._token_ids.copy(),
            self._prompt.copy(),
            self._output.copy(),
        )
        twin._index, twin._length = dict(self._index), self._length
        return twin
