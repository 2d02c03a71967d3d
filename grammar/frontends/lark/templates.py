"""Templates of a Lark grammar, written out: a rule for each set of arguments.

Owns the expansion. An argument that is more than a name or a string becomes a rule first, so all arguments are small and equal uses
share one rule. Templates that call themselves with ever new arguments end at a bound.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..grammar_text import GrammarText
from .nodes import (
    Both,
    Call,
    Choice,
    Definition,
    Name,
    Node,
    Not,
    Sequence,
    Times,
    fold,
    is_terminal,
)

_MAX_INSTANCES = 2_000


def without_templates(
    source: GrammarText, definitions: Mapping[str, Definition]
) -> dict[str, Definition]:
    """The rules of `definitions`, none with parameters and none that calls a template. GrammarError beyond 2,000 expansions."""
    expansion = _Expansion(source, definitions)
    for definition in definitions.values():
        if not is_terminal(definition.name) and not definition.parameters:
            expansion.add(definition.name, definition, {})
    expansion.finish()
    return expansion.rules


class _Expansion:
    def __init__(self, source: GrammarText, definitions: Mapping[str, Definition]) -> None:
        self.rules: dict[str, Definition] = {}
        self._source = source
        self._definitions = definitions
        self._num_nodes = 0
        self._instances: dict[tuple[str, tuple[Node, ...]], str] = {}
        self._groups: dict[Node, str] = {}
        self._waiting: list[tuple[str, tuple[Node, ...], str]] = []

    def add(self, name: str, definition: Definition, arguments: Mapping[str, Node]) -> None:
        """Write out `definition` as the rule `name`, with `arguments` for its parameters."""

        def close(node: Node, parts: list[Node]) -> Node:
            self._num_nodes += 1
            match node:
                case Name(parameter) if parameter in arguments:
                    return arguments[parameter]
                case Call(template, _, at):
                    return Name(self._instance(template, tuple(map(self._atom, parts)), at), at)
                case _:
                    return _with_parts(node, parts)

        body = fold(definition.body, close)
        limit = self._source.limits.expressions
        if self._num_nodes > limit:
            raise self._source.error(
                f"the rules have more than limits.expressions={limit} parts",
                definition.at,
                keyword="expressions",
            )
        self.rules[name] = Definition(name, (), definition.priority, body, definition.at)

    def finish(self) -> None:
        """Write out what the rules so far call, and what that calls."""
        while self._waiting:
            template, arguments, name = self._waiting.pop()
            definition = self._definitions[template]
            self.add(name, definition, dict(zip(definition.parameters, arguments, strict=True)))

    def _instance(self, template: str, arguments: tuple[Node, ...], at: int) -> str:
        key = (template, arguments)
        if key not in self._instances:
            if len(self._instances) >= _MAX_INSTANCES:
                raise self._source.error(
                    f"the templates expand to more than {_MAX_INSTANCES} rules",
                    at,
                    keyword="template",
                )
            name = self._instances[key] = f"{template}{{{len(self._instances)}}}"
            self._waiting.append((template, arguments, name))
        return self._instances[key]

    def _atom(self, node: Node) -> Node:
        """`node` itself if it is small, else a call of a rule that stands for it."""
        if not isinstance(node, Sequence | Choice | Times | Both | Not):
            return node
        if node not in self._groups:
            name = self._groups[node] = f"({len(self._groups)})"
            self.rules[name] = Definition(name, (), 0, node, 0)
        return Name(self._groups[node], 0)


def _with_parts(node: Node, parts: list[Node]) -> Node:
    match node:
        case Sequence() | Choice():
            return type(node)(tuple(parts))
        case Both(_, at):
            return Both(tuple(parts), at)
        case Times(_, low, high):
            return Times(parts[0], low, high)
        case Not(_, at):
            return Not(parts[0], at)
        case _:
            return node
