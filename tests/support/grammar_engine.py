"""Constraints compiled and matched in tests as an engine does it: natively where that was built, by the reference otherwise."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from toy_vocabulary import byte_vocabulary

from radixlm.grammar import matching
from radixlm.grammar.compiler import compile_spec
from radixlm.grammar.spec import JsonSchema, Spec
from radixlm.grammar.vocabulary import Vocabulary

BYTES = byte_vocabulary()


class Constraint:
    """One compiled constraint; GrammarError if it is refused."""

    def __init__(self, spec: Spec, vocabulary: Vocabulary = BYTES) -> None:
        self.vocabulary = vocabulary
        self.program = compile_spec(spec, vocabulary.alphabet)
        self._masks = matching.masks_of(self.program, vocabulary)

    def matcher(self) -> matching.TokenMatcher:
        """A matcher at the start."""
        return matching.matcher_of(self._masks)

    def accepts(self, text: str) -> bool:
        """Is `text` a complete output?"""
        matcher = self.matcher()
        return matcher.advance_bytes(encoded(text)) and matcher.is_accepting

    def is_prefix(self, text: str | bytes) -> bool:
        """Does some output begin with `text`?"""
        return self.matcher().advance_bytes(text if isinstance(text, bytes) else encoded(text))

    def allowed(self, matcher: matching.TokenMatcher, budget: int | None = None) -> set[int]:
        """The ids in the matcher's mask."""
        row = np.zeros((self.vocabulary.vocab_size + 31) // 32, dtype=np.uint32)
        matcher.fill_mask(row, budget)
        bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: self.vocabulary.vocab_size]
        return set(np.flatnonzero(bits).tolist())


def schema_constraint(schema: Any, **options: Any) -> Constraint:
    """The constraint of a schema given as a value, with options of the spec."""
    return Constraint(JsonSchema(json.dumps(schema), **options))


def encoded(text: str) -> bytes:
    """UTF-8; half a surrogate pair becomes bytes that no grammar of text holds."""
    return text.encode("utf-8", "surrogatepass")


def layouts(value: Any) -> dict[str, str]:
    """The JSON texts of a value as the three usual programs print it, keys as they stand."""
    return {
        "compact": json.dumps(value, separators=(",", ":"), ensure_ascii=False),
        "single_space": json.dumps(value, ensure_ascii=False),
        "indented": json.dumps(value, indent=2, ensure_ascii=False),
    }
