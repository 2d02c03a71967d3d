"""What Lark and GBNF grammars are refused for: place, word, and the line with a caret. Broken texts raise nothing but GrammarError."""

from __future__ import annotations

import contextlib
import os
import random
import time

import pytest
from cfg_checks import VOCABULARY, refusal
from sample_grammars import SAMPLES

from radixlm.errors import GrammarError
from radixlm.grammar.expr import Limits
from radixlm.grammar.frontends import build
from radixlm.grammar.spec import Gbnf, Lark

FUZZ_S = float(os.environ.get("RADIXLM_FUZZ_S", "2"))

LARK_ERRORS = [
    ('start: "a', "1:8", "string"),
    ('start: "a\n  | "b"', "1:8", "string"),
    ("start: /a", "1:8", "regexp"),
    ("start: /a\nb: /c/", "1:8", "regexp"),
    ('start "a"', "1:7", "syntax"),
    ('start: "a" )', "1:12", "syntax"),
    ('start: ("a"\nb: "x"', "2:2", "syntax"),
    ('start: ["a"', "1:12", "syntax"),
    ("start: $", "1:8", "syntax"),
    (': "a"', "1:1", "syntax"),
    ('start: x\nx: "a"\n\n  | yy', "4:5", "yy"),
    ("start: NAME", "1:8", "NAME"),
    ('strat: "a"', "1:1", "start"),
    ("", "1:1", "start"),
    ('start: "a"\nstart: "b"', "2:1", "duplicate"),
    ('%import common.INT\nINT: "b"', "2:1", "duplicate"),
    ('start: start "a"', "1:1", "unsatisfiable"),
    ('x: "b"\nstart: y\ny: z "a"\nz: y', "2:1", "unsatisfiable"),
    ("start: A\nA: B\nB: /x/ A", "3:8", "recursion"),
    ("start: A\nA: A", "2:4", "recursion"),
    ('start: A\nA: start "x"', "2:4", "terminal"),
    ("start: A\nA: %json {}", "2:10", "%json"),
    ('start: "a" & "b"', "1:12", "&"),
    ('start: ~"b"', "1:8", "&"),
    ('start: A\nA: ~ | "b"', "2:6", "syntax"),
    ('start: "a"~3..1', "1:11", "repeat"),
    ('start: "a"~-1', "1:12", "repeat"),
    ('start: "a"{2000000}', "1:12", "repeat_bound"),
    ('start: "a"~2..99999999999999999999', "1:15", "repeat_bound"),
    ('start: "a"{1', "1:13", "syntax"),
    ('start: "z".."a"', "1:8", "range"),
    ('start: "ab".."c"', "1:8", "range"),
    ('start: "a".."c"i', "1:13", "range"),
    ('start: "a"..', "1:13", "syntax"),
    ('start: "x\\qy"', "1:10", "escape"),
    ('start: "\\ud800"', "1:9", ""),
    ('start: "\\U00110000"', "1:9", ""),
    ("start: /ab(c/", "1:11", "regex"),
    ("start: /ab(?P<x>c)(?P=x)/", "1:19", "backreference"),
    ("start: /(?i)a{3000000}/", "1:14", "repeat_bound"),
    ("start: /a/z", "1:11", "flag"),
    ("start: /a\\b/", "1:8", "lookaround"),
    ("start: /a(?=b)c?/", "1:8", "lookaround"),
    ("start: /(\\bx|y)z/", "1:8", "lookaround"),
    ("start: /(?<!a)b/", "1:8", "lookaround"),
    ('Start: "a"', "1:1", "name"),
    ("start: fooBar", "1:8", "name"),
    ('__: "a"', "1:1", "name"),
    ('start: "a" -> b c', "1:17", "syntax"),
    ('start: "a" -> "b"', "1:15", "syntax"),
    ('start: a{"x"}\na{x, y}: x y', "1:8", "template"),
    ("start: a\na{x}: x", "1:8", "template"),
    ('start: b{"x"}\nb: "x"', "1:8", "template"),
    ("start: a{b}\na{x}: x{b}\nb:", "2:7", "template"),
    ("a{x, x}: x", "1:6", "template"),
    ("a{X}: X", "1:3", "template"),
    ('A{x}: "a"', "1:1", "template"),
    ('start: a{"b"}\na{x}: x a{(x "c")}', "2:9", "template"),
    ("start: <think>", "1:8", "token"),
    ("start: @other", "1:8", "reference"),
    ("start[lazy]: /a/", "1:7", "lazy"),
    ('start: a\na[capture, max_tokens=3]: "b"', "2:12", "max_tokens"),
    ('start[capture="x": "a"', "1:18", "syntax"),
    ("start::0: /a/", "1:6", "parametric"),
    ('root ::= "a"', "1:6", "::="),
    ('%declare X\nstart: "a"', "1:1", "%declare"),
    ("start: %regex {}", "1:8", "syntax"),
    ("%import python.NAME", "1:9", "%import"),
    ("%import .other.X", "1:9", "syntax"),
    ("%import common.NAMES", "1:16", "NAMES"),
    ("%import common (INT, NAMES)", "1:22", "NAMES"),
    ('start: "a"\n%override b: "c"', "2:11", "b"),
    ('%llguidance {"no_forcing": true}', "1:14", "%llguidance"),
    ('%llguidance {"skip_repetition": "twice"}', "1:33", "%llguidance"),
    ('start: %json {"a"', "1:18", "%json"),
    ('start: %json {"type":\n "strin"}', "1:14", "type"),
    ('start: "a"\n%ignore b\nb: " "', "2:9", "terminal"),
    ('start: "a" "\ud800"', "1:13", ""),
]  # fmt: skip

GBNF_ERRORS = [
    ('root ::= "a', "1:10", "string"),
    ('root ::= "a\n"', "1:10", "string"),
    ("root ::= [a", "1:10", "class"),
    ("root ::= []", "1:10", "class"),
    ("root ::= [z-a]", "1:11", "class"),
    ('root := "a"', "1:6", "syntax"),
    ('root ::= ("a"\nb ::= "x"', "2:1", "syntax"),
    ('root ::= "a" )', "1:14", "syntax"),
    ("root ::= *", "1:10", "syntax"),
    ("= x", "1:1", "syntax"),
    ("root ::= x-y", "1:10", "x-y"),
    ('root ::= "a"\nunused ::= y', "2:12", "y"),
    ('x ::= "a"', "1:1", "root"),
    ("", "1:1", "root"),
    ('root ::= "a"\n\nroot ::= "b"', "3:1", "duplicate"),
    ('root ::= root "a"', "1:1", "unsatisfiable"),
    ('root ::= "a"{3,1}', "1:13", "repeat"),
    ('root ::= "a"{,1}', "1:13", "repeat"),
    ('root ::= "a"{x}', "1:13", "repeat"),
    ('root ::= "a"{1,9999999}', "1:16", "repeat_bound"),
    ('root ::= "a\\q"', "1:12", "escape"),
    ("root ::= [\\x4]", "1:11", "escape"),
    ('root ::= "\\uDFFF"', "1:11", ""),
    ("root ::= <think>", "1:10", "token"),
    ("root ::= !<[1000]>", "1:10", "token"),
    ('root ::= "a" (= "b")', "1:14", "lookahead"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "place", "keyword"), LARK_ERRORS)
def test_an_error_in_a_lark_grammar_has_its_place(text: str, place: str, keyword: str) -> None:
    check_error(refusal(Lark(text)), text, place, keyword)


@pytest.mark.parametrize(("text", "place", "keyword"), GBNF_ERRORS)
def test_an_error_in_a_gbnf_grammar_has_its_place(text: str, place: str, keyword: str) -> None:
    check_error(refusal(Gbnf(text)), text, place, keyword)


def check_error(error: GrammarError, text: str, place: str, keyword: str) -> None:
    assert (error.place, error.keyword) == (place, keyword), error
    line, column = map(int, place.split(":"))
    message, shown, caret = error.message.split("\n")
    assert message
    assert shown == "    " + "".join(
        c if c.isprintable() else " " for c in text.split("\n")[line - 1]
    )
    assert caret == " " * (4 + column - 1) + "^"


def test_an_error_shows_the_line_under_the_message_and_says_what_could_be_meant() -> None:
    error = refusal(Lark('start: expression\nexpresion: "a"'))
    assert str(error) == (
        "the rule expression is not defined\n"
        "    start: expression\n"
        "           ^ (at 1:8). Did you mean expresion?"
    )


def test_of_a_long_line_the_part_around_the_place_is_shown() -> None:
    text = "start: " + '"a" ' * 500 + "missing " + '"b" ' * 500
    error = refusal(Lark(text))
    _, shown, caret = error.message.split("\n")
    assert len(shown) == 104
    assert shown[caret.index("^") :].startswith("missing")
    assert error.place == "1:2008"


@pytest.mark.parametrize("kind", [Lark, Gbnf])
def test_each_limit_is_an_error_that_names_it(kind: type) -> None:
    begin = "start: " if kind is Lark else "root ::= "

    def keyword(body: str, **limits: int) -> str:
        return refusal(kind(begin + body), Limits(**limits)).keyword

    assert keyword('"abc"', spec_bytes=10) == "spec_bytes"
    assert keyword("(" * 30 + '"a"' + ")" * 30, depth=20) == "depth"
    assert keyword('"a"{50}', repeat_bound=40) == "repeat_bound"
    assert (
        keyword(" ".join(["[ab]"] * 500 if kind is Gbnf else ["/[ab]/?"] * 500), expressions=200)
        == "expressions"
    )
    assert keyword('"abc" "d"', states=3) == "states"


def test_brackets_nest_as_deep_as_the_limit_allows() -> None:
    deep = "(" * 200 + '"a"' + ")" * 200
    build(Lark(f"start: {deep}"), Limits())
    build(Gbnf(f"root ::= {deep}"), Limits())
    assert refusal(Lark(f"start: ({deep})")).keyword == "depth"
    assert refusal(Gbnf(f"root ::= ({deep})")).keyword == "depth"
    build(Lark(f"start: {'(' * 5000}{')' * 5000}"), Limits(depth=5000))


def test_templates_are_bounded_in_number_and_size() -> None:
    chain = "\n".join(f"t{i}{{x}}: t{i - 1}{{(x x)}} t{i - 1}{{x}}" for i in range(1, 100))
    assert refusal(Lark(f'start: t99{{"a"}}\n{chain}\nt0{{x}}: x')).keyword == "template"
    long = "t{x}: " + 'x "y" ' * 2000
    uses = " ".join(f't{{"{number}"}}' for number in range(500))
    assert refusal(Lark(f"start: {uses}\n{long}")).keyword == "expressions"


def test_broken_texts_raise_grammar_errors_only() -> None:
    """Known grammars with characters changed, lines cut and joined. RADIXLM_FUZZ_S: for how many seconds."""
    rng = random.Random(7)
    texts = [sample.spec.text for sample in SAMPLES] + [
        text for text, *_ in LARK_ERRORS + GBNF_ERRORS
    ]
    characters = "".join(sorted(set("".join(texts)))) + "\0\r\x85\u2028é😀"
    end_s = time.monotonic() + FUZZ_S
    num_texts = 0
    while time.monotonic() < end_s:
        text = broken(rng, rng.choice(texts), rng.choice(texts), characters)
        for spec in (Lark(text), Gbnf(text)):
            num_texts += 1
            with contextlib.suppress(GrammarError):
                build(spec, Limits())
    assert num_texts > 50
    assert len(VOCABULARY.alphabet) == 256


def broken(rng: random.Random, text: str, other: str, characters: str) -> str:
    for _ in range(rng.randint(1, 4)):
        at, to = sorted(rng.randint(0, len(text)) for _ in range(2))
        how = rng.randrange(5)
        if how == 0:
            text = text[:at] + rng.choice(characters) + text[at:]
        elif how == 1:
            text = text[:at] + text[at + 1 :]
        elif how == 2:
            text = text[:at] + text[min(to, at + 20) :]
        elif how == 3:
            start = rng.randint(0, len(other))
            text = text[:at] + other[start : start + 15] + text[at:]
        else:
            text = text[:to] + text[at:to] * rng.randint(1, 3) + text[to:]
    return text
