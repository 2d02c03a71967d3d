"""Compiled grammars as sets of texts, for tests of the grammar front ends."""

from __future__ import annotations

from collections.abc import Iterable

from toy_vocabulary import accepts, byte_vocabulary, matcher_of

from radixlm.errors import GrammarError
from radixlm.grammar.compiler import compile_spec
from radixlm.grammar.expr import Limits
from radixlm.grammar.matcher import Matcher
from radixlm.grammar.spec import Gbnf, Lark, Spec

VOCABULARY = byte_vocabulary()


def matcher(spec: Spec, limits: Limits | None = None) -> Matcher:
    """A matcher of the spec over single bytes."""
    return matcher_of(compile_spec(spec, VOCABULARY.alphabet, limits), VOCABULARY)


def check(spec: Spec, passing: Iterable[str], failing: Iterable[str]) -> None:
    """Assert what is accepted and what is not."""
    start = matcher(spec)
    for text in passing:
        assert accepts(start, text.encode()), f"{text!r} is refused"
    for text in failing:
        assert not accepts(start, text.encode()), f"{text!r} is accepted"


def accepted_texts(spec: Spec, alphabet: str, max_length: int) -> set[str]:
    """All accepted texts over `alphabet` up to a length; none if the compiler finds that there are none at all."""
    try:
        work = [("", matcher(spec))]
    except GrammarError as error:
        assert error.keyword == "unsatisfiable", error  # noqa: PT017
        return set()
    found: set[str] = set()
    while work:
        text, here = work.pop()
        if here.is_accepting:
            found.add(text)
        if len(text) == max_length:
            continue
        for character in alphabet:
            there = here.fork()
            if there.advance_bytes(character.encode()):
                work.append((text + character, there))
    return found


def refusal(spec: Lark | Gbnf, limits: Limits | None = None) -> GrammarError:
    """The error that compiling the spec raises."""
    try:
        compile_spec(spec, VOCABULARY.alphabet, limits)
    except GrammarError as error:
        return error
    raise AssertionError(f"{spec} is accepted")
