"""Rows about regular expressions, Lark grammars and GBNF: what is written, what becomes of it."""

from __future__ import annotations

from readme_tables import Row, Table

_YES, _NO = "yes", "refused by name"


def _row(name: str, example: str, accepts: str, rejects: str, how: str = _YES) -> Row:
    return Row(
        name, (f"`{example}`" if "\n" not in example else "", how), example, accepts, rejects
    )


def _refused(name: str, example: str, how: str = _NO) -> Row:
    return Row(name, (f"`{example}`" if "\n" not in example else "", how), example)


REGEX_TABLE = Table(
    "regex-syntax",
    "regex",
    ("construct", "for example", "supported"),
    (
        _row("literals and escapes", r"a\.\x41\u00e9\n", "a.A\u00e9\n", "abA\u00e9\n"),
        _row("any character", "a.c", "abc", "a\nc", "yes; with `(?s)` a line break, too"),
        _row("classes", "[a-c_][^x]", "by", "bx"),
        _row(
            "class escapes",
            r"\d\w\s\D\W\S",
            "1a a-b",
            "aa a-b",
            "yes, of Unicode; with `(?a)` of ASCII",
        ),
        _row("groups", "(?:a)(b)(?P<name>c)", "abc", "ab"),
        _row("alternatives", "ab|cd", "cd", "ad"),
        _row("repeats", "a?b*c+", "bc", "aac"),
        _row("counted repeats", "a{2,3}b{2}", "aabb", "abb", "yes, up to the limit `repeat_bound`"),
        _row("lazy repeats", "a+?b", "aab", "b", "yes, as greedy ones: all matches count"),
        _row("flags", "(?i)ab(?s:.)", "aB\n", "ac\n", "`i m s a u x`, for all or for a group"),
        _row("anchors", r"^a\Z|\Ab$", "a", "ab", "yes, anywhere; at the edges they hold anyway"),
        _row("word boundaries", r"a\b.*\Bc", "a-bc", "abc"),
        _row("lookahead", r"(?=.*\d)(?!.*x)[a-z0-9]+", "a1", "ax1"),
        _row("lookbehind", r"\w+(?<!x)\.", "a.", "ax."),
        _row("comments", "a(?#comment)b", "ab", "a#b"),
        _refused("backreferences", r"(a)\1"),
        _refused("named backreferences", r"(?P<n>a)(?P=n)"),
        _refused("conditional groups", r"(a)?(?(1)b|c)"),
        _refused("atomic groups", "(?>a)b"),
        _refused("possessive repeats", "a++b"),
        _refused("look-arounds in look-arounds", "(?=a(?=b))ab"),
    ),
)

LARK_TABLE = Table(
    "lark-syntax",
    "lark",
    ("construct", "for example", "supported"),
    (
        _row("strings, alternatives, groups", 'start: "a" ("b" | "c")', "ac", "ad"),
        _row("strings without case", 'start: "ab"i', "aB", "ac"),
        _row("repeats", 'start: "a"? "b"* "c"+', "bc", "ab"),
        _row("counted repeats", 'start: "a"~2 "b"~1..2 "c"{2}', "aabcc", "abcc"),
        _row("optional parts", 'start: "a" ["b"]', "a", "abb"),
        _row("regular expressions", "start: /[a-c]+/i", "aB", "ad", "as in the table before, matched for themselves"),
        _row("ranges", 'start: "a".."c"', "b", "d"),
        _row("rules and terminals", "start: x NUM\nx: \"a\"\nNUM: /[0-9]/", "a1", "aa", "yes; recursion of any kind"),
        _row("left recursion", 'start: start "+" "a" | "a"', "a+a", "a+"),
        _row("templates", 'start: pair{"a", "b"}\npair{x, y}: x y', "ab", "ba"),
        _row("aliases, ?rule, !rule", '?start: "a" -> one\n!x: "b"', "a", "b", "yes; they change no text"),
        _row("priorities", "start: A\nA.2: \"a\"", "a", "b", "read; they change no text"),
        _row("%ignore", 'start: "a" "b"\n%ignore " "', " a  b", "a-b"),
        _row("%import common", "start: INT\n%import common.INT", "12", "a"),
        _row("%override, %extend", 'start: a\na: "a"\n%extend a: "b"', "b", "c"),
        _row("%json", 'start: "x" %json {"type": "null"}', "xnull", "x1", "yes: a JSON Schema as part of a rule"),
        _row("intersection and complement", "start: A\nA: /[a-z]+/ & ~/.*x.*/", "ab", "ax", "yes, in terminals"),
        _refused("special tokens", "start: <tool_call>"),
        _refused("other grammars", "start: @other"),
        _refused("%declare", 'start: "a"\n%declare B'),
        _refused("%import of other modules", "start: A\n%import python.A"),
        _refused("backreferences", r"start: /(a)\1/"),
    ),
)  # fmt: skip

GBNF_TABLE = Table(
    "gbnf-syntax",
    "gbnf",
    ("construct", "for example", "supported"),
    (
        _row("strings, alternatives, groups", 'root ::= "a" ("b" | "c")', "ac", "ad"),
        _row("classes", "root ::= [a-c] [^a]", "bc", "ba"),
        _row("any character", "root ::= . .", "a\n", "a"),
        _row("repeats", 'root ::= "a"? "b"* "c"+', "bc", "ab"),
        _row("counted repeats", 'root ::= "a"{2} "b"{1,} "c"{0,1}', "aab", "ab"),
        _row("escapes", r'root ::= "\n\x41\u00e9"', "\nA\u00e9", "nA"),
        _row("rules", "root ::= x x\nx ::= \"a\" | \"b\"", "ab", "a", "yes; recursion of any kind"),
        _row("left recursion", 'root ::= root "+a" | "a"', "a+a", "a+"),
        _row("comments", 'root ::= "a" # a comment', "a", "#"),
        _refused("tokens", "root ::= <[12]>"),
        _refused("look-aheads", 'root ::= (="a") "a"'),
    ),
)  # fmt: skip
