"""What masks share: one walk for many states, slices of text tokens, and bounds on distances that never undercut."""

from __future__ import annotations

import pytest
from toy_vocabulary import EOS, allowed, byte_vocabulary, vocabulary_of

from radixlm.grammar.compiler import compile_grammar, compile_spec
from radixlm.grammar.expr import Expr, Grammar, alt, chars, lit, opt, plus, ref, repeat, seq, star
from radixlm.grammar.masks import TokenMasks
from radixlm.grammar.matcher import Matcher
from radixlm.grammar.spec import Regex
from radixlm.grammar.vocabulary import Vocabulary

STRING: Expr = seq(
    lit('"'),
    repeat(alt(chars((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x10FFFF)), lit("\\n")), 0, 500),
    lit('"'),
)


def masks_of(expr: Expr, vocabulary: Vocabulary, **rules: Expr) -> TokenMasks:
    program = compile_grammar(Grammar({"start": expr, **rules}, "start"), vocabulary.alphabet)
    return TokenMasks(program, vocabulary)


def test_string_bodies_of_all_keys_depths_and_counts_share_one_walk() -> None:
    vocabulary = byte_vocabulary(b'",', b'"}', b'"]', b"abc", "é!".encode())
    value = ref("value")
    masks = masks_of(
        value,
        vocabulary,
        value=alt(
            STRING,
            seq(lit("["), opt(seq(value, star(seq(lit(","), value)))), lit("]")),
            seq(lit('{"k":'), value, lit("}")),
        ),
    )
    matcher = Matcher(masks)
    wanted: dict[bytes, set[int]] = {
        b'["': {b'",', b'"]'},
        b'{"k":"': {b'"}'},
        b'[{"k":["': {b'",', b'"]'},
    }  # type: ignore[dict-item]
    sizes: list[int] = []
    for prefix, closers in wanted.items():
        for body in ("", "a", "é" * 30, "x" * 200):
            fork = matcher.fork()
            assert fork.advance_bytes(prefix + body.encode())
            ids = allowed(fork, vocabulary)
            assert {vocabulary.token_bytes[i] for i in ids if i in (258, 259, 260)} == closers
            assert {261, 262, 2 + ord('"'), 2 + ord("\\")} <= ids
            assert 2 + ord("\n") not in ids
            sizes.append(masks.num_memo_bytes)
    assert len(set(sizes)) <= 4, "new memory is taken by the callers' parts only"


@pytest.mark.parametrize("tail", ["b*", "", "[a-c]"])
def test_a_slice_is_taken_only_if_every_character_comes_back(tail: str) -> None:
    """ASCII text returns to the state, other characters do not."""
    texts = [
        "a",
        "b",
        "ab",
        "é",
        "éa",
        "éb",
        "ééb",
        "😀",
        "😀b",
        "😀d",
        "\x7f",
        '"',
        "1",
        "0a",
        "x9",
    ]
    vocabulary = vocabulary_of(
        *(text.encode() for text in texts), *(bytes([byte]) for byte in range(0x80, 0xF5))
    )
    matcher = Matcher(
        TokenMasks(
            compile_spec(Regex(rf"[ !#-\[\]-~]*(?:[^\x00-\x7f]{tail})?"), vocabulary.alphabet),
            vocabulary,
        )
    )
    for token_id, text in enumerate(texts, 2):
        fork = matcher.fork()
        assert (token_id in allowed(matcher, vocabulary)) == fork.advance_bytes(text.encode()), text


def test_a_distance_bound_counts_the_dearest_stack_not_the_cheapest() -> None:
    """Two callers of one region at different counts: only the dear one can take two more a."""
    vocabulary = byte_vocabulary(b"aa")
    shared = seq(
        repeat(lit("a"), 90, 100), opt(chars(*(chr(0x200 + 2 * index) for index in range(40))))
    )
    masks = masks_of(alt(seq(lit("a"), shared, lit("y" * 50)), seq(shared, lit("z"))), vocabulary)
    matcher = Matcher(masks)
    assert matcher.advance_bytes(b"a" * 99)
    assert matcher.distance() == 1
    a, y, z, aa = (*(2 + byte for byte in b"ayz"), 258)
    assert {a, y, z, aa} <= allowed(matcher, vocabulary)
    assert {a, y, z, aa} & allowed(matcher, vocabulary, budget=20) == {a, z}
    assert {a, y, z, aa} & allowed(matcher, vocabulary, budget=50) == {a, y, z}
    assert {a, y, z, aa} & allowed(matcher, vocabulary, budget=51) == {a, y, z, aa}


def test_budgets_hold_inside_free_text() -> None:
    vocabulary = byte_vocabulary(b'"]', b"abc", "é".encode(), "é".encode()[:1] + b"\xa9")
    masks = masks_of(seq(lit("["), STRING, lit("]")), vocabulary)
    matcher = Matcher(masks)
    assert matcher.distance() == 4
    assert matcher.advance_bytes(b'["')
    quote = 2 + ord('"')
    assert allowed(matcher, vocabulary, budget=2) == {quote, 258}
    three = allowed(matcher, vocabulary, budget=3)
    assert {quote, 258, 259, 260, 2 + ord("x")} <= three
    assert 2 + 0xC3 not in three, "an open character needs one more byte"
    assert 2 + 0xC3 in allowed(matcher, vocabulary, budget=4)
    assert 2 + 0xF0 not in allowed(matcher, vocabulary, budget=5)
    assert 2 + 0xF0 in allowed(matcher, vocabulary, budget=6)
    assert allowed(matcher, vocabulary, budget=10**6) == allowed(matcher, vocabulary)


def test_the_outermost_frame_ends_every_token_at_its_end() -> None:
    vocabulary = vocabulary_of(b"a", b"ab", b"aba", b"b")
    matcher = Matcher(masks_of(plus(lit("ab")), vocabulary))
    assert allowed(matcher, vocabulary) == {2, 3, 4}
    assert matcher.advance(3)
    assert allowed(matcher, vocabulary) == {EOS, 2, 3, 4}
