"""Small vocabularies for grammar tests, and masks as sets of ids."""

from __future__ import annotations

import numpy as np

from radixlm.grammar.masks import TokenMasks
from radixlm.grammar.matcher import Matcher
from radixlm.grammar.program import GrammarProgram
from radixlm.grammar.vocabulary import Vocabulary

EOS = 0
SPECIAL = 1


def vocabulary_of(*texts: bytes) -> Vocabulary:
    """Ids: 0 EOS, 1 special, then `texts` in order."""
    return Vocabulary([None, None, *texts], [EOS])


def byte_vocabulary(*texts: bytes) -> Vocabulary:
    """Every single byte, and `texts`."""
    return vocabulary_of(*(bytes([byte]) for byte in range(256)), *texts)


def matcher_of(program: GrammarProgram, vocabulary: Vocabulary) -> Matcher:
    """A matcher with masks of its own."""
    return Matcher(TokenMasks(program, vocabulary))


def allowed(matcher: Matcher, vocabulary: Vocabulary, budget: int | None = None) -> set[int]:
    """The ids in the matcher's mask."""
    row = np.zeros((vocabulary.vocab_size + 31) // 32, dtype=np.uint32)
    matcher.fill_mask(row, budget)
    return set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())


def accepts(matcher: Matcher, data: bytes) -> bool:
    """Whether `data` as a whole is accepted by a fresh copy of the matcher."""
    fork = matcher.fork()
    return all(fork.advance_bytes(bytes([byte])) for byte in data) and fork.is_accepting
