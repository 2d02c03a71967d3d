"""Where white space stands in the texts: the separators of arrays and objects, for each choice of `JsonSchema.whitespace`.

Owns the layouts: what stands between the parts of a container, and at which nesting level a part is written. Writers ask here and put no
separator of their own. Knows nothing of schemas.

    compact        no white space
    single_space   one space after each comma and each colon, as `json.dumps` writes
    indented       a line for each member or item, two spaces a level, as `json.dumps(indent=2, ensure_ascii=False)` writes. The levels are
                   told apart by rules of their own, so there are at most MAX_LEVELS: a container as deep as that is empty
    flexible       a gap before the text and on both sides of each bracket, comma and colon: up to MAX_BLANKS spaces or tabs, then perhaps
                   one or two line breaks (LF or CR LF) and up to MAX_SPACES spaces or MAX_TABS tabs. Gaps, and commas, colons and
                   brackets with theirs, are rules, the same ones in every grammar
"""

from __future__ import annotations

from functools import cache

from ...expr import (
    CONSTANT_RULES,
    EMPTY,
    NEVER,
    Expr,
    Lit,
    Seq,
    alt,
    byte_set,
    constant_call,
    lit,
    opt,
    ref,
    repeat,
    seq,
)
from ...spec import Whitespace

MAX_LEVELS = 32
MAX_BLANKS = 8
MAX_SPACES = 40
MAX_TABS = 20
_RULES_NAME = (
    "flexible: "  # leads the names of the rules of that layout; no rule of a schema has such a name
)

Brackets = tuple[Expr, Expr]
BRACES: Brackets = (lit("{"), lit("}"))
SQUARE: Brackets = (lit("["), lit("]"))


class Layout:
    """Separators without regard to levels: every part is at level 0."""

    def __init__(self, comma: Expr, colon: str) -> None:
        self._comma = comma
        self._colon = colon
        self.lead: Expr = EMPTY
        """What stands before the whole text."""
        self.rules: dict[str, Expr] = {}
        """Rules that the separators call."""
        self.has_cut = False
        """Has `is_full` been answered with yes?"""

    def inside(self, level: int) -> int:
        """The level of the parts of a container at `level`."""
        return level

    def is_full(self, level: int) -> bool:
        """Is a container at `level` too deep to hold anything?"""
        return False

    def comma(self, level: int) -> Expr:
        """What stands between parts at `level`; always the same object."""
        return self._comma

    def member(self, key: str, value: Expr) -> Expr:
        """A key, given as JSON text, and a value, whose text stays an object of its own: it is shared."""
        return Seq((Lit((key + self._colon).encode()), value))

    @property
    def colon(self) -> Expr:
        """What stands between a key and its value."""
        return lit(self._colon)

    def wrap(self, brackets: Brackets, level: int, inner: Expr, *, may_be_empty: bool) -> Expr:
        """A container at `level`: `inner`, the parts of one that is not empty, between brackets; and perhaps the empty one."""
        return seq(brackets[0], _filling(inner, may_be_empty), brackets[1])


class _Indented(Layout):
    """A line for each part."""

    def __init__(self) -> None:
        super().__init__(EMPTY, ": ")
        self._breaks: dict[int, Expr] = {}
        self._commas: dict[int, Expr] = {}

    def inside(self, level: int) -> int:
        return level + 1

    def is_full(self, level: int) -> bool:
        self.has_cut = self.has_cut or level >= MAX_LEVELS
        return level >= MAX_LEVELS

    def comma(self, level: int) -> Expr:
        found = self._commas.get(level)
        if found is None:
            found = self._commas[level] = seq(lit(","), self._break(level))
        return found

    def _break(self, level: int) -> Expr:
        """A line break and the indentation of `level`: a rule, since there are many and deep ones are long."""
        found = self._breaks.get(level)
        if found is None:
            name = f"line at level {level}"
            # a repeat: the compiler shares or counts it, as it would not do with a long literal
            self.rules[name] = seq(lit("\n"), repeat(lit(" "), 2 * level, 2 * level))
            found = self._breaks[level] = ref(name)
        return found

    def wrap(self, brackets: Brackets, level: int, inner: Expr, *, may_be_empty: bool) -> Expr:
        left, right = brackets
        full = seq(self._break(level + 1), inner, self._break(level))
        return seq(left, _filling(full, may_be_empty), right)


class _Flexible(Layout):
    """A gap wherever JSON allows white space, but for the end of the text."""

    def __init__(self) -> None:
        rules, calls = _flexible()
        super().__init__(calls[","], "")
        self._calls = calls
        self.lead = calls[""]
        self.rules = rules.copy()

    def member(self, key: str, value: Expr) -> Expr:
        return Seq((Lit(key.encode()), self._calls[":"], value))

    @property
    def colon(self) -> Expr:
        return self._calls[":"]

    def wrap(self, brackets: Brackets, level: int, inner: Expr, *, may_be_empty: bool) -> Expr:
        right = brackets[1]
        opening = self._calls["{" if brackets is BRACES else "["]
        return seq(opening, _filling(seq(inner, self.lead), may_be_empty), right)


def _filling(full: Expr, may_be_empty: bool) -> Expr:
    return perhaps(full) if may_be_empty else full


def perhaps(text: Expr) -> Expr:
    """`text` or nothing; nothing alone where there is no such text."""
    return EMPTY if text == NEVER else opt(text)


def _gap() -> Expr:
    line = seq(opt(lit("\r")), lit("\n"))
    indentation = alt(repeat(lit(" "), 0, MAX_SPACES), repeat(lit("\t"), 1, MAX_TABS))
    return seq(repeat(byte_set(b" \t"), 0, MAX_BLANKS), opt(seq(repeat(line, 1, 2), indentation)))


@cache
def _flexible() -> tuple[dict[str, Expr], dict[str, Expr]]:
    """The rules of the layout, and a call of each by the text that it puts gaps around."""
    name = _RULES_NAME + "white space"
    rules = {name: _gap()}
    gap = constant_call(rules, name)
    calls = {"": gap}
    parts = {
        ",": seq(gap, lit(","), gap),
        ":": seq(gap, lit(":"), gap),
        "{": seq(lit("{"), gap),
        "[": seq(lit("["), gap),
    }
    for text, body in parts.items():
        name = _RULES_NAME + text
        rules[name] = body
        calls[text] = constant_call({name: body}, name)
    return {name: CONSTANT_RULES[name] for name in rules}, calls


def layout_named(whitespace: Whitespace) -> Layout:
    """The layout for a choice of white space."""
    if whitespace == "indented":
        return _Indented()
    if whitespace == "flexible":
        return _Flexible()
    return Layout(lit(", "), ": ") if whitespace == "single_space" else Layout(lit(","), ":")
