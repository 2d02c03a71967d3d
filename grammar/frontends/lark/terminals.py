"""Terminals of a Lark grammar as expressions.

    a terminal's text     what its definition says, as one piece: nothing is ignored inside it
    lazy repeats          the terminal takes only texts of which no proper beginning would do
    priorities            a terminal never takes a text that one of higher priority, used in the same grammar, takes whole;
                          strings always keep their text

Owns those meanings. Priorities thus act as under a lexer that does not look at the context; without any priority all derivations count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ....errors import GrammarError
from ...expr import Expr, Lit, alt, any_char, chars, conj, lit, minus, plus, repeat, seq, star
from ..char_classes import ignoring_case
from ..grammar_text import GrammarText
from .names import terminals_in_order
from .nodes import (
    Both,
    Choice,
    Definition,
    Leaf,
    Name,
    Node,
    Not,
    Pattern,
    Sequence,
    Span,
    Text,
    Times,
    fold,
)
from .regexps import regexp_of

Meaning = tuple[Expr, bool]  # the language, and whether lazy repeats are in it


class Terminals:
    """The terminals of one grammar. Raises GrammarError for a definition that means nothing."""

    def __init__(self, source: GrammarText, definitions: Mapping[str, Definition]) -> None:
        self._source = source
        self._leaves: dict[Leaf, Meaning] = {}
        self._named: dict[str, Meaning] = {}
        self._priorities: dict[Node, int] = {}
        for definition in terminals_in_order(source, definitions):
            self._named[definition.name] = self.meaning(definition.body)
            if definition.priority:
                self._priorities[Name(definition.name, 0)] = definition.priority
                if isinstance(definition.body, Text):  # the same string in a rule is this terminal
                    self._priorities.setdefault(definition.body, definition.priority)

    def meaning(self, body: Node) -> Meaning:
        """What the body of a terminal takes, lazy repeats not yet looked at."""
        return fold(body, self._made)

    def text_of_body(self, body: Node) -> Expr:
        """What a terminal with this body takes."""
        return _shortest(self.meaning(body))

    def tokens(self, used: Iterable[Leaf | Name]) -> dict[Node, Expr]:
        """The texts of each terminal that rules use, given all of these."""
        whole: dict[Node, Expr] = {node: _shortest(self._meaning_of(node)) for node in used}
        if not self._priorities:
            return whole
        result: dict[Node, Expr] = {}
        for node, expr in whole.items():
            own = self._priorities.get(node, 0)
            above = [other for key, other in whole.items() if self._priorities.get(key, 0) > own]
            is_kept = isinstance(expr, Lit) or not above
            result[node] = expr if is_kept else minus(expr, alt(*above))
        return result

    def _meaning_of(self, node: Leaf | Name) -> Meaning:
        return self._named[node.name] if isinstance(node, Name) else self._leaf(node)

    def _made(self, node: Node, parts: list[Meaning]) -> Meaning:
        exprs = [expr for expr, _ in parts]
        is_lazy = any(lazy for _, lazy in parts)
        match node:
            case Text() | Pattern() | Span():
                return self._leaf(node)
            case Name(name):
                return self._named[name]
            case Sequence():
                self._check_literals(exprs)
                return seq(*exprs), is_lazy
            case Choice():
                return alt(*exprs), is_lazy
            case Times(_, low, high):
                return repeat(exprs[0], low, high), is_lazy
            case Both():
                return conj(*exprs), is_lazy
            case Not():
                return minus(star(any_char()), exprs[0]), is_lazy
            case _:
                raise AssertionError(f"{node} is no part of a terminal")

    def _check_literals(self, items: Iterable[Expr]) -> None:
        """Strings that double from terminal to terminal would fill the memory."""
        limit = self._source.limits.spec_bytes
        if sum(len(item.data) for item in items if isinstance(item, Lit)) > limit:
            raise GrammarError(
                f"a terminal has a text longer than limits.spec_bytes={limit}", keyword="spec_bytes"
            )

    def _leaf(self, node: Leaf) -> Meaning:
        if node not in self._leaves:
            self._leaves[node] = self._leaf_meaning(node)
        return self._leaves[node]

    def _leaf_meaning(self, node: Leaf) -> Meaning:
        match node:
            case Text(value, ignores_case):
                return (_any_case(value) if ignores_case else lit(value)), False
            case Span(first, last):
                return chars((ord(first), ord(last))), False
            case Pattern():
                return regexp_of(self._source, node)


def _shortest(meaning: Meaning) -> Expr:
    expr, is_lazy = meaning
    return minus(expr, seq(expr, plus(any_char()))) if is_lazy else expr


def _any_case(text: str) -> Expr:
    return seq(*(chars(*ignoring_case([(ord(c), ord(c))], is_ascii=False)) for c in text))
