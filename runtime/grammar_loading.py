"""From the bytes of a compiled grammar to matchers over this model's vocabulary. Owns the one Vocabulary of an engine.

The masks of a program are shared by all its matchers; the position of a matcher is its own. The vocabulary's trie is built
for the first grammar, so an engine without any pays nothing. Knows nothing of requests.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from ..grammar.masks import TokenMasks
from ..grammar.matcher import Matcher
from ..grammar.program import GrammarProgram
from ..grammar.vocabulary import Vocabulary
from .vocab_facts import VocabFacts

MASK_MEMO_BYTES = 16 << 20  # of one program; times max_programs is the most an engine keeps


def grammar_loader(facts: VocabFacts) -> Callable[[bytes], Callable[[], Matcher]]:
    """The `load_grammar` of an engine. Masks get one bit per logits column: columns without a token are never allowed."""

    @cache
    def vocabulary() -> Vocabulary:
        padding = [None] * (facts.vocab_size - len(facts.token_bytes))
        return Vocabulary([*facts.token_bytes, *padding], facts.eos_token_ids)

    def load(data: bytes) -> Callable[[], Matcher]:
        masks = TokenMasks(GrammarProgram.from_bytes(data), vocabulary(), MASK_MEMO_BYTES)
        return partial(Matcher, masks)

    return load
