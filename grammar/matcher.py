"""One output under a grammar: what may come next, what came, back again.

Owns the history of states of one match. Knows nothing of logits, requests or processes. The history is a linked list, so a fork shares
all of it. A matcher that was given a token it cannot take has failed: it keeps the reason in `error` and answers everything else as
before that token until it is rolled back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .masks import TokenMasks
from .stepping import MatchState


@dataclass(frozen=True, slots=True)
class _Point:
    """The match after some tokens."""

    state: MatchState
    num_open_bytes: int  # bytes still missing from the code point at the end of the text
    is_ended: bool  # EOS was taken
    before: _Point | None
    num_tokens: int


class Matcher:
    """A match that starts at the beginning of the program of `masks`."""

    def __init__(self, masks: TokenMasks) -> None:
        self._masks = masks
        self._store = masks.store
        self._point = _Point(masks.store.start, 0, False, None, 0)
        self.error: str | None = None

    # ------------------------------------------------------------------------------------ what may follow

    def fill_mask(self, out: npt.NDArray[np.uint32], budget: int | None = None) -> None:
        """Write the allowed tokens into `out` ([ceil(V/32)] words, bit i%32 of word i//32 = token i).

        EOS ids are allowed exactly when the text is complete. With `budget` (tokens that may still come, this one included) a token
        is allowed only if the text can then be completed within budget - 1 tokens; EOS is not counted. A budget that is already
        smaller than `distance()` is ignored.
        """
        if self._point.is_ended:
            out[:] = self._masks.vocabulary.eos_mask
            return
        self._masks.fill(self._point.state, out, budget)

    @property
    def is_accepting(self) -> bool:
        """Whether the text so far is complete."""
        return self._point.state.is_accepting

    @property
    def is_complete(self) -> bool:
        """Whether the text is complete and nothing may follow."""
        return self._point.is_ended or (self.is_accepting and not self._point.state.configs)

    @property
    def num_tokens(self) -> int:
        """Tokens taken so far (calls of `advance` and `advance_bytes` that succeeded)."""
        return self._point.num_tokens

    def distance(self) -> int:
        """An upper bound on the tokens to a complete text that some allowed token always lowers by one; 0 when complete.

        `token_costs.NEVER` or more: no such bound exists for this vocabulary.
        """
        return self._point.state.cost

    def shortest_completion(self, max_bytes: int = 1 << 20) -> bytes:
        """The bytes of a completion of `distance()` single-byte tokens (cut at `max_bytes`)."""
        found = bytearray()
        state = self._point.state
        singles = self._masks.vocabulary.single_bytes
        while state.cost > 0 and len(found) < max_bytes:
            for byte in sorted(self._store.live_bytes(state)):
                after = self._store.step(state, self._store.class_of_byte[byte])
                if byte in singles and after is not None and after.cost < state.cost:
                    found.append(byte)
                    state = after
                    break
            else:
                break
        return bytes(found)

    def forced_bytes(self, max_bytes: int = 256) -> bytes:
        """The bytes that must follow as long as there is only one way on, cut to whole code points.

        Empty if the text may also end here, if several bytes are possible, or inside a code point.
        """
        if self._point.num_open_bytes or self._point.is_ended:
            return b""
        found = bytearray()
        num_whole = num_open = 0
        state: MatchState | None = self._point.state
        while state is not None and len(found) < max_bytes and not state.is_accepting:
            live = self._store.live_bytes(state)
            if len(live) != 1:
                break
            found.append(live[0])
            num_open = _open_bytes(num_open, bytes(live))
            if not num_open:
                num_whole = len(found)
            state = self._store.step(state, self._store.class_of_byte[live[0]])
        return bytes(found[:num_whole])

    # ------------------------------------------------------------------------------------ what comes

    def advance(self, token_id: int) -> bool:
        """Take one token. False if it is not allowed: `error` says why, and the match stands where it was."""
        vocabulary = self._masks.vocabulary
        if self.error is not None:
            return False
        if token_id in vocabulary.eos_token_ids:
            if not self.is_accepting:
                return self._fail(f"token {token_id} ends the output, which is not complete")
            point = self._point
            self._point = _Point(point.state, 0, True, point, point.num_tokens + 1)
            return True
        if not 0 <= token_id < vocabulary.vocab_size:
            return self._fail(
                f"token {token_id} is not in the vocabulary of {vocabulary.vocab_size}"
            )
        data = vocabulary.token_bytes[token_id]
        if data is None:
            return self._fail(f"token {token_id} is special and never part of a constrained text")
        return self.advance_bytes(data)

    def advance_bytes(self, data: bytes) -> bool:
        """Take `data` as one step (one `rollback` unit); like `advance`."""
        if self.error is not None:
            return False
        if self._point.is_ended:
            return self._fail("the output has ended")
        state = self._store.step_bytes(self._point.state, data)
        if state is None:
            return self._fail(self._reason(data))
        num_open = _open_bytes(self._point.num_open_bytes, data)
        self._point = _Point(state, num_open, False, self._point, self._point.num_tokens + 1)
        return True

    def _fail(self, reason: str) -> bool:
        self.error = self.error or reason
        return False

    def _reason(self, data: bytes) -> str:
        """Which byte of `data` was the first that could not be taken, and after what."""
        state = self._point.state
        for index, byte in enumerate(data):
            after = self._store.step(state, self._store.class_of_byte[byte])
            if after is None:
                taken = f" after {data[max(index - 40, 0) : index]!r}" if index else ""
                return f"the grammar does not allow {data[index : index + 1]!r} here{taken}"
            state = after
        return "the grammar does not allow this text"

    def rollback(self, num_tokens: int) -> None:
        """Undo the last `num_tokens` steps (all, if there were fewer); a failure is forgotten."""
        self.error = None
        for _ in range(num_tokens):
            if self._point.before is None:
                return
            self._point = self._point.before

    def fork(self) -> Matcher:
        """An independent matcher at the same point."""
        copy = Matcher(self._masks)
        copy._point = self._point
        copy.error = self.error
        return copy


def _open_bytes(num_open: int, data: bytes) -> int:
    """Bytes missing from the last code point after `data`, when `num_open` were missing before it."""
    for byte in data[-4:]:
        if byte >= 0xC0:
            num_open = 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
        elif byte >= 0x80:
            num_open = max(num_open - 1, 0)
        else:
            num_open = 0
    return num_open
