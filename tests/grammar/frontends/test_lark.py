"""Lark grammars: what each construct means, and real formats."""

from __future__ import annotations

import random
import re

import pytest
from cfg_checks import VOCABULARY, accepted_texts, check, matcher, refusal
from sample_grammars import SAMPLES, Sample
from toy_vocabulary import EOS, accepts, allowed, vocabulary_of

from radixlm.grammar.compiler import compile_spec
from radixlm.grammar.frontends.lark.standard_terminals import STANDARD_TERMINALS
from radixlm.grammar.masks import TokenMasks
from radixlm.grammar.matcher import Matcher
from radixlm.grammar.spec import JsonSchema, Lark, StructuralTag, Tag, spec_key


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_grammar_of_a_real_format(sample: Sample) -> None:
    check(sample.spec, sample.passing, sample.failing)


def test_rules_strings_groups_and_repeats() -> None:
    check(
        Lark('start: "a" ("b" | "c")* ["d"] "e"? "f"+ | x~2 | x~4..5 | "-" x{2} | "-" x{4,}\nx: "x"'),
        ["af", "abcbdeff", "xx", "xxxx", "xxxxx", "-xx", "-xxxx", "-xxxxxxx"],
        ["", "a", "adde", "x", "xxx", "xxxxxx", "-x", "-xxx"],
    )  # fmt: skip
    check(Lark('start: "a"{,2} "b"'), ["b", "aab"], ["aaab"])


def test_an_alternative_may_stand_on_the_next_line_and_may_be_empty() -> None:
    check(
        Lark('start: "a"\n\n  // or\n  | "b" # comment\n     | x\nx: | "y"'),
        ["a", "b", "", "y"],
        ["ab"],
    )
    check(Lark('start: ("a"\n  "b" // inside\n) \\\n  "c"\n'), ["abc"], ["ab", "c"])


def test_what_is_for_the_syntax_tree_only_changes_nothing() -> None:
    check(
        Lark(
            '!start.2: _a -> first | ?\nb: "x"'.replace("| ?\n", "| b -> second\n?") + '\n_a: "a"'
        ),
        ["a", "x"],
        [""],
    )


def test_what_names_parts_of_the_output_for_llguidance_changes_nothing() -> None:
    text = '%llguidance {}\n\nstart: x["b"]\nx[capture, capture="y"]: X\n\nX: "a"\n     | "c"\n\n'
    check(Lark(text), ["a", "cb"], ["b", ""])


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        (r'"\n\t\r\f\\\""', '\n\t\r\f\\"'),
        (r'"\x41\u00e9\U0001F600"', "Aé😀"),
        ('"// # no comment"', "// # no comment"),
        (r'"é"', "é"),
    ],
)
def test_escapes_in_strings(literal: str, text: str) -> None:
    check(Lark(f"start: {literal}"), [text], ["", text + "x", text[:-1]])


def test_the_flag_i_ignores_case_also_beyond_ascii() -> None:
    check(Lark('start: "Straße"i'), ["STRAßE", "straße", "sTRAẞe"], ["strasse"])
    check(Lark('start: "a"i "b"'), ["Ab", "ab"], ["aB"])


def test_flags_of_regular_expressions() -> None:
    check(Lark("start: /a b # c\n  [cd]/x /./s /E/i"), ["abc\ne", "abdxE"], ["a bcxe"])
    check(Lark(r"start: /(?i)ab/ /\w/a"), ["aBx"], ["abé"])
    check(Lark(r"start: /[\/]x\//"), ["/x/"], ["x"])
    check(Lark("start: /^a$/ /b/"), ["ab"], ["a"])


def test_ranges() -> None:
    check(Lark('start: "a".."c" "\\u0430".."я"'), ["aж", "cя"], ["dж", "ax"])


def test_terminals_are_made_of_terminals_and_nothing_is_ignored_inside_them() -> None:
    text = 'start: WORD "!" \nWORD: LETTER+ ("-" LETTER+)?\nLETTER: "a".."c"\n%ignore " "'
    check(Lark(text), ["ab-c!", " ab !  ", "a!"], ["a b!", "ab - c!", ""])


def test_terminals_know_and_and_not() -> None:
    text = "start: A+\nA: LINE & ~/(?s:.*)bad(?s:.*)/ | B\nLINE: /[a-z ]+;/\nB: ~/[^x]*/{2} & /x../"
    check(Lark(text), ["good;", "a b;c;", "xax"], ["so bad it is;", "xaa"])


def test_ignored_text_may_be_any_of_several_and_any_number_of_times() -> None:
    text = 'start: "a" "b"\n%ignore /\\s/\n%import common.C_COMMENT\n%ignore C_COMMENT | "~"'
    check(Lark(text), ["ab", "  a /* x */\n~b\t", "/**/ab/* * / **/"], ["/a*/b", "a x b"])


def test_ignored_text_can_be_bounded_to_one_piece() -> None:
    bounded = '%llguidance {"skip_repetition": "once"}\n'
    text = bounded + 'start: item+\nitem: /[ab]*/ "," | ";"\n%ignore / {1,2}/'
    check(Lark(text), [",", "ab , ;", "  a,  b,", " ,"], ["   ,", "a   ,", ",   ;", "a,   "])


def test_a_keyword_of_higher_priority_is_no_name() -> None:
    text = 'start: (IF | NAME)+\nIF{priority}: "if"\nNAME: /[a-z]+/\n%ignore " "\n'
    only_names = 'start: "!" NAME\nif_: IF\nIF.1: "if"\nNAME: /[a-z]+/\n'
    check(Lark(text.replace("{priority}", ".2")), ["if", "iff x"], [])
    spec = Lark('start: NAME "=" NAME | IF NAME\nIF.2: "if"\nNAME: /[a-z]+/\n%ignore " "')
    check(spec, ["a = b", "if a", "iff = x"], ["if = a", "a = if", "if if"])
    same = Lark('start: NAME "=" NAME | IF NAME\nIF: "if"\nNAME: /[a-z]+/\n%ignore " "')
    check(same, ["if = a", "if if"], [])
    lower = Lark('start: NAME | "if" NAME\nNAME.-1: /[a-z]+/\n%ignore " "')
    check(lower, ["iff", "if a"], ["if"])
    check(Lark(only_names), ["!if"], [])  # IF is not used where texts are made


def test_a_string_keeps_its_text_whatever_has_a_higher_priority() -> None:
    check(Lark('start: "if" NAME\nNAME.2: /[a-z]+/\n%ignore " "'), ["if a"], ["a"])


def test_lazy_repeats_take_the_shortest_text() -> None:
    check(Lark('start: S ("," S)*\nS: /".*?"/'), ['"a"', '"a","b"'], ['"a"b"', '"a" "b"'])
    check(Lark('start: /<.+?>/ "x"'), ["<a>x", "<>>x"], ["<a>b>x"])


def test_templates_are_expanded_for_each_set_of_arguments() -> None:
    text = """
start: _list{INT, ","} | _list{INT, "+"} | _list{pair{"a", "b"}, ";"} | "(" _list{("x" | "y" "z"), _blank} ")"
_list{item, separator}: item (separator item)*
pair{x, y}: x y | y x
_blank: " "
INT: /[0-9]+/
"""
    check(
        Lark(text),
        ["1,22,3", "1+2", "ab;ba", "(x yz x)", "ab"],
        ["1;2", "1,2+3", "aa", "(xyz)", "ab,ba", ""],
    )


def test_templates_may_be_recursive_with_equal_arguments() -> None:
    text = 'start: nest{"a", "b"}\nnest{x, y}: x nest{y, x} y | "."'
    check(Lark(text), [".", "a.b", "ab.ab", "aba.bab"[:3] + ".bab"], ["a.a", "ab.ba"])


def test_overriding_and_extending() -> None:
    text = """
%import common.NUMBER
%override NUMBER: /[0-9]/
%extend value: "none"
"""
    check(
        Lark('start: value\nvalue: NUMBER\n' + text), ["1", "none"], ["12", ""]
    )  # fmt: skip


def test_an_import_may_have_another_name() -> None:
    check(
        Lark("start: N W\n%import common.INT -> N\n%import common (WORD, DIGIT)\nW: WORD DIGIT"),
        ["12ab3"],
        ["1a"],
    )


@pytest.mark.parametrize(
    ("name", "passing", "failing"),
    [
        ("DIGIT", "0 9", "a 10"), ("HEXDIGIT", "0 f A", "g"), ("INT", "0 007 12", "-1 1.0"),
        ("SIGNED_INT", "+1 -2 3", "+ 1."), ("DECIMAL", "1. .5 1.5", "1 . 1e5"),
        ("FLOAT", "1e5 1.e5 .5 1.5E-3", "1 e5 -1.0"), ("SIGNED_FLOAT", "-1.0 +.5", "1 -1"),
        ("NUMBER", "1 1.5 1e5 .5", "-1 1e . +1"), ("SIGNED_NUMBER", "-1 +1.5 2", "- 1-"),
        ("LCASE_LETTER", "a", "A aa"), ("UCASE_LETTER", "A", "a"), ("LETTER", "a Z", "1 é"), ("WORD", "abC", "a1"),
        ("CNAME", "a _a1 A", "1a a-b"),
    ],
)  # fmt: skip
def test_the_words_of_the_module_common(name: str, passing: str, failing: str) -> None:
    check(Lark(f"start: {name}\n%import common.{name}"), passing.split(), failing.split())


def test_the_other_terminals_of_the_module_common() -> None:
    for name, passing, failing in (
        ("ESCAPED_STRING", ['""', '"a\\"b"', '"\\\\"'], ['"', '"a"b"', '"\\"', '"\n"']),
        ("WS", [" \t\f\r\n"], ["", "a"]), ("WS_INLINE", [" \t"], ["\n", ""]), ("CR", ["\r"], ["\n"]), ("LF", ["\n"], ["\r"]),
        ("NEWLINE", ["\n", "\r\n\n"], ["\r", ""]), ("SH_COMMENT", ["#", "# a"], ["#\n"]), ("CPP_COMMENT", ["// a"], ["/ a"]),
        ("C_COMMENT", ["/**/", "/* a * b **/"], ["/*/", "/* */ */"]), ("SQL_COMMENT", ["-- a"], ["-", "--\n"]),
    ):  # fmt: skip
        check(Lark(f"start: {name}\n%import common.{name}"), passing, failing)
    assert all(re.compile(pattern) for pattern in STANDARD_TERMINALS.values())


@pytest.mark.parametrize(
    "rules",
    [
        'start: start "a" | "b"',  # direct
        'start: x "a" | "b"\nx: start',  # indirect
        'start: e start "a" | "b"\ne:',  # hidden behind what is empty
        'start: x\nx: y "a" | "b"\ny: ["c"] x ["c"]',
    ],
)
def test_left_recursion_of_every_kind(rules: str) -> None:
    found = accepted_texts(Lark(rules), "abc", 4)
    assert {"b", "ba", "baa", "baaa"} <= found
    assert found & {"", "a", "ab"} == set()


def test_a_schema_may_stand_in_a_rule() -> None:
    text = """start: "call " NAME %json {
  "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false
} ";"
NAME: /[a-z]+/
%ignore " "
"""
    check(Lark(text), ['call f{"n":1};', 'call f {"n":12} ; '], ["call f{};", 'call f{"n":1}', 'f{"n":1};'])  # fmt: skip


def test_the_start_may_be_another_rule_or_a_terminal() -> None:
    text = 'a: "x"\nb: a a\nC: "c"\n%ignore " "'
    check(Lark(text, "b"), ["xx", " x x "], ["x"])
    check(Lark(text, "C"), ["c", " c "], ["x", ""])


def test_a_grammar_can_be_the_content_of_a_tag() -> None:
    call = Lark('start: NAME "(" [start ("," start)*] ")"\nNAME: /[a-z]+/')
    schema = JsonSchema('{"const": 1}')
    spec = StructuralTag((Tag("<c>", call, "</c>", "<c>"), Tag("<j>", schema, "</j>", "<j>")))
    check(spec, ["", "so <c>f(g(),h())</c><j>1</j>"], ["<c>f(</c>", "<c>1</c>"])
    alone = StructuralTag((Tag("<j>", schema, "</j>", "<j>"),), free_text=False, answer=call)
    check(alone, ["f()", "<j>1</j>"], ["<j>f()</j>", "1"])


def test_equal_grammars_have_equal_keys_and_programs() -> None:
    text = 'start: _l{"a", ","} | %json {"type": "integer"}\n_l{x, y}: x (y x)*'
    assert spec_key(Lark(text)) == spec_key(Lark(text)) != spec_key(Lark(text, "other"))
    programs = {compile_spec(Lark(text), VOCABULARY.alphabet).to_bytes() for _ in range(2)}
    assert len(programs) == 1


def test_every_state_can_end_and_tokens_run_over_terminals() -> None:
    vocabulary = vocabulary_of(*(bytes([b]) for b in range(256)), b"1+", b"+(", b"))", b"+)", b"2)")
    spec = Lark('start: start "+" t | t\nt: /[0-9]/ | "(" start ")"')
    start = Matcher(TokenMasks(compile_spec(spec, vocabulary.alphabet), vocabulary))
    assert accepts(start, b"1+(2)")
    fork = start.fork()
    assert fork.advance_bytes(b"(1+(2")
    assert fork.distance() == 2


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_random_walks_over_the_masks_end_in_texts_of_the_language(sample: Sample) -> None:
    rng = random.Random(5)
    start = matcher(sample.spec)
    for _ in range(3):
        here, text = start.fork(), b""
        for left in range(40, 0, -1):
            budget = max(left, here.distance())
            ids = sorted(allowed(here, VOCABULARY, budget))
            assert ids, text
            token = rng.choice(ids)
            if token == EOS:
                break
            text += bytes([token - 2])
            assert here.advance(token)
        while not here.is_accepting:
            token = min(allowed(here, VOCABULARY, here.distance()) - {EOS})
            text += bytes([token - 2])
            assert here.advance(token)
        check(sample.spec, [text.decode()], [])


def test_strings_that_double_from_terminal_to_terminal_are_bounded() -> None:
    lines = [f"A{i}: A{i - 1} A{i - 1}" for i in range(1, 60)]
    assert refusal(Lark("\n".join(["start: A59", 'A0: "ab"', *lines]))).keyword == "spec_bytes"
    regexps = Lark("\n".join(["start: A59 | B", "B.1: /b*/", "A0: /[ab]/", *lines]))
    assert refusal(regexps).keyword == "product_states"
    deep = Lark("\n".join(["start: A9", "A0: /[ab]/", *lines[:9]]))
    assert accepts(matcher(deep), b"ab" * 256)
