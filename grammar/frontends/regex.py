"""Regex specs: Python's `re` syntax, whole-text match.

Owns the translation of the standard library's own syntax tree, so that what is a pattern and what it means are `re`'s. Every match counts
(lazy equals greedy). Not regular, and refused by name: backreferences, conditionals, atomic groups, possessive repeats. Anchors at the
edges of the pattern vanish (a whole-text match is what they ask for); all other assertions go to `assertions.py`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

from ...errors import GrammarError
from ..expr import (
    NEVER,
    Chars,
    Expr,
    Grammar,
    Limits,
    alt,
    lit,
    normal_ranges,
    outside_ranges,
    repeat,
    seq,
)
from ..spec import Regex, Spec
from .assertions import MAX_COPIES, MAX_EMPTY_COPIES, Anchor, Assertions, gap, may_vanish
from .char_classes import ASCII, Ranges, ignoring_case, unicode_class

_REFUSED = {  # opcode -> name, and how it is written, to find its column
    "GROUPREF": ("a backreference", r"\\[1-9]|\(\?P="),
    "GROUPREF_EXISTS": ("a conditional group", r"\(\?\("),
    "ATOMIC_GROUP": ("an atomic group", r"\(\?>"),
    "POSSESSIVE_REPEAT": ("a possessive repeat", r"(?:[*+?]|\{\d*,?\d*\})\+"),
}
_CATEGORIES = {"DIGIT": "digit", "SPACE": "space", "WORD": "word"}
_EDGE_ANCHORS = ("AT_BEGINNING", "AT_BEGINNING_STRING"), ("AT_END", "AT_END_STRING")
_MAX_REPEAT = 1 << 30
_MAX_KEPT_RANGES = 2000  # of one of the character sets that are remembered from pattern to pattern

Node = tuple[Any, Any]  # (opcode, argument) of the standard library's parser


def build(spec: Spec, limits: Limits) -> Grammar:
    """The grammar of a `Regex`; GrammarError names the construct that is refused, with its column (from 1)."""
    if not isinstance(spec, Regex):
        raise GrammarError(f"a regex front end was given {type(spec).__name__}")
    if len(spec.pattern) > limits.spec_bytes:
        raise GrammarError(
            f"the pattern has {len(spec.pattern)} characters, more than limits.spec_bytes={limits.spec_bytes}",
            keyword="spec_bytes",
        )
    nodes, flags = _parse(spec.pattern)
    return Grammar({"regex": _Translation(spec.pattern, limits).whole(nodes, flags)}, "regex")


def _parse(pattern: str) -> tuple[Sequence[Node], int]:
    parser = import_module("re._parser")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about future syntax; the meaning today is what counts
            tree = parser.parse(pattern)
    except re.error as error:
        column = "" if error.pos is None else f"column {error.pos + 1}"
        raise GrammarError(
            f"the pattern is not valid: {error.msg}", place=column, keyword="regex"
        ) from None
    except OverflowError:
        raise GrammarError(
            "a repeat count of the pattern is too large", keyword="repeat_bound"
        ) from None
    except RecursionError:
        raise GrammarError("the pattern is nested too deeply", keyword="depth") from None
    return list(tree), int(tree.state.flags)


class _Translation:
    """One pattern. `is_looking`: inside a look-around, where every character may be followed by markers."""

    def __init__(self, pattern: str, limits: Limits) -> None:
        self._pattern = pattern
        self._limits = limits
        self._assertions: Assertions | None = None
        self._is_looking = False
        self._num_copies = (
            1  # of what is being read: the counts of the repeats around it, multiplied
        )
        self._num_assertions = 0

    def whole(self, nodes: Sequence[Node], flags: int) -> Expr:
        """The language of the whole pattern."""
        marked = self._sequence(_without_edge_anchors(nodes, is_start=True, is_end=True), flags, 0)
        return marked if self._assertions is None else self._assertions.applied(marked)

    def _sequence(self, nodes: Iterable[Node], flags: int, depth: int) -> Expr:
        if depth > self._limits.depth:
            raise GrammarError(
                f"the pattern is nested deeper than limits.depth={self._limits.depth}",
                keyword="depth",
            )
        return seq(*(self._node(str(op), argument, flags, depth) for op, argument in nodes))

    def _node(self, op: str, argument: Any, flags: int, depth: int) -> Expr:
        if op in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            return self._one_char(_members(op, argument, flags))
        if op == "BRANCH":
            return alt(*(self._sequence(branch, flags, depth + 1) for branch in argument[1]))
        if op == "SUBPATTERN":
            _, added, removed, inner = argument
            return self._sequence(inner, (flags | added) & ~removed, depth + 1)
        if op in ("MAX_REPEAT", "MIN_REPEAT"):
            low, high, inner = argument
            return self._repeat(int(low), int(high), inner, flags, depth)
        if op == "AT":
            return self._anchor(str(argument), flags)
        if op in ("ASSERT", "ASSERT_NOT"):
            return self._look(
                argument[0] < 0, op == "ASSERT_NOT", self._looked(argument[1], flags, depth)
            )
        if op == "FAILURE":
            return NEVER
        name, spelling = _REFUSED.get(op, (op.lower(), ""))
        raise GrammarError(
            f"{name} cannot be part of a constraint",
            place=self._column(spelling),
            keyword=name.split(" ", 1)[-1],
        )

    def _one_char(self, ranges: Ranges) -> Expr:
        if len(ranges) == 1 and ranges[0][0] == ranges[0][1] and not self._is_looking:
            return lit(chr(ranges[0][0]))
        one: Expr = Chars(ranges) if ranges else NEVER
        return seq(one, gap()) if self._is_looking else one

    def _repeat(self, low: int, high: int, inner: Iterable[Node], flags: int, depth: int) -> Expr:
        bound = low if high > _MAX_REPEAT else high
        if bound > self._limits.repeat_bound:
            raise GrammarError(
                f"a repeat of {bound} times exceeds limits.repeat_bound={self._limits.repeat_bound}",
                place=self._column(rf"\{{[\d,]*{bound}"),
                keyword="repeat_bound",
            )
        outer, num_before = self._num_copies, self._num_assertions
        self._num_copies = min(outer * max(bound, 1), self._limits.repeat_bound)
        item = self._sequence(inner, flags, depth + 1)
        if self._num_assertions > num_before:
            self._check_copies(item)
        self._num_copies = outer
        return repeat(item, low, None if high > _MAX_REPEAT else high)

    def _check_copies(self, item: Expr) -> None:
        """Repeats around assertions are written out: what can be empty between its assertions takes time cubic in the copies."""
        most = MAX_EMPTY_COPIES if may_vanish(item) else MAX_COPIES
        if self._num_copies > most:
            raise GrammarError(
                f"an assertion is inside repeats of more than {most} times",
                place=self._column(r"\(\?<?[=!]|\\[bB]|\^|\$"),
                keyword="assertion",
            )

    def _anchor(self, at: str, flags: int) -> Expr:
        is_multiline, is_ascii = bool(flags & re.MULTILINE), bool(flags & re.ASCII)
        kinds = {
            "AT_BEGINNING": Anchor.LINE_START if is_multiline else Anchor.TEXT_START,
            "AT_BEGINNING_STRING": Anchor.TEXT_START,
            "AT_END": Anchor.LINE_END if is_multiline else Anchor.TEXT_END_OR_LAST_NEWLINE,
            "AT_END_STRING": Anchor.TEXT_END,
            "AT_BOUNDARY": Anchor.ASCII_WORD_BOUNDARY if is_ascii else Anchor.WORD_BOUNDARY,
            "AT_NON_BOUNDARY": Anchor.ASCII_NO_WORD_BOUNDARY
            if is_ascii
            else Anchor.NO_WORD_BOUNDARY,
        }
        return self._known_assertions().anchor(kinds[at])

    def _looked(self, nodes: Iterable[Node], flags: int, depth: int) -> Expr:
        if self._is_looking:
            raise GrammarError(
                "a look-around inside a look-around is not supported",
                place=self._column(r"\(\?<?[=!]"),
                keyword="lookaround",
            )
        self._is_looking = True
        inside = self._sequence(nodes, flags, depth + 1)
        self._is_looking = False
        return inside

    def _look(self, is_behind: bool, is_negative: bool, inside: Expr) -> Expr:
        return self._known_assertions().look(inside, is_behind=is_behind, is_negative=is_negative)

    def _known_assertions(self) -> Assertions:
        self._num_assertions += 1
        if self._assertions is None:
            self._assertions = Assertions(unicode_class("word"), ASCII["word"])
        return self._assertions

    def _column(self, spelling: str) -> str:
        """Where the construct spelled like this first stands, outside escapes and classes."""
        skipped = r"\\[^1-9]|\[\^?\]?(?:\\.|[^\]\\])*\]"
        for found in (
            re.finditer(rf"(?P<found>{spelling})|{skipped}", self._pattern, re.DOTALL)
            if spelling
            else ()
        ):
            if found["found"] is not None:
                return f"column {found.start() + 1}"
        return ""


def _without_edge_anchors(nodes: Iterable[Node], *, is_start: bool, is_end: bool) -> list[Node]:
    """`nodes` less the anchors that hold anyway: at the start of the text, at its end."""
    kept = list(nodes)
    starts, ends = _EDGE_ANCHORS
    while is_start and kept and str(kept[0][0]) == "AT" and str(kept[0][1]) in starts:
        del kept[0]
    while is_end and kept and str(kept[-1][0]) == "AT" and str(kept[-1][1]) in ends:
        del kept[-1]
    last = len(kept) - 1
    for index in {0, last} if kept else ():
        edges = {"is_start": is_start and index == 0, "is_end": is_end and index == last}
        op, argument = kept[index]
        if str(op) == "BRANCH":
            branches = [_without_edge_anchors(branch, **edges) for branch in argument[1]]
            kept[index] = (op, (argument[0], branches))
        elif str(op) == "SUBPATTERN":
            group, added, removed, inner = argument
            kept[index] = (op, (group, added, removed, _without_edge_anchors(inner, **edges)))
    return kept


def _members(op: str, argument: Any, flags: int) -> Ranges:
    """The code points that a one-character node matches."""
    if op == "ANY":
        return outside_ranges([] if flags & re.DOTALL else [(10, 10)])
    if op in ("LITERAL", "NOT_LITERAL"):
        literals, classes, is_negated = [(argument, argument)], [], op == "NOT_LITERAL"
    else:
        literals, classes, is_negated = _set_members(argument, flags)
    if flags & re.IGNORECASE:
        literals = list(ignoring_case(literals, is_ascii=bool(flags & re.ASCII)))
    ranges = (*literals, *classes)
    if len(ranges) > _MAX_KEPT_RANGES:
        return _char_set.__wrapped__(ranges, is_negated)
    return _char_set(ranges, is_negated)


@lru_cache(maxsize=64)
def _char_set(ranges: Ranges, is_negated: bool) -> Ranges:
    return outside_ranges(ranges) if is_negated else normal_ranges(ranges)


def _set_members(
    items: Iterable[Node], flags: int
) -> tuple[list[tuple[int, int]], list[tuple[int, int]], bool]:
    """(literal ranges, ranges of character classes, whether the set is negated)."""
    literals: list[tuple[int, int]] = []
    classes: list[tuple[int, int]] = []
    is_negated = False
    for op, argument in items:
        kind = str(op)
        if kind == "NEGATE":
            is_negated = True
        elif kind == "LITERAL":
            literals.append((argument, argument))
        elif kind == "RANGE":
            literals.append(argument)
        else:
            classes += _category(str(argument), flags)
    return literals, classes, is_negated


def _category(name: str, flags: int) -> Ranges:
    words = name.split("_")  # CATEGORY_WORD, CATEGORY_NOT_WORD
    kind = _CATEGORIES[words[-1]]
    ranges = ASCII[kind] if flags & re.ASCII else unicode_class(kind)
    return outside_ranges(ranges) if "NOT" in words else ranges
