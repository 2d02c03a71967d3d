"""Random outputs of a constraint, as an engine would make them: forced text whole, the rest token by token.

Owns the walk, which always ends in a complete output. Knows nothing of what the constraint is.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from ..matcher import Matcher
from ..vocabulary import Vocabulary
from .tokens import allowed_tokens

MAX_SAMPLE_BYTES = 1 << 16
_SAMPLE_TOKENS = 48
_HASTE = 0.4  # how often a sample takes a token towards its end


@dataclass(frozen=True, slots=True)
class Sample:
    """An output drawn at random."""

    text: str
    num_tokens: int
    """Tokens of it that were chosen."""
    num_forced_bytes: int
    """Bytes of it that the grammar left no choice about."""


def draw_sample(matcher: Matcher, vocabulary: Vocabulary, choose: random.Random) -> Sample:
    """A random output of `matcher`, which is moved along."""
    budget = max(_SAMPLE_TOKENS, 2 * min(matcher.distance(), MAX_SAMPLE_BYTES))
    found = bytearray()
    num_tokens = num_forced = 0
    while not matcher.is_complete and num_tokens < budget and len(found) < MAX_SAMPLE_BYTES:
        forced = matcher.forced_bytes()
        if forced:
            matcher.advance_bytes(forced)
            found += forced
            num_forced += len(forced)
            continue
        if matcher.is_accepting and choose.random() < _HASTE:
            break
        towards_end = matcher.distance() if choose.random() < _HASTE else budget - num_tokens
        allowed = allowed_tokens(matcher, vocabulary, max(towards_end, 1))
        if not allowed:
            break  # the text may end here, and nothing that goes on ends within these tokens
        plain = [i for i in allowed if _is_plain(vocabulary.token_bytes[i] or b"")]
        dark = [i for i in allowed if (vocabulary.token_bytes[i] or b"").strip()]
        token_id = choose.choice(plain or dark or allowed)
        matcher.advance(token_id)
        found += vocabulary.token_bytes[token_id] or b""
        num_tokens += 1
    if not matcher.is_accepting:
        found += matcher.shortest_completion(MAX_SAMPLE_BYTES)
    return Sample(found.decode("utf-8", "replace"), num_tokens, num_forced)


def _is_plain(data: bytes) -> bool:
    """Characters that read well in an example, and the ends of strings and lists."""
    return data.isascii() and (data.isalnum() or data in (b'"', b"]", b"}", b",", b'",', b'"}'))
