"""From the bytes of a compiled grammar to matchers over this model's vocabulary. Owns the one Vocabulary of an engine.

The masks of a program are shared by all its matchers; the position of a matcher is its own. Knows nothing of requests.
"""

from __future__ import annotations

from functools import partial

from ..grammar.masks import TokenMasks
from ..grammar.matcher import Matcher
from ..grammar.program import GrammarProgram
from ..grammar.vocabulary import Vocabulary
from .program_store import LoadGrammar, MakeMatcher
from .vocab_facts import VocabFacts


def grammar_loader(facts: VocabFacts) -> LoadGrammar:
    """The `load_grammar` of an engine. Masks get one bit per logits column: columns without a token are never allowed."""
    padding = [None] * (facts.vocab_size - len(facts.token_bytes))
    vocabulary = Vocabulary([*facts.token_bytes, *padding], facts.eos_token_ids)

    def load(data: bytes) -> MakeMatcher:
        return partial(Matcher, TokenMasks(GrammarProgram.from_bytes(data), vocabulary))

    return load
