"""Schemas to shapes: the disjunctive normal form of a conjunction of schemas, and what can be asked of it.

Owns the search for all ways to satisfy a conjunction: requirements with one option are taken at once, the others are branched on, and
branches that contradict themselves are dropped. Combinations, references and their siblings, negations and conditionals all dissolve
here, exactly; what is left are shapes. Also decides whether a value satisfies a schema (to filter enum) and whether a conjunction is
surely empty (to see that branches of oneOf exclude one another). Items and properties are not entered: a recursive schema is finite
here. Knows nothing of text.

A chain of references that comes back to itself without entering a value means nothing, and is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import cast

from ....errors import GrammarError
from ...expr import Limits
from . import item_keywords, logic_keywords, plain_keywords, property_keywords
from .document import Document
from .keywords import check
from .membership import Membership
from .reading import Option, Reading, Requirement, Schema
from .shape import OBJECT, Atom, Conj, Shape

_MAX_BRANCHES = 4000  # ways looked at for one conjunction of schemas
_EMPTINESS_DEPTH = 3  # levels of required properties looked through for a contradiction

_Chain = tuple[Atom, "_Chain | None"]


class Normaliser:
    """Shapes of the schemas of one document."""

    def __init__(self, document: Document, limits: Limits) -> None:
        self.document = document
        self.reading = Reading(document, limits, lambda a, b: not self.is_empty((a, b), _EMPTINESS_DEPTH))
        self.membership = Membership(self.shapes)
        self._shapes: dict[tuple[frozenset[Atom], bool], tuple[Shape, ...]] = {}
        self._requirements: dict[tuple[Atom, bool], list[Requirement]] = {}
        self._empty: dict[tuple[frozenset[Atom], int], bool] = {}

    def shapes(self, conj: Conj, *, loose: bool = False) -> tuple[Shape, ...]:
        """The shapes whose union satisfies `conj`. With `loose`, shapes that surely include those."""
        key = (frozenset(conj), loose)
        known = self._shapes.get(key)
        if known is None:
            found = list(_Search(self, loose).run(conj))
            if not loose:
                found = [shape for shape in found if self._keep_values(shape)]
                if len(found) > 1:
                    found = [shape for shape in found if not self._is_empty_shape(shape, 2)]
            known = self._shapes[key] = tuple(found)
        return known

    def requirements(self, atom: Atom, *, loose: bool) -> list[Requirement]:
        """What one atom demands."""
        node, positive = atom
        if isinstance(node.schema, bool):
            return [] if node.schema is positive else [[]]
        key = (atom, loose)
        known = self._requirements.get(key)
        if known is None:
            check(node.schema, node.pointer)
            try:
                known = self._demands(atom, loose) if positive else [self._complement(atom)]
            except GrammarError:
                if not loose:
                    raise
                known = []
            self._requirements[key] = known
        return known

    def _demands(self, atom: Atom, loose: bool) -> list[Requirement]:
        node, reading = atom[0], self.reading
        schema = reading.keywords(node)
        return list(
            chain(
                plain_keywords.demands(reading, node, schema),
                property_keywords.demands(reading, node, schema),
                item_keywords.demands(reading, node, schema),
                logic_keywords.demands(reading, node, schema, loose=loose),
            )
        )

    def _complement(self, atom: Atom) -> Requirement:
        node, reading = atom[0], self.reading
        schema: Schema = reading.keywords(node)
        return list(
            chain(
                plain_keywords.complements(reading, node, schema),
                property_keywords.complements(reading, node, schema),
                item_keywords.complements(reading, node, schema),
                logic_keywords.complements(reading, node, schema),
            )
        )

    def _keep_values(self, shape: Shape) -> bool:
        """Leave the values of an enum that the rest of the shape admits; is any left (or was there no enum)?"""
        if shape.values is None:
            return True
        shape.values = {k: v for k, v in shape.values.items() if self.membership.holds(shape, v)}
        return bool(shape.values)

    # ------------------------------------------------------------------------------------------ emptiness

    def is_empty(self, conj: Conj, depth: int) -> bool:
        """Does surely no value satisfy `conj`? False may mean "not seen"."""
        key = (frozenset(conj), depth)
        known = self._empty.get(key)
        if known is None:
            try:
                shapes = self.shapes(conj, loose=True)
                known = all(self._is_empty_shape(shape, depth) for shape in shapes)
            except GrammarError:
                known = False
            self._empty[key] = known
        return known

    def _is_empty_shape(self, shape: Shape, depth: int) -> bool:
        if shape.values is not None:
            return not any(self.membership.holds(shape, v, loose=True) for v in shape.values.values())
        return shape.kinds == OBJECT and depth > 0 and any(
            self.is_empty(self.membership.property_conj(shape, name), depth - 1) for name in shape.required
        )


class _Search:
    """One search through the options of a conjunction."""

    def __init__(self, normaliser: Normaliser, loose: bool) -> None:
        self._normaliser = normaliser
        self._loose = loose
        self._num_branches = 0

    def run(self, conj: Conj) -> Iterator[Shape]:
        """Every shape found."""
        return self._branch(Shape(), [(atom, None) for atom in conj], {}, [])

    def _branch(
        self,
        shape: Shape,
        pending: list[tuple[Atom, _Chain | None]],
        seen: dict[Atom, None],
        choices: list[tuple[Requirement, _Chain]],
    ) -> Iterator[Shape]:
        if not self._propagate(shape, pending, seen, choices):
            return
        if not choices:
            yield shape
            return
        first = min(range(len(choices)), key=lambda i: len(choices[i][0]))
        requirement, origin = choices[first]
        others = choices[:first] + choices[first + 1 :]
        for option in requirement:
            self._num_branches += 1
            if self._num_branches > _MAX_BRANCHES:
                raise GrammarError(
                    f"anyOf, oneOf, not and if leave more than {_MAX_BRANCHES} ways to satisfy this schema",
                    place=origin[0][0].pointer,
                )
            narrowed = shape.copy()
            yield from self._branch(narrowed, _take(option, narrowed, origin), dict(seen), list(others))

    def _propagate(
        self,
        shape: Shape,
        pending: list[tuple[Atom, _Chain | None]],
        seen: dict[Atom, None],
        choices: list[tuple[Requirement, _Chain]],
    ) -> bool:
        """Take everything that leaves no choice; False on a contradiction."""
        position = 0
        while position < len(pending):
            atom, above = pending[position]
            position += 1
            _refuse_circle(atom, above)
            if atom in seen:
                continue
            seen[atom] = None
            origin: _Chain = (atom, above)
            for requirement in self._normaliser.requirements(atom, loose=self._loose):
                if len(requirement) == 1:
                    pending.extend(_take(requirement[0], shape, origin))
                elif requirement:
                    choices.append((requirement, origin))
                else:
                    return False
            if shape.is_contradictory:
                return False
        return not shape.is_contradictory


def _take(option: Option, shape: Shape, origin: _Chain) -> list[tuple[Atom, _Chain | None]]:
    """Apply the facts of an option; the schemas it names are returned."""
    atoms: list[tuple[Atom, _Chain | None]] = []
    for part in option:
        if isinstance(part, tuple):
            atoms.append((part, origin))
        else:
            part(shape)
    return atoms


def _refuse_circle(atom: Atom, above: _Chain | None) -> None:
    while above is not None:
        if above[0] == atom:
            raise GrammarError(
                "the schema refers to itself without entering a value: it means nothing",
                place=cast("Atom", atom)[0].pointer,
                keyword="$ref",
            )
        above = above[1]
