"""Our grammar engine behind the interface that the mask benchmark drives: schema or pattern -> matcher -> mask, accept.

Owns the translation between the two. Knows nothing of timing, of data files or of other engines. Compiles and walks in the process that
asks, keeps nothing on disk, and starts with an empty memo: each compile makes masks of its own, as an engine that sees the constraint for
the first time. Used as `maskbench.py --engine path/to/maskbench_adapter.py:Engine`.
"""

from __future__ import annotations

import json
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from radixlm.grammar import matching
from radixlm.grammar.compiler import compile_spec
from radixlm.grammar.frontends import json_schema, regex
from radixlm.grammar.spec import JsonSchema, Regex, Spec, Whitespace
from radixlm.grammar.vocabulary import Vocabulary

FRONT_ENDS = (json_schema, regex)  # loaded before the first compile, as a compile worker has them


class BenchVocabulary(Protocol):
    """What the benchmark knows of a tokenizer: bytes by token id (None: special), and the id that ends the text."""

    token_bytes: list[bytes | None]
    eos_id: int


class Engine:
    """Compiles constraints for one vocabulary; see `radixlm.grammar.spec` for the options."""

    def __init__(
        self,
        vocab: BenchVocabulary,
        *,
        whitespace: Whitespace = "flexible",
        any_order: bool = False,
        best_effort: bool = False,
    ) -> None:
        self._vocabulary = Vocabulary(vocab.token_bytes, [vocab.eos_id])
        self._whitespace: Whitespace = whitespace
        self._any_order = any_order
        self._best_effort = best_effort

    def compile(self, schema: Any) -> BenchGrammar:
        """The grammar of a schema given as a value; GrammarError if it is refused."""
        return self._compile(
            JsonSchema(
                json.dumps(schema),
                any_order=self._any_order,
                whitespace=self._whitespace,
                best_effort=self._best_effort,
            )
        )

    def compile_regex(self, pattern: str) -> BenchGrammar:
        """The grammar of a pattern that the whole text matches; GrammarError if it is refused."""
        return self._compile(Regex(pattern))

    def _compile(self, spec: Spec) -> BenchGrammar:
        program = compile_spec(spec, self._vocabulary.alphabet)
        return BenchGrammar(matching.masks_of(program, self._vocabulary), self._vocabulary)


class CompactEngine(Engine):
    """The default of the language: no white space between the tokens of a text."""

    def __init__(self, vocab: BenchVocabulary) -> None:
        super().__init__(vocab, whitespace="compact")


class AnyOrderEngine(Engine):
    """Flexible white space and properties in any order."""

    def __init__(self, vocab: BenchVocabulary) -> None:
        super().__init__(vocab, any_order=True)


class BenchGrammar:
    """One compiled constraint with the masks that its matchers share."""

    def __init__(self, masks: matching.Masks, vocabulary: Vocabulary) -> None:
        self._masks = masks
        self._num_words = (vocabulary.vocab_size + 31) // 32

    def matcher(self) -> BenchMatcher:
        """A fresh matcher at the start."""
        return BenchMatcher(matching.matcher_of(self._masks), self._num_words)


class BenchMatcher:
    """One walk. The mask is written into one buffer, which the next call overwrites."""

    def __init__(self, matcher: matching.TokenMatcher, num_words: int) -> None:
        self._matcher = matcher
        self._mask: npt.NDArray[np.uint32] = np.zeros(num_words, dtype=np.uint32)

    def mask(self) -> npt.NDArray[np.uint32]:
        """Bit t % 32 of word t // 32 is set if token t may follow; EOS if the text is complete."""
        self._matcher.fill_mask(self._mask)
        return self._mask

    def accept(self, token: int) -> bool:
        """Take a token; False if it is refused."""
        return self._matcher.advance(token)

    def is_accepting(self) -> bool:
        """Whether the text so far is complete."""
        return self._matcher.is_accepting
