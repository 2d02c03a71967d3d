"""Keywords that combine schemas: $ref, allOf, anyOf, oneOf, not, if with then and else.

Owns their meaning and that of their complements. `oneOf` needs "this branch and none of the others"; a branch that surely shares no
value with this one need not be excluded, which leaves nothing to exclude in the usual, tagged case.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import cast

from .document import Node
from .reading import Demand, Option, Part, Reading, Requirement, Schema, opposite
from .shape import Atom
from .source import Json


def demands(reading: Reading, node: Node, schema: Schema, *, loose: bool) -> Iterator[Demand]:
    """The requirements of these keywords. `loose` takes oneOf as anyOf: enough to find contradictions, and never a circle."""
    if "$ref" in schema:
        yield "$ref", [[Atom(reading.document.resolve(node, schema["$ref"]), True)]]
    if "allOf" in schema:
        yield "allOf", [list[Part](_branches(reading, node, schema, "allOf"))]
    if "anyOf" in schema:
        yield "anyOf", [[branch] for branch in _branches(reading, node, schema, "anyOf")]
    if "oneOf" in schema:
        branches = _branches(reading, node, schema, "oneOf")
        yield "oneOf", [[b] for b in branches] if loose else _exactly_one(reading, branches)
    if "not" in schema:
        yield "not", [[opposite(reading.below(node, "not"))]]
    if "if" in schema and ("then" in schema or "else" in schema):
        test = reading.below(node, "if")
        then: Option = [test, reading.below(node, "then")] if "then" in schema else [test]
        other: Option = (
            [opposite(test), reading.below(node, "else")] if "else" in schema else [opposite(test)]
        )
        yield "if", [then, other]


def complements(reading: Reading, node: Node, schema: Schema) -> Iterator[Option]:
    """Ways to fail one of these keywords."""
    if "$ref" in schema:
        yield [Atom(reading.document.resolve(node, schema["$ref"]), False)]
    for branch in _branches(reading, node, schema, "allOf"):
        yield [opposite(branch)]
    if "anyOf" in schema:
        yield list[Part](opposite(branch) for branch in _branches(reading, node, schema, "anyOf"))
    if "oneOf" in schema:
        branches = _branches(reading, node, schema, "oneOf")
        yield list[Part](opposite(branch) for branch in branches)
        for pair in combinations(branches, 2):
            yield list[Part](pair)
    if "not" in schema:
        yield [reading.below(node, "not")]
    if "if" in schema:
        test = reading.below(node, "if")
        if "then" in schema:
            yield [test, opposite(reading.below(node, "then"))]
        if "else" in schema:
            yield [opposite(test), opposite(reading.below(node, "else"))]


def _branches(reading: Reading, node: Node, schema: Schema, keyword: str) -> list[Atom]:
    count = len(cast("list[Json]", schema.get(keyword, ())))
    return [reading.below(node, keyword, index) for index in range(count)]


def _exactly_one(reading: Reading, branches: list[Atom]) -> Requirement:
    options: Requirement = [[branch] for branch in branches]
    for (i, a), (j, b) in combinations(enumerate(branches), 2):
        if reading.overlap(a, b):
            options[i].append(opposite(b))
            options[j].append(opposite(a))
    return options
