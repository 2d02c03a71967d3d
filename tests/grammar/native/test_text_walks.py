"""Masks of free text with exceptions, native against numpy: what a slice of the vocabulary gives, corrected below the exceptions."""

from __future__ import annotations

import string
from itertools import product

import pytest
from toy_vocabulary import allowed, byte_vocabulary, matcher_of

from radixlm.grammar.compiler import compile_by_passes
from radixlm.grammar.expr import Grammar, Limits, alt, byte_set, lit, ref, seq, star
from radixlm.grammar.native import library
from radixlm.grammar.native.matching import NativeMasks, NativeMatcher

pytestmark = pytest.mark.skipif(not library.is_built(), reason="the native library is not built")

LETTERS = (string.ascii_letters + string.digits).encode()  # a slice of the vocabulary


def others(byte: bytes) -> bytes:
    return bytes(set(LETTERS) - set(byte))


def test_a_token_below_an_exception_goes_on_behind_the_end_of_its_region() -> None:
    """After x the region may end, any letter but y goes on as text, and y only as xyz: what follows x by the caller's leave is kept aside."""
    vocabulary = byte_vocabulary(
        b"xyq", b"xyqq", b"xyz", b"xyza", b"xya", b"xb", b"ab", b"xyw", b"xw"
    )
    text = star(byte_set(LETTERS))
    region = alt(
        seq(lit("("), ref("region")),
        seq(byte_set(others(b"x")), text),
        lit("x"),
        seq(lit("x"), byte_set(others(b"y")), text),
        lit("xyz"),
    )
    start = alt(seq(ref("region"), lit("yq")), seq(lit("!"), ref("region"), lit("w")))
    grammar = Grammar({"start": start, "region": region}, "start")
    program = compile_by_passes(grammar, vocabulary.alphabet, Limits())
    python = matcher_of(program, vocabulary)
    native = NativeMatcher(NativeMasks(program.to_body(), vocabulary))
    ids = {data: token for token, data in enumerate(vocabulary.token_bytes) if data is not None}
    for lead in (b"", b"!", b"(("):
        here, there = python.fork(), native.fork()
        assert here.advance_bytes(lead)
        assert there.advance_bytes(lead)
        mask = allowed(there, vocabulary)
        assert mask == allowed(here, vocabulary)
        assert (ids[b"xyq"] in mask) == (lead != b"!"), "the caller goes on with yq"
        assert {ids[b"xyz"], ids[b"xb"], ids[b"xw"], ids[b"ab"]} <= mask
        assert not {ids[b"xya"], ids[b"xyw"], ids[b"xyqq"], ids[b"xyza"]} & mask


def test_a_mask_near_a_whole_slice_is_kept_as_what_differs() -> None:
    words = [bytes(word) for word in product(b"abcdefghijklmnopqrstu", repeat=3)]
    vocabulary = byte_vocabulary(*words)
    row_bytes = (vocabulary.vocab_size + 31) // 32 * 4
    text = seq(byte_set(others(b"c")), star(byte_set(LETTERS)))
    grammar = Grammar({"start": seq(text, lit("!"))}, "start")
    program = compile_by_passes(grammar, vocabulary.alphabet, Limits())
    python = matcher_of(program, vocabulary)
    masks = NativeMasks(program.to_body(), vocabulary)
    native = NativeMatcher(masks)
    for _ in ("without the words with c", "behind a word: all of them"):
        before = masks.num_memo_bytes
        for _ in range(2):  # walked, and from the memo
            assert allowed(native, vocabulary) == allowed(python, vocabulary)
        assert 0 < masks.num_memo_bytes - before < row_bytes / 2
        assert native.advance_bytes(b"abc")
        assert python.advance_bytes(b"abc")
