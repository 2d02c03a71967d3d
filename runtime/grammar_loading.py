"""From the bytes of a compiled grammar to matchers over this model's vocabulary. Owns the one Vocabulary of an engine.

The masks of a program are shared by all its matchers; the position of a matcher is its own. The vocabulary's trie is built
by `warm_up`, or for the first grammar. Knows nothing of requests.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..grammar.masks import TokenMasks
from ..grammar.matcher import Matcher
from ..grammar.program import GrammarProgram
from ..grammar.vocabulary import Vocabulary
from .vocab_facts import VocabFacts

MASK_MEMO_BYTES = 16 << 20  # of one program; times max_programs is the most an engine keeps


class GrammarLoader:
    """The `load_grammar` of an engine. Masks get one bit per logits column: columns without a token are never allowed."""

    def __init__(self, facts: VocabFacts) -> None:
        self._facts = facts
        self._vocabulary: Vocabulary | None = None

    def __call__(self, data: bytes) -> Callable[[], Matcher]:
        """A factory of fresh matchers of the program in `data`. Raises GrammarError when it is damaged."""
        masks = TokenMasks(GrammarProgram.from_bytes(data), self.warm_up(), MASK_MEMO_BYTES)
        return partial(Matcher, masks)

    def warm_up(self) -> Vocabulary:
        """The vocabulary, its trie built."""
        if self._vocabulary is None:
            facts = self._facts
            padding = [None] * (facts.vocab_size - len(facts.token_bytes))
            self._vocabulary = Vocabulary([*facts.token_bytes, *padding], facts.eos_token_ids)
        return self._vocabulary
