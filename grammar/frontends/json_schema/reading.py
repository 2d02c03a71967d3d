"""What the readers of keywords share: access to one document's schemas, limits, and the parts they answer with.

A schema is read as a conjunction of requirements; a requirement is a list of options of which at least one must hold; an option is a
list of facts and of further schemas (or complements of schemas), all of which must hold. So `properties` is one requirement with one
option, and `anyOf` one requirement with an option per branch. The complement of a schema is one requirement whose options are the
complements of its keywords. Owns no meaning of any keyword; each `*_keywords` module owns that of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from ....errors import GrammarError
from ...expr import Expr, Limits
from .document import Document, Node
from .keywords import ANNOTATIONS
from .pattern_language import search_language
from .shape import Atom, Conj, Fact, PropertyRule
from .source import Json, child_pointer

Part = Fact | Atom
Option = list[Part]
Requirement = list[Option]
Demand = tuple[str, Requirement]
"""A requirement and the keyword that makes it: where that stands decides the order of properties."""
Schema = dict[str, Json]


def opposite(atom: Atom) -> Atom:
    """The complement of an atom."""
    return Atom(atom.node, not atom.positive)


def complement_of(atom: Atom) -> Conj:
    """The complement of an atom as a conjunction: empty where the atom allows nothing, since then any value will do."""
    return () if atom.node.schema is (not atom.positive) else (opposite(atom),)


class Reading:
    """One document being read. `overlap` says whether two schemas might have a value in common."""

    def __init__(
        self, document: Document, limits: Limits, overlap: Callable[[Atom, Atom], bool]
    ) -> None:
        self.document = document
        self.limits = limits
        self.overlap = overlap
        self.never = Atom(document.never, True)
        self.property_rules: dict[Node, PropertyRule | None] = {}
        self._patterns: dict[str, Expr] = {}

    def keywords(self, node: Node) -> Schema:
        """The keywords of a schema object that count: in drafts up to 7, $ref silences all others."""
        schema = cast("Schema", node.schema)
        if self.document.draft <= 7 and "$ref" in schema:
            return {"$ref": schema["$ref"]}
        return schema

    def below(self, node: Node, *tokens: str | int) -> Atom:
        """The subschema under `tokens`."""
        return Atom(self.target(self.document.child(node, *tokens)), True)

    def demand(self, node: Node, *tokens: str | int) -> Conj:
        """The subschema under `tokens` as a conjunction, empty when it allows everything."""
        below = self.target(self.document.child(node, *tokens))
        return () if below.schema is True or below.schema == {} else (Atom(below, True),)

    def target(self, node: Node) -> Node:
        """Where a schema that is nothing but a $ref leads: all references to one schema share what is made of it."""
        seen: set[Node] = set()
        while isinstance(node.schema, dict) and "$ref" in node.schema and node not in seen:
            others = self.keywords(node).keys() - ANNOTATIONS
            if others != {"$ref"} or not isinstance(node.schema["$ref"], str):
                break
            seen.add(node)
            node = self.document.resolve(node, node.schema["$ref"])
        return node

    def count(self, node: Node, keyword: str, default: int | None) -> int | None:
        """The value of a counting keyword, or `default`; GrammarError beyond the limit."""
        value = self.keywords(node).get(keyword)
        if value is None:
            return default
        if value > self.limits.repeat_bound:
            raise GrammarError(
                f"{keyword} {value} is above the limit repeat_bound={self.limits.repeat_bound}",
                place=child_pointer(node.pointer, keyword),
                keyword=keyword,
            )
        return int(value)

    def pattern(self, text: str, place: str) -> Expr:
        """The strings in which a pattern is found, as a language of decoded characters."""
        known = self._patterns.get(text)
        if known is None:
            known = self._patterns[text] = search_language(text, place)
        return known


__all__ = [
    "Demand",
    "Option",
    "Part",
    "Reading",
    "Requirement",
    "Schema",
    "complement_of",
    "opposite",
]
