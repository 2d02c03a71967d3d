"""The flat program: the same after a round trip, and an error instead of a crash for any damage."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pytest
from grammar_strategies import grammars
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_vocabulary import accepts, byte_vocabulary, matcher_of

from radixlm.errors import GrammarError
from radixlm.grammar.compiler import compile_grammar, compile_spec
from radixlm.grammar.expr import Grammar, chars, lit, opt, ref, repeat, seq
from radixlm.grammar.program import GrammarProgram
from radixlm.grammar.spec import Regex

VOCABULARY = byte_vocabulary()
RULES = {
    "start": seq(lit("<"), opt(ref("start")), repeat(chars("é", (97, 122)), 3, 500), lit("end>"))
}
PROGRAM = compile_grammar(Grammar(RULES, "start"), VOCABULARY.alphabet)


def is_same(left: GrammarProgram, right: GrammarProgram) -> bool:
    return all(
        np.array_equal(getattr(left, f.name), getattr(right, f.name))
        for f in fields(GrammarProgram)
        if f.name != "body"
    )


@given(grammars())
@settings(max_examples=40, deadline=None)
def test_a_round_trip_changes_nothing(grammar: Grammar) -> None:
    try:
        program = compile_grammar(grammar, VOCABULARY.alphabet)
    except GrammarError:
        return
    copy = GrammarProgram.from_bytes(program.to_bytes())
    assert is_same(program, copy)
    assert copy.to_bytes() == program.to_bytes()


def test_another_process_compiles_the_same_bytes() -> None:
    code = (
        "import sys; from radixlm.grammar.compiler import compile_spec; from radixlm.grammar.spec import Regex;"
        "sys.stdout.buffer.write(compile_spec(Regex(r'(a|b\\\\d){2,300}x*'), bytes([1]*256)).to_bytes())"
    )
    ours = compile_spec(Regex(r"(a|b\\d){2,300}x*"), bytes([1] * 256)).to_bytes()
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        )
        assert done.stdout == ours
    program = GrammarProgram.from_bytes(ours)
    assert accepts(matcher_of(program, VOCABULARY), b"a" * 300)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_damaged_byte_is_found(data: st.DataObject) -> None:
    raw = bytearray(PROGRAM.to_bytes())
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(GrammarError):
        GrammarProgram.from_bytes(bytes(raw))


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_damage_under_a_right_checksum_is_refused_or_harmless(data: st.DataObject) -> None:
    raw = bytearray(PROGRAM.to_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(24, len(raw) - 1))] = data.draw(
            st.sampled_from([0, 1, 2, 127, 128, 255])
        )
    raw[8:24] = hashlib.blake2b(raw[24:], digest_size=16).digest()
    try:
        program = GrammarProgram.from_bytes(bytes(raw))
        matcher_of(program, VOCABULARY).fork().advance_bytes(b"<aaaend>")
    except GrammarError:
        return  # at load, or where the matcher meets what no check at load sees


def test_wrong_lengths_are_refused() -> None:
    raw = PROGRAM.to_bytes()
    for damaged in (b"", raw[:10], raw[:-1], raw + b"x", b"RXGP0000" + raw[8:]):
        with pytest.raises(GrammarError):
            GrammarProgram.from_bytes(damaged)
    body = (2**63 - 1).to_bytes(8, "little")
    with pytest.raises(GrammarError, match="wrong size"):
        GrammarProgram.from_bytes(
            b"RXGP0002" + hashlib.blake2b(body, digest_size=16).digest() + body
        )


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("edge_to", 10**6, "leaves its range"),
        ("call_region", -1, "leaves its range"),
        ("loop_lo", 0, "bound"),
        ("loop_hi", 1, "bound"),
        ("distances", -5, "bound"),
        ("edge_from", 0, "not sorted"),
    ],
)
def test_every_wrong_value_is_refused(name: str, value: int, reason: str) -> None:
    column = getattr(PROGRAM, name).copy()
    column[-1] = value
    with pytest.raises(GrammarError, match=reason):
        replace(PROGRAM, body=b"", **{name: column}).check()
