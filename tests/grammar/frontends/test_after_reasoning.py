"""Reasoning before an answer: free up to the first end marker, exact behind it."""

from __future__ import annotations

import pytest
from toy_vocabulary import EOS, allowed, byte_vocabulary, matcher_of

from radixlm.errors import GrammarError
from radixlm.grammar.compiler import compile_spec
from radixlm.grammar.spec import AfterReasoning, Choice, JsonSchema, Regex, Spec

VOCABULARY = byte_vocabulary(b"</", b"think>", b'k>"', b"</think>x")


def accepts(spec: Spec, text: str) -> bool:
    matcher = matcher_of(compile_spec(spec, VOCABULARY.alphabet), VOCABULARY)
    return matcher.advance_bytes(text.encode()) and matcher.is_accepting


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ('</think>"yes"', True),
        ('well, < 3 </thin </</think>"yes"', True),
        ('\u00e9 {}\n\n</think>"no"', True),
        ('"yes"', False),
        ('thinking</think> "yes"', False),
        ('</think></think>"yes"', False),
        ('</think>"maybe"', False),
        ("</think>", False),
    ],
)
def test_the_answer_is_exact_behind_the_first_end_marker(text: str, is_right: bool) -> None:
    assert accepts(AfterReasoning(JsonSchema('{"enum": ["yes", "no"]}')), text) == is_right


def test_a_beginning_may_be_demanded() -> None:
    spec = AfterReasoning(Regex("[0-9]+"), end="</t>", begin="<t>")
    assert accepts(spec, "<t>hm</t>42")
    assert not accepts(spec, "hm</t>42")


def test_no_end_of_output_while_it_thinks_and_tokens_may_cross_the_marker() -> None:
    program = compile_spec(AfterReasoning(Choice(("x", "y"))), VOCABULARY.alphabet)
    matcher = matcher_of(program, VOCABULARY)
    crossing = VOCABULARY.token_bytes.index(b"</think>x")
    for data in (b"a", b"<", b"b"):
        mask = allowed(matcher, VOCABULARY)
        assert EOS not in mask
        assert crossing in mask
        assert matcher.advance_bytes(data)
    assert matcher.advance(crossing)
    assert allowed(matcher, VOCABULARY) == {EOS}


def test_errors_say_where() -> None:
    with pytest.raises(GrammarError) as caught:
        compile_spec(AfterReasoning(JsonSchema('{"properties": 1}')), VOCABULARY.alphabet)
    assert caught.value.place.startswith("/content#/properties")
    with pytest.raises(GrammarError, match="end marker"):
        compile_spec(AfterReasoning(Regex("a"), end=""), VOCABULARY.alphabet)
