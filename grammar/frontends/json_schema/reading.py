"""What the readers of keywords share: access to one document's schemas, and limits.

A reader takes one keyword of one schema object and writes what it demands into a branch. The complement of a schema is one requirement,
whose options are the complements of its keywords. Owns no meaning of any keyword; each `*_keywords` module owns that of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ....errors import GrammarError
from ...expr import Expr, Limits
from .branch import Branch, Option, Part, Requirement, opposite
from .document import Document, Node
from .evaluation import Evaluated, Watch
from .keywords import ANNOTATIONS
from .pattern_language import search_language
from .shape import Atom, Conj, ItemRule, PropertyRule, Shape
from .source import Json, child_pointer
from .string_sets import string_language

Schema = dict[str, Json]
Reader = Callable[["Reading", Node, Any, Branch], None]
"""Reads one keyword: of a node, with this value, into a branch."""


def complement_of(atom: Atom) -> Conj:
    """The complement of an atom as a conjunction: empty where the atom allows nothing, since then any value will do."""
    return () if atom.node.schema is (not atom.positive) else (opposite(atom),)


class Reading:
    """One document being read.

    `overlap` says whether two schemas might have a value in common, `shapes` gives the shapes of a conjunction. With `is_best_effort` a
    keyword that cannot be enforced is left out and noted.
    """

    def __init__(
        self,
        document: Document,
        limits: Limits,
        *,
        overlap: Callable[[Atom, Atom], bool],
        shapes: Callable[[Conj], tuple[Shape, ...]],
        is_best_effort: bool = False,
    ) -> None:
        self.document = document
        self.limits = limits
        self.overlap = overlap
        self.shapes = shapes
        self.is_best_effort = is_best_effort
        self.left_out: list[tuple[str, str, str]] = []  # pointer, keyword, reason
        self.unasserted: dict[tuple[str, str], None] = {}  # pointer, unknown format
        self.property_rules: dict[Node, PropertyRule] = {}
        self.never = Atom(document.never, True)
        self.value_tables: dict[int, dict[object, Json]] = {}
        self.item_rules: dict[Node, ItemRule | None] = {}
        self.exactly_one: dict[Node, Requirement] = {}
        self.checked: set[Node] = set()
        self.evaluated: dict[Node, Evaluated] = {}
        self.contributing: dict[Node, bool] = {}
        self.watches: dict[Node, Watch] = {}
        self.late_choices: dict[object, Node] = {}
        self.failing: dict[Node, Watch] = {}
        self.late_rules: dict[object, PropertyRule] = {}
        self._patterns: dict[str, Expr] = {}

    def keywords(self, node: Node) -> Schema:
        """The keywords of a schema object that count: in drafts up to 7, $ref silences all others."""
        schema = cast("Schema", node.schema)
        if "$ref" in schema and node.draft <= 7:
            return {"$ref": schema["$ref"]}
        return schema

    def below(self, node: Node, *tokens: str | int) -> Atom:
        """The subschema under `tokens`."""
        return Atom(self.target(self.document.child(node, *tokens)), True)

    def branches(self, node: Node, keyword: str) -> list[Atom]:
        """The subschemas of a keyword whose value is a list of them."""
        listed = cast("list[Json]", cast("Schema", node.schema).get(keyword, ()))
        return [self.below(node, keyword, index) for index in range(len(listed))]

    def demand(self, node: Node, *tokens: str | int) -> Conj:
        """The subschema under `tokens` as a conjunction, empty when it allows everything."""
        return self._conj(self.document.child(node, *tokens))

    def demands(self, node: Node, keyword: str) -> dict[str, Conj]:
        """The same for every subschema in the map that is the value of this keyword, by name."""
        conj = self._conj
        return {name: conj(below) for name, below in self.document.children(node, keyword)}

    def _conj(self, below: Node) -> Conj:
        schema = below.schema
        if schema is True:
            return ()
        if schema is not False:
            if "$ref" in schema:
                below = self.target(below)
                schema = below.schema
            if schema is True or (schema is not False and schema.keys() <= ANNOTATIONS):
                return ()
        return (Atom(below, True),)

    def target(self, node: Node) -> Node:
        """Where a schema that is nothing but a $ref leads: all references to one schema share what is made of it."""
        schema = node.schema
        if isinstance(schema, bool) or "$ref" not in schema:
            return node
        seen: set[Node] = set()
        while isinstance(node.schema, dict) and "$ref" in node.schema and node not in seen:
            others = self.keywords(node).keys() - ANNOTATIONS
            if others != {"$ref"} or not isinstance(node.schema["$ref"], str):
                break
            seen.add(node)
            try:
                node = self.document.refer(node, "$ref", node.schema["$ref"])
            except GrammarError:
                break  # an error of the place where it stands, if that is ever read
        return node

    def bounded(self, node: Node, keyword: str, value: Json) -> int:
        """The value of a counting keyword; GrammarError beyond the limit."""
        if value > self.limits.repeat_bound:
            raise GrammarError(
                f"{keyword} {value} is above the limit repeat_bound={self.limits.repeat_bound}",
                place=child_pointer(node.pointer, keyword),
                keyword=keyword,
            )
        return int(value)

    def count(self, node: Node, keyword: str, default: int | None) -> int | None:
        """The value of a counting keyword, or `default`."""
        value = cast("Schema", node.schema).get(keyword)
        return default if value is None else self.bounded(node, keyword, value)

    def pattern(self, text: str, place: str) -> Expr:
        """The strings in which a pattern is found, as a language of decoded characters."""
        known = self._patterns.get(text)
        if known is None:
            known = self._patterns[text] = search_language(text, place)
        return known

    def strings(self, what: Conj) -> Expr:
        """The strings that satisfy `what`, as a language of decoded characters."""
        return string_language(self.shapes(what))

    def leave_out(self, place: str, keyword: str, reason: str) -> None:
        """Note, in best effort, that a keyword is not enforced."""
        entry = (place, keyword, reason)
        if entry not in self.left_out:
            self.left_out.append(entry)


__all__ = [
    "Option",
    "Part",
    "Reader",
    "Reading",
    "Requirement",
    "Schema",
    "complement_of",
    "opposite",
]
