"""Forced tokens: what may be appended without asking the model, because the grammar leaves one continuation.

Owns the policy of the exactness contract: the forced bytes, cut to whole code points, are encoded from the current token
boundary; emitted tokens are never rewritten; the last token is held back if an allowed token strictly extends it (the
model might have preferred the longer one); nothing is forced while a code point is open. Knows no tokenizer: the encoder
is injected. The language is the same with forcing on and off.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

import numpy as np

from ..errors import UserError
from .constraint import Constraint, MatcherLike
from .vocab_facts import VocabFacts

EncodeForced = Callable[[bytes], Sequence[int]]


def ends_inside_code_point(tail: bytes) -> bool:
    """Does UTF-8 text that ends with `tail` (its last three bytes or more) stop inside a code point?"""
    for back in range(1, min(3, len(tail)) + 1):
        byte = tail[-back]
        if byte < 0x80:
            return False
        if byte >= 0xC0:  # a lead byte, followed by `back - 1` continuation bytes
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back < length
    return False


def _successor(prefix: bytes) -> bytes:
    """The smallest byte string above everything that starts with `prefix`; empty when there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes((stem[-1] + 1,)) if stem else b""


class Forcer:
    """The forcing policy over one vocabulary. Stateless between calls."""

    def __init__(self, facts: VocabFacts, encode_forced: EncodeForced) -> None:
        self._facts = facts
        self._encode = encode_forced
        spelled = [(text, i) for i, text in enumerate(facts.token_bytes) if text]
        spelled.sort()
        self._sorted_bytes = [text for text, _ in spelled]
        self._sorted_ids = np.array([i for _, i in spelled], dtype=np.int64)
        self._num_mask_words = (facts.vocab_size + 31) // 32

    def forced_tokens(self, constraint: Constraint, tail: bytes, remaining: int) -> list[int]:
        """Token ids to append now, at most `remaining`; empty when nothing is forced. The constraint does not move.

        `tail` holds the last bytes of the output so far.
        """
        present = constraint.matcher
        if remaining <= 0 or ends_inside_code_point(tail):
            return []
        data = present.forced_bytes()
        try:
            token_ids = list(self._encode(data)) if data else []
        except UserError:  # a byte that stands only inside longer tokens
            return []
        if not token_ids or b"".join(map(self._facts.bytes_of, token_ids)) != data:
            return []  # bytes that the vocabulary cannot spell whole: leave them to sampling
        ahead = present.fork()
        for token_id in token_ids[:remaining][:-1]:
            if not ahead.advance(token_id):
                return []
        kept = token_ids[:remaining]
        if len(token_ids) <= remaining and self._is_extended(ahead, kept[-1]):
            kept.pop()
        elif not ahead.advance(kept[-1]):
            return []
        if not kept or not constraint.can_follow(ahead, remaining - len(kept)):
            return []
        return kept

    def _is_extended(self, matcher: MatcherLike, token_id: int) -> bool:
        """Is a token allowed here whose bytes go on past those of `token_id`?"""
        text = self._facts.bytes_of(token_id)
        first = bisect_right(self._sorted_bytes, text)
        end = _successor(text)
        last = bisect_left(self._sorted_bytes, end, lo=first) if end else len(self._sorted_bytes)
        if first == last:
            return False
        mask = np.zeros(self._num_mask_words, dtype=np.uint32)
        matcher.fill_mask(mask)
        ids = self._sorted_ids[first:last]
        return bool(((mask[ids >> 5] >> (ids & 31).astype(np.uint32)) & 1).any())
