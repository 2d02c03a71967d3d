"""A regular expression as a piece of a Lark terminal.

Owns what differs from a regex that is a whole constraint: flags stand behind it, errors have a place in the grammar, and a condition on the
text around the piece is refused, since a piece is matched against its own text only. Lazy repeats are reported: the terminal then takes
its shortest texts.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ....errors import GrammarError
from ...expr import Expr
from ...spec import Regex
from .. import regex
from ..grammar_text import GrammarText
from .nodes import Pattern

_LEADING_FLAGS = re.compile(r"\(\?([aiLmsux]+)\)")
_COLUMN = re.compile(r"column (\d+)")
_BOUNDARIES = ("AT_BOUNDARY", "AT_NON_BOUNDARY")
_GROUPS = {"SUBPATTERN": 3, "ATOMIC_GROUP": None, "MAX_REPEAT": 2, "MIN_REPEAT": 2}

Node = tuple[Any, Any]  # (opcode, argument) of the standard library's parser


def regexp_of(source: GrammarText, node: Pattern) -> tuple[Expr, bool]:
    """The language of `node` by itself, and whether it has lazy repeats. Raises GrammarError with the place in the grammar."""
    pattern, num_added = _with_flags(node)
    try:
        grammar = regex.build(Regex(pattern), source.limits)
    except GrammarError as error:
        column = _COLUMN.fullmatch(error.place)
        at = node.at if column is None else node.at + int(column[1]) - num_added
        at = min(max(at, node.at), node.at + len(node.source) + 1)
        message = f"in a regular expression: {error.message}"
        raise source.error(message, at, hint=error.hint, keyword=error.keyword) from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = import_module("re._parser").parse(pattern)
    nodes = list(tree)
    if _looks_ahead(nodes, tree) or _looks_back(nodes, tree):
        raise source.error(
            "this regular expression sets a condition on the text around it, which a terminal does not see",
            node.at,
            keyword="lookaround",
            hint="Leave out \\b and look-arounds at its edges",
        )
    return grammar.rules[grammar.start], _is_lazy(nodes)


def _with_flags(node: Pattern) -> tuple[str, int]:
    """The pattern with all flags in front, as `re` wants them, and by how many characters it grew."""
    flags = node.flags
    rest = node.source
    leading = _LEADING_FLAGS.match(rest)
    if leading is not None:
        flags += leading[1]
        rest = rest[leading.end() :]
    if not flags:
        return rest, 0
    pattern = f"(?{''.join(sorted(set(flags)))}){rest}"
    return pattern, len(pattern) - len(node.source)


def _inner(node: Node) -> list[Sequence[Node]]:
    """The sequences inside a node."""
    op, argument = str(node[0]), node[1]
    if op == "BRANCH":
        return list(argument[1])
    if op in _GROUPS:
        index = _GROUPS[op]
        return [argument if index is None else argument[index]]
    return []


def _can_be_empty(node: Node, tree: Any) -> bool:
    return type(tree)(tree.state, [node]).getwidth()[0] == 0


def _looks_ahead(nodes: Sequence[Node], tree: Any) -> bool:
    """Whether a condition may look at what follows the last of `nodes`."""
    for node in reversed(list(nodes)):
        op, argument = str(node[0]), node[1]
        if op == "AT" and str(argument) in _BOUNDARIES:
            return True
        if op in ("ASSERT", "ASSERT_NOT") and argument[0] > 0:
            return True
        if any(_looks_ahead(inner, tree) for inner in _inner(node)):
            return True
        if not _can_be_empty(node, tree):
            return False
    return False


def _looks_back(nodes: Sequence[Node], tree: Any) -> bool:
    """Whether a condition stands at the very beginning of `nodes` and looks before it."""
    for node in nodes:
        op, argument = str(node[0]), node[1]
        if op == "AT" and str(argument) in _BOUNDARIES:
            return True
        if op in ("ASSERT", "ASSERT_NOT") and argument[0] < 0:
            return True
        if op in ("SUBPATTERN", "BRANCH") and any(
            _looks_back(inner, tree) for inner in _inner(node)
        ):
            return True
        if op != "AT":
            return False
    return False


def _is_lazy(nodes: Sequence[Node]) -> bool:
    return any(
        str(node[0]) == "MIN_REPEAT" or any(_is_lazy(inner) for inner in _inner(node))
        for node in nodes
    )
