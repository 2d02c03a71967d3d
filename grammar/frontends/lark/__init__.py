"""Lark specs: grammars in the dialect of the Lark toolkit, as llguidance and the custom tools of OpenAI's API use it.

Owns the rules. The language is that of all derivations, each terminal matched as a text of its own without regard to what a longest match
would have taken (in Lark: Earley's algorithm with the lexer dynamic_complete). What %ignore names may stand before and behind every
terminal, any number of times; with %llguidance {"skip_repetition": "once"} at most once at each place, for models that loop in blanks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from ....errors import GrammarError
from ...expr import EMPTY, Expr, Grammar, Limits, alt, conj, minus, opt, ref, repeat, seq, star
from ...spec import JsonSchema, Lark, Spec
from .. import build as build_any
from ..embedding import embed
from ..grammar_text import GrammarText
from ..rule_graph import ending_rules, may_be_empty
from .names import check_body, check_names
from .nodes import (
    Choice,
    Definition,
    Leaf,
    Name,
    Node,
    Schema,
    Sequence,
    Times,
    fold,
    is_terminal,
    nodes_in,
)
from .parser import Parser
from .templates import without_templates
from .terminals import Terminals

_OUTPUT = "output of all"  # no rule's name has a blank


def build(spec: Spec, limits: Limits) -> Grammar:
    """The grammar of a `Lark`. GrammarError with "line:column" and the line for what is wrong or refused."""
    if not isinstance(spec, Lark):
        raise GrammarError(f"a Lark front end was given {type(spec).__name__}")
    source = GrammarText(spec.text, limits)
    parser = Parser(source)
    parser.parse()
    check_names(source, parser.definitions)
    for body in parser.ignored:
        check_body(source, parser.definitions, body)
    start = parser.definitions.get(spec.start)
    if start is None or start.parameters:
        raise source.error(f"the grammar has no rule {spec.start}", 0, keyword=spec.start)
    try:
        rules = _Translation(source, parser).rules(start)
    except RecursionError:
        raise GrammarError("the grammar is nested too deeply", keyword="depth") from None
    if spec.start not in ending_rules(rules) and not is_terminal(spec.start):
        raise source.error(
            f"no text can satisfy the rule {spec.start}: each of its alternatives needs itself or a rule that never ends",
            start.at,
            keyword="unsatisfiable",
        )
    return Grammar(rules, _OUTPUT)


class _Translation:
    """The definitions of one grammar on their way to rules."""

    def __init__(self, source: GrammarText, parser: Parser) -> None:
        self._source = source
        self._definitions = parser.definitions
        self._terminals = Terminals(source, parser.definitions)
        ignored = [self._terminals.text_of_body(body) for body in parser.ignored]
        self._gap = EMPTY
        if ignored:
            self._gap = opt(alt(*ignored)) if parser.ignores_once else star(alt(*ignored))
        self._rules: dict[str, Expr] = {}
        self._tokens: Mapping[Node, Expr] = {}

    def rules(self, start: Definition) -> dict[str, Expr]:
        """The rules that `start` needs, and `_OUTPUT` with the ignored text before everything."""
        called = _reachable(without_templates(self._source, self._definitions), start.name)
        first = Name(start.name, 0)
        leaves = [node for rule in called.values() for node in nodes_in(rule.body)]
        tokens = self._terminals.tokens(dict.fromkeys(filter(_is_token, [first, *leaves])))
        self._tokens = {node: self._with_gap(expr) for node, expr in tokens.items()}
        for rule in called.values():
            self._rules[rule.name] = fold(rule.body, self._made)
        self._rules[_OUTPUT] = seq(self._gap, self._made(first, []))
        return self._rules

    def _made(self, node: Node, parts: list[Expr]) -> Expr:
        match node:
            case Sequence():
                return seq(*parts)
            case Choice():
                return alt(*parts)
            case Times(_, low, high):
                return repeat(parts[0], low, high)
            case Name(name) if not is_terminal(name):
                return ref(name)
            case Schema():
                return self._schema(node)
            case _:
                return self._tokens[node]

    def _with_gap(self, token: Expr) -> Expr:
        """A terminal and the ignored text behind it. Behind an empty one there is none: else two gaps would meet."""
        if self._gap == EMPTY or token == EMPTY:
            return token
        if may_be_empty(token):
            return alt(conj(token, EMPTY), seq(minus(token, EMPTY), self._gap))
        return seq(token, self._gap)

    def _schema(self, node: Schema) -> Expr:
        try:
            grammar = build_any(JsonSchema(node.text), self._source.limits)
        except GrammarError as error:
            message = f"in the schema, at {error.place or '#'}: {error.message}"
            raise self._source.error(
                message, node.at, hint=error.hint, keyword=error.keyword
            ) from error
        return seq(embed(grammar, f"json {len(self._rules)} {node.at}: ", self._rules), self._gap)


def _is_token(node: Node) -> TypeGuard[Leaf | Name]:
    return isinstance(node, Leaf) or (isinstance(node, Name) and is_terminal(node.name))


def _reachable(rules: Mapping[str, Definition], start: str) -> dict[str, Definition]:
    """The rules that `start` calls, and those they call; none if it is a terminal."""
    found: dict[str, Definition] = {}
    work = [start]
    while work:
        name = work.pop()
        if name in rules and name not in found:
            found[name] = rules[name]
            work += [node.name for node in nodes_in(rules[name].body) if isinstance(node, Name)]
    return found
