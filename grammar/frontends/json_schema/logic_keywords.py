"""Keywords that combine schemas: references, allOf, anyOf, oneOf, not, if with then and else.

Owns their meaning and that of their complements. `oneOf` needs "this branch and none of the others"; a branch that surely shares no
value with this one need not be excluded, which leaves nothing to exclude in the usual, tagged case.

Where someone asks what has been evaluated, `anyOf` may not stop at the first branch that holds: each branch that could add to the answer
is chosen or not chosen. That one not chosen might hold as well does no harm where the answer only takes demands away; where it matters,
the branch is chosen or excluded.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import cast

from .branch import Branch, Option, Part
from .document import REFERENCES, Node
from .reading import Reader, Reading, Schema, opposite
from .shape import Atom
from .source import Json
from .unevaluated_keywords import contributes


def _reference(keyword: str) -> Reader:
    def read(reading: Reading, node: Node, value: str, branch: Branch) -> None:
        branch.demand(Atom(reading.document.refer(node, keyword, value), True))

    return read


def _all_of(reading: Reading, node: Node, _: Json, branch: Branch) -> None:
    for index, atom in enumerate(reading.branches(node, "allOf")):
        branch.demand(atom, index)


def _any_of(reading: Reading, node: Node, _: Json, branch: Branch) -> None:
    branches = reading.branches(node, "anyOf")
    branch.choose([[atom] for atom in branches])
    for atom in branches:
        _note(reading, atom, branch)


def _one_of(reading: Reading, node: Node, _: Json, branch: Branch) -> None:
    branches = reading.branches(node, "oneOf")
    if branch.is_loose:  # as anyOf: enough to find contradictions, and never a circle
        branch.choose([[atom] for atom in branches])
    else:
        known = reading.exactly_one.get(node)
        if known is None:
            known = reading.exactly_one[node] = _exactly_one(reading, branches)
        branch.choose(known)


def _not(reading: Reading, node: Node, _: Json, branch: Branch) -> None:
    branch.demand(opposite(reading.below(node, "not")))


def _if(reading: Reading, node: Node, _: Json, branch: Branch) -> None:
    schema = cast("Schema", node.schema)
    test = reading.below(node, "if")
    if "then" not in schema and "else" not in schema:
        _note(reading, test, branch)
        return
    then: list[Part] = [test, reading.below(node, "then")] if "then" in schema else [test]
    other: list[Part] = [opposite(test)]
    if "else" in schema:
        other.append(reading.below(node, "else"))
    branch.choose([then, other])


def _note(reading: Reading, atom: Atom, branch: Branch) -> None:
    """Whether `atom` holds matters to whoever asks what it evaluates."""
    watches = branch.origin.watches
    if watches and contributes(reading, atom.node):
        branch.choose([[atom], [opposite(atom)] if any(w.fails for w in watches) else []])


READERS: dict[str, Reader] = {
    **{keyword: _reference(keyword) for keyword in REFERENCES},
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
}


def complements(reading: Reading, node: Node, schema: Schema, *, loose: bool) -> Iterator[Option]:
    """Ways to fail one of these keywords. `loose` proves nothing about pairs of branches on the way."""
    for keyword in REFERENCES:
        if keyword in schema:
            yield [Atom(reading.document.refer(node, keyword, schema[keyword]), False)]
    for atom in reading.branches(node, "allOf") if "allOf" in schema else ():
        yield [opposite(atom)]
    if "anyOf" in schema:
        yield [opposite(atom) for atom in reading.branches(node, "anyOf")]
    if "oneOf" in schema:
        branches = reading.branches(node, "oneOf")
        yield [opposite(atom) for atom in branches]
        yield from (
            list(pair) for pair in combinations(branches, 2) if loose or reading.overlap(*pair)
        )
    if "not" in schema:
        yield [reading.below(node, "not")]
    if "if" in schema:
        test = reading.below(node, "if")
        if "then" in schema:
            yield [test, opposite(reading.below(node, "then"))]
        if "else" in schema:
            yield [opposite(test), opposite(reading.below(node, "else"))]


def _exactly_one(reading: Reading, branches: list[Atom]) -> list[Option]:
    options: list[list[Part]] = [[branch] for branch in branches]
    for (i, a), (j, b) in combinations(enumerate(branches), 2):
        if reading.overlap(a, b):
            options[i].append(opposite(b))
            options[j].append(opposite(a))
    return list[Option](options)
