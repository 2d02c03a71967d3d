"""GBNF grammars: what each construct means. Real formats stand in test_lark.py, with those in Lark."""

from __future__ import annotations

import pytest
from cfg_checks import accepted_texts, check

from radixlm.grammar.spec import Gbnf, JsonSchema, StructuralTag, Tag


def test_rules_literals_groups_and_repeats() -> None:
    check(
        Gbnf('root ::= "a" ("b" | x-1)* "d"? "e"+ | "x"{2} | "x"{4,} | "y"{1,2} "ab"{2}\nx-1 ::= "c"'),
        ["ae", "abcbdee", "xx", "xxxx", "xxxxxx", "yabab", "yyabab"],
        ["", "a", "adde", "x", "xxx", "abab", "yyyabab", "yab", "yabb"],
    )  # fmt: skip


def test_a_rule_may_have_several_lines() -> None:
    text = (
        'root ::=\n  "a" # one\n  | (\n  "b"\n\n "c" |\n "d")\n  |\n  "e"\nx ::= root\r\ny ::= ""'
    )
    check(Gbnf(text), ["a", "bc", "d", "e"], ["", "b", "ad"])


@pytest.mark.parametrize(
    ("text", "passing", "failing"),
    [
        ("[a-c]", "abc", "d-"), ("[^a-c]", "d\nA-é", "abc"), ("[-a]", "-a", "b"), ("[a-]", "-a", "b"), ("[+-/]", "+,-./", "a0"),
        (r"[\n\t\]\[\\]", "\n\t][\\", "nt"), (r"[\x41-\x43é\u0416\U0001F600]", "ABCéЖ😀", "Dx"), (".", "a\n😀", ""), ("[^x^]", "y", "x^"),
        (r'"\n\"\x41\u00e9"', ['\n"Aé'], ["n", '\n"A']),
    ],
)  # fmt: skip
def test_characters(text: str, passing: str, failing: str) -> None:
    check(Gbnf(f"root ::= {text}"), passing, ["", *failing])


def test_alternatives_may_be_empty() -> None:
    check(Gbnf('root ::= "a" | \nx ::= "b"'), ["", "a"], ["b"])
    check(Gbnf('root ::= ("a" |) "b"'), ["b", "ab"], [""])


@pytest.mark.parametrize(
    "rules",
    [
        'root ::= root "a" | "b"',
        'root ::= x "a" | "b"\nx ::= root',
        'root ::= e root "a" | "b"\ne ::= ""',
        'root ::= x\nx ::= y "a" | "b"\ny ::= "c"? x "c"?',
    ],
)
def test_left_recursion_of_every_kind(rules: str) -> None:
    found = accepted_texts(Gbnf(rules), "abc", 4)
    assert {"b", "ba", "baa", "baaa"} <= found
    assert found & {"", "a", "ab"} == set()


def test_a_grammar_can_be_the_content_of_a_tag() -> None:
    spec = StructuralTag(
        (
            Tag("<c>", Gbnf('root ::= "(" root ")" | "x"'), "</c>", "<c>"),
            Tag("<j>", JsonSchema('{"const": 1}'), "</j>", "<j>"),
        )
    )
    check(spec, ["", "so <c>((x))</c><j>1</j>"], ["<c>((x)</c>", "<c>1</c>"])


def test_a_long_repeat_is_counted() -> None:
    check(
        Gbnf('root ::= [a-z]{3,30000} "."'), ["abc.", "x" * 30000 + "."], ["ab.", "x" * 30001 + "."]
    )
