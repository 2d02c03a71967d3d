"""From the bytes of a compiled grammar to matchers over this model's vocabulary. Owns the one Vocabulary of an engine.

The masks of a program are shared by all its matchers; the position of a matcher is its own. The vocabulary's trie is built
by `warm_up`, or for the first grammar. Knows nothing of requests.
"""

from __future__ import annotations

from ..grammar.matching import TokenMatcher, masks_of, matcher_of
from ..grammar.program import GrammarProgram
from ..grammar.vocabulary import Vocabulary
from .vocab_facts import VocabFacts

MASK_MEMO_BYTES = 16 << 20  # of one program


class LoadedGrammar:
    """A program over this model's vocabulary: a source of matchers that share its masks and states."""

    def __init__(self, data: bytes, vocabulary: Vocabulary) -> None:
        self._masks = masks_of(GrammarProgram.from_bytes(data), vocabulary, MASK_MEMO_BYTES)
        self._num_data_bytes = len(data)

    def __call__(self) -> TokenMatcher:
        """A fresh matcher."""
        return matcher_of(self._masks)

    @property
    def num_bytes(self) -> int:
        """About the memory it takes; it grows with use."""
        return self._num_data_bytes + self._masks.num_bytes


class GrammarLoader:
    """The `load_grammar` of an engine. Masks get one bit per logits column: columns without a token are never allowed."""

    def __init__(self, facts: VocabFacts) -> None:
        self._facts = facts
        self._vocabulary: Vocabulary | None = None

    def __call__(self, data: bytes) -> LoadedGrammar:
        """The program in `data`. Raises GrammarError when it is damaged."""
        return LoadedGrammar(data, self.warm_up())

    def warm_up(self) -> Vocabulary:
        """The vocabulary, its trie built."""
        if self._vocabulary is None:
            facts = self._facts
            padding = [None] * (facts.vocab_size - len(facts.token_bytes))
            self._vocabulary = Vocabulary([*facts.token_bytes, *padding], facts.eos_token_ids)
        return self._vocabulary
