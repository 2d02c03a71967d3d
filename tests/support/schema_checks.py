"""Table checks of JSON Schema grammars: which texts pass, which fail, what is refused and where."""

from __future__ import annotations

import json
from typing import Any

import pytest
from slow_recogniser import slow_accepts
from toy_vocabulary import byte_vocabulary

from radixlm.errors import GrammarError
from radixlm.grammar.compiler import compile_grammar
from radixlm.grammar.expr import Grammar, Limits
from radixlm.grammar.frontends.json_schema import build
from radixlm.grammar.masks import TokenMasks
from radixlm.grammar.matcher import Matcher
from radixlm.grammar.spec import JsonSchema

_VOCABULARY = byte_vocabulary()


class Compiled:
    """A schema through the whole compiler, over a vocabulary of single bytes."""

    def __init__(self, schema: Any, **options: Any) -> None:
        self.grammar = grammar_of(schema, **options)
        self._masks = TokenMasks(compile_grammar(self.grammar, _VOCABULARY.alphabet), _VOCABULARY)

    def accepts(self, text: str) -> bool:
        """Is `text` a complete output?"""
        matcher = Matcher(self._masks)
        return matcher.advance_bytes(text.encode()) and matcher.is_accepting


def grammar_of(schema: Any, limits: Limits | None = None, **options: Any) -> Grammar:
    """The grammar of a schema given as a value, or as JSON text; `options` are those of `JsonSchema`."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return build(JsonSchema(text, **options), limits or Limits())


def compact(value: Any) -> str:
    """The compact JSON text of a value."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


LAYOUTS = ("compact", "single_space", "indented")


def laid_out(value: Any, whitespace: str) -> str:
    """The JSON text of a value in one of `LAYOUTS`, as the standard library writes it."""
    if whitespace == "indented":
        return json.dumps(value, indent=2, ensure_ascii=False)
    separators = (",", ":") if whitespace == "compact" else (", ", ": ")
    return json.dumps(value, separators=separators, ensure_ascii=False)


def ok(schema: Any, passing: list[str], failing: list[str], **options: Any) -> None:
    """All texts of `passing` are outputs under the schema, none of `failing` is: by the definition and by the compiler."""
    compiled = Compiled(schema, **options)
    for text in passing:
        assert slow_accepts(compiled.grammar, text), f"{text} is refused by the grammar"
        assert compiled.accepts(text), f"{text} is refused by the program"
    for text in failing:
        assert not slow_accepts(compiled.grammar, text), f"{text} is accepted by the grammar"
        assert not compiled.accepts(text), f"{text} is accepted by the program"


def refused(
    schema: Any, keyword: str = "", place: str = "", message: str = "", **options: Any
) -> GrammarError:
    """The schema is refused, for this keyword, at this place, with this in the message."""
    with pytest.raises(GrammarError) as info:
        grammar_of(schema, **options)
    error = info.value
    assert not keyword or error.keyword == keyword, error
    assert not place or error.place == place, error
    assert message in str(error), error
    return error
