"""The grammar engine as its users see it: a program, its masks over a vocabulary, matchers.

Owns the choice between the native half (`native/`) and the numpy half, which give equal results and have the same methods. Knows nothing
of requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from .masks import TokenMasks
from .matcher import Matcher
from .native.library import is_built
from .native.matching import NativeMasks, NativeMatcher

if TYPE_CHECKING:
    from .program import GrammarProgram
    from .vocabulary import Vocabulary

MEMO_BYTES = 32 << 20

Masks: TypeAlias = TokenMasks | NativeMasks
"""What all matchers of one program share: states and memoised masks. One thread owns it."""

TokenMatcher: TypeAlias = Matcher | NativeMatcher
"""One output under a grammar; see `matcher.Matcher`."""


def engine_name() -> str:
    """Which half serves: "native" or "numpy"."""
    return "native" if is_built() else "numpy"


def masks_of(
    program: GrammarProgram, vocabulary: Vocabulary, memo_bytes: int = MEMO_BYTES
) -> Masks:
    """The masks of `program` over `vocabulary`, with at most `memo_bytes` of memoised rows. GrammarError when it is damaged."""
    if is_built():
        return NativeMasks(program.to_body(), vocabulary, memo_bytes)
    return TokenMasks(program, vocabulary, memo_bytes)


def matcher_of(masks: Masks) -> TokenMatcher:
    """A fresh matcher at the beginning of the program of `masks`."""
    return Matcher(masks) if isinstance(masks, TokenMasks) else NativeMatcher(masks)
