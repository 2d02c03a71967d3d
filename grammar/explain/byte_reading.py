"""Texts read by a constraint byte by byte, without a model.

Owns the matcher over single bytes and the place where a text stops being right. Knows nothing of why.
"""

from __future__ import annotations

from ..compiler import compile_spec
from ..expr import Limits
from ..masks import TokenMasks
from ..matcher import Matcher
from ..spec import Spec
from .tokens import byte_vocabulary

_CHUNK = 1 << 12


def byte_matcher(spec: Spec, limits: Limits | None = None) -> Matcher:
    """A matcher at the beginning of `spec`. Raises GrammarError when that is refused."""
    vocabulary = byte_vocabulary()
    return Matcher(TokenMasks(compile_spec(spec, vocabulary.alphabet, limits), vocabulary))


def read(matcher: Matcher, text: str) -> int:
    """Take as many code points of `text` as are right, and leave `matcher` behind them. Returns how many they are."""
    for start in range(0, len(text), _CHUNK):
        chunk = text[start : start + _CHUNK]
        if matcher.advance_bytes(chunk.encode("utf-8", "surrogatepass")):
            continue
        matcher.rollback(0)
        for offset, character in enumerate(chunk):
            if not matcher.advance_bytes(character.encode("utf-8", "surrogatepass")):
                matcher.rollback(0)
                return start + offset
    return len(text)


def is_output(matcher: Matcher, text: str) -> bool:
    """Does `text` lead `matcher`, which is moved, to a complete output?"""
    return read(matcher, text) == len(text) and matcher.is_accepting
