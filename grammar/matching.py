"""The grammar engine as its users see it: a program, its masks over a vocabulary, matchers.

Owns the choice between the native half (`native/`) and the numpy half, which give equal results. Knows nothing of requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from .masks import TokenMasks
from .matcher import Matcher
from .native.library import is_built

if TYPE_CHECKING:
    from .program import GrammarProgram
    from .vocabulary import Vocabulary

MEMO_BYTES = 32 << 20


class Masks(Protocol):
    """What all matchers of one program share: states and memoised masks. One thread owns it."""

    @property
    def num_bytes(self) -> int:
        """About the memory it takes by now."""
        ...


class TokenMatcher(Protocol):
    """One output under a grammar; see `matcher.Matcher` for what each part does."""

    error: str | None

    def fill_mask(self, out: npt.NDArray[np.uint32], budget: int | None = None) -> None:
        """Write the allowed tokens into `out` ([ceil(V/32)] words)."""
        ...

    @property
    def is_accepting(self) -> bool:
        """Whether the text so far is complete."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether the text is complete and nothing may follow."""
        ...

    @property
    def num_tokens(self) -> int:
        """Steps taken so far."""
        ...

    def distance(self) -> int:
        """An upper bound on the tokens to a complete text."""
        ...

    def shortest_completion(self, max_bytes: int = 1 << 20) -> bytes:
        """The bytes of a shortest completion."""
        ...

    def forced_bytes(self, max_bytes: int = 256) -> bytes:
        """The bytes that must follow, cut to whole code points."""
        ...

    def advance(self, token_id: int) -> bool:
        """Take one token; False if it is not allowed."""
        ...

    def advance_bytes(self, data: bytes) -> bool:
        """Take `data` as one step."""
        ...

    def rollback(self, num_tokens: int) -> None:
        """Undo the last steps."""
        ...

    def fork(self) -> TokenMatcher:
        """An independent matcher at the same point."""
        ...


def engine_name() -> str:
    """Which half serves: "native" or "numpy"."""
    return "native" if is_built() else "numpy"


def masks_of(
    program: GrammarProgram, vocabulary: Vocabulary, memo_bytes: int = MEMO_BYTES
) -> Masks:
    """The masks of `program` over `vocabulary`, with at most `memo_bytes` of memoised rows. GrammarError when it is damaged."""
    if is_built():
        from .native.matching import NativeMasks

        return NativeMasks(program.to_body(), vocabulary, memo_bytes)
    return TokenMasks(program, vocabulary, memo_bytes)


def matcher_of(masks: Masks) -> TokenMatcher:
    """A fresh matcher at the beginning of the program of `masks`, which `masks_of` made."""
    if isinstance(masks, TokenMasks):
        return Matcher(masks)
    from .native.matching import NativeMasks, NativeMatcher

    assert isinstance(masks, NativeMasks)
    return NativeMatcher(masks)
