"""The choice front end: what it builds is tested through the matcher; here its refusals and its size."""

from __future__ import annotations

import pytest
from toy_vocabulary import accepts, allowed, byte_vocabulary, matcher_of

from radixlm.errors import GrammarError
from radixlm.grammar.compiler import compile_spec
from radixlm.grammar.expr import Limits
from radixlm.grammar.spec import Choice

VOCABULARY = byte_vocabulary()


def test_options_that_cannot_be_used_are_named() -> None:
    cases = [((), "without options", "/0"), (("a", "\ud800"), "surrogate", "/1")]
    for options, reason, place in cases:
        with pytest.raises(GrammarError, match=reason) as caught:
            compile_spec(Choice(options), VOCABULARY.alphabet)
        assert caught.value.place == place


def test_limits_name_themselves() -> None:
    with pytest.raises(GrammarError, match=r"limits\.choices=1") as refused:
        compile_spec(Choice(("a", "b")), VOCABULARY.alphabet, Limits(choices=1))
    assert refused.value.place == "", "the options as a whole have no place within themselves"
    with pytest.raises(GrammarError, match=r"limits\.spec_bytes=1"):
        compile_spec(Choice(("a", "b")), VOCABULARY.alphabet, Limits(spec_bytes=1))


def test_ten_thousand_options_share_their_beginnings() -> None:
    options = tuple(f"item {index * 7919 % 10000:04d} of the list" for index in range(10_000))
    program = compile_spec(Choice(options), VOCABULARY.alphabet)
    assert program.num_states < 10_000 * 14 + 12_000, "four digits are shared, the tails are not"
    matcher = matcher_of(program, VOCABULARY)
    assert accepts(matcher, options[77].encode())
    assert not accepts(matcher, b"item 123 of the list")
    assert matcher.forced_bytes() == b"item "
    assert matcher.distance() == len(options[0])
    assert matcher.advance_bytes(b"item ")
    assert allowed(matcher, VOCABULARY) == {2 + byte for byte in b"0123456789"}


def test_one_option_is_forced_as_a_whole() -> None:
    matcher = matcher_of(compile_spec(Choice(("the only é",)), VOCABULARY.alphabet), VOCABULARY)
    assert matcher.forced_bytes() == "the only é".encode()


def test_options_that_no_token_spells_are_left_out() -> None:
    alphabet = bytes(int(byte < 0x80) for byte in range(256))
    program = compile_spec(Choice(("a", "é")), alphabet)
    assert matcher_of(program, VOCABULARY).forced_bytes() == b"a"
