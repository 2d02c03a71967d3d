"""Programs of the native compiler, and their comparison with the Python passes and with the definition."""

from __future__ import annotations

import random

from expr_oracle import Oracle
from toy_vocabulary import accepts, allowed, byte_vocabulary, matcher_of

from radixlm.errors import GrammarError
from radixlm.grammar.compiler import compile_by_passes
from radixlm.grammar.expr import (
    Expr,
    Grammar,
    Limits,
)
from radixlm.grammar.native.compiling import compile_body
from radixlm.grammar.program import GrammarProgram

VOCABULARY = byte_vocabulary(b"ab", b"ba", b"aab", b"abab", b"b,", b",a")


def native(grammar: Grammar, limits: Limits | None = None) -> GrammarProgram:
    """The native program, checked as one that came over a socket."""
    program = GrammarProgram.from_body(compile_body(grammar, VOCABULARY.alphabet, limits))
    program.check()
    return program


def of(expr: Expr, limits: Limits | None = None, **rules: Expr) -> GrammarProgram:
    return native(Grammar({"start": expr, **rules}, "start"), limits)


def refusal(grammar: Grammar, limits: Limits | None = None, *, is_native: bool = False) -> str:
    """The keyword that the Python passes (or the native ones) refuse a grammar with, or ''."""
    try:
        if is_native:
            native(grammar, limits)
        else:
            compile_by_passes(grammar, VOCABULARY.alphabet, limits or Limits())
    except GrammarError as error:
        return error.keyword
    return ""


def assert_same(grammar: Grammar, *, most: int = 120, seed: int = 0) -> None:
    """Both programs agree on texts, masks and distances wherever a walk of tokens leads, breadth first."""
    wanted = refusal(grammar)
    if wanted:
        assert refusal(grammar, is_native=True) == wanted
        return
    right = matcher_of(compile_by_passes(grammar, VOCABULARY.alphabet, Limits()), VOCABULARY)
    left = matcher_of(native(grammar), VOCABULARY)
    rng = random.Random(seed)
    work = [(left, right, b"")]
    seen = {b""}
    for mine, theirs, text in work:
        mask = allowed(mine, VOCABULARY)
        assert mask == allowed(theirs, VOCABULARY), text
        assert mine.is_accepting == theirs.is_accepting, text
        assert mine.distance() == theirs.distance(), text
        tokens = sorted(token for token in mask if VOCABULARY.token_bytes[token] is not None)
        for token in rng.sample(tokens, min(6, len(tokens))):
            after = text + (VOCABULARY.token_bytes[token] or b"")
            if after in seen or len(after) > 9 or len(work) >= most:
                continue
            seen.add(after)
            pair = (mine.fork(), theirs.fork(), after)
            assert pair[0].advance(token)
            assert pair[1].advance(token)
            work.append(pair)


def check_against_definition(grammar: Grammar, letters: bytes, most: int) -> None:
    """Acceptance, live beginnings and the distance at the start, for all texts over `letters` up to `most` bytes."""
    oracle = Oracle(grammar)
    texts = [b""]
    for text in texts:
        texts += [text + bytes([byte]) for byte in letters] if len(text) < most else []
    wanted = {text for text in texts if oracle.accepts(text)}
    if refusal(grammar, is_native=True) == "unsatisfiable":
        assert not wanted
        return
    program = native(grammar)
    matcher = matcher_of(program, VOCABULARY)
    assert {text for text in texts if accepts(matcher, text)} == wanted
    if wanted:
        assert program.distances[program.start] == matcher.distance() == min(map(len, wanted))
