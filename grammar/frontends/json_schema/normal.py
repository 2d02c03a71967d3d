"""Schemas to shapes: the disjunctive normal form of a conjunction of schemas, and what can be asked of it.

Owns the reading of one schema and what is kept of it; the ways to satisfy a conjunction are found by `search`. Combinations, references
and their siblings, negations and conditionals all dissolve there, exactly; what is left are shapes. Also decides whether a conjunction is surely empty (to see that branches of oneOf exclude one
another). Items and properties are not entered: a recursive schema is finite here. Knows nothing of text.

A schema without combinations is read straight into its shape. A chain of references that comes back to itself without entering a value
means nothing, and is an error.
"""

from __future__ import annotations

from collections.abc import Hashable

from ....errors import GrammarError
from ...expr import Limits
from . import (
    item_keywords,
    logic_keywords,
    plain_keywords,
    property_keywords,
    unevaluated_keywords,
)
from .branch import Branch, Origin, Requirement
from .document import Document
from .exclusion import Exclusion
from .keywords import check
from .membership import Membership
from .reading import Reader, Reading
from .search import Search, TooManyWays
from .shape import ALL_KINDS, OBJECT, Atom, Conj, Shape

_MAX_COMPARED = 200  # shapes of one group compared with each other
_EMPTINESS_DEPTH = 3  # levels of required properties looked through for a contradiction
_READERS: dict[str, Reader] = {
    **plain_keywords.READERS,
    **item_keywords.READERS,
    **property_keywords.READERS,
    **logic_keywords.READERS,
}
_UNEVALUATED = frozenset(unevaluated_keywords.KEYWORDS)

_Key = Atom | frozenset[Atom]


class Normaliser:
    """Shapes of the schemas of one document."""

    def __init__(self, document: Document, limits: Limits, *, is_best_effort: bool = False) -> None:
        self.document = document
        self.reading = Reading(
            document,
            limits,
            overlap=self._overlap,
            shapes=self.shapes,
            is_best_effort=is_best_effort,
        )
        self.membership = Membership(self.shapes)
        self.exclusion = Exclusion(self._wide_shapes)
        self._exact: dict[_Key, tuple[Shape, ...]] = {}
        self._loose: dict[_Key, tuple[Shape, ...]] = {}
        self._empty: dict[tuple[_Key, int], bool] = {}
        self._complements: dict[tuple[Atom, bool], Requirement] = {}

    @property
    def is_best_effort(self) -> bool:
        """Are keywords that cannot be enforced left out, and noted?"""
        return self.reading.is_best_effort

    @property
    def left_out(self) -> list[tuple[str, str, str]]:
        """What best effort left out so far: pointer, keyword and reason."""
        return self.reading.left_out

    @property
    def unasserted(self) -> list[tuple[str, str]]:
        """Pointer and name of each format met so far that is not asserted, since it is not known."""
        return list(self.reading.unasserted)

    @property
    def num_notes(self) -> int:
        """How many keywords and formats have been noted so far as not enforced."""
        return len(self.reading.left_out) + len(self.reading.unasserted)

    def leave_out(self, place: str, keyword: str, reason: str) -> None:
        """Note that a keyword is not enforced."""
        self.reading.leave_out(place, keyword, reason)

    def shapes(self, conj: Conj, *, loose: bool = False) -> tuple[Shape, ...]:
        """The shapes whose union satisfies `conj`. With `loose`, shapes that surely include those."""
        key = conj[0] if len(conj) == 1 else frozenset(conj)
        known = (self._loose if loose else self._exact).get(key)
        return self._find(key, conj, loose) if known is None else known

    def _find(self, key: _Key, conj: Conj, loose: bool) -> tuple[Shape, ...]:
        try:
            return self._search(key, conj, loose)
        except TooManyWays as error:
            if loose or not self.is_best_effort:
                raise
            self.leave_out(error.place, error.keyword, error.message)
            return self.shapes(conj, loose=True)

    def _search(self, key: _Key, conj: Conj, loose: bool) -> tuple[Shape, ...]:
        branch = Branch([Origin(atom, (i,)) for i, atom in enumerate(conj)], is_loose=loose)
        pointer = conj[0].node.pointer if conj else "#"
        found = self._read_alone(branch, pointer) if len(conj) == 1 else None
        if found is None:
            found = Search(self, loose, pointer).run(branch)
        if branch.is_plain and len(found) == 1 and found[0].values is None:  # the usual case
            self._exact[key] = self._loose[key] = (found[0],)
            return self._exact[key]
        if branch.is_plain and all(map(_has_simple_values, found)):
            # without choices both ways to search find the same
            self._exact[key] = self._loose[key] = tuple(filter(self._keep_values, found))
            return self._exact[key]
        if loose:
            self._loose[key] = tuple(found)
            return self._loose[key]
        found = [shape for shape in found if self._keep_values(shape)]
        if len(found) > 1:
            found = [shape for shape in found if not self.is_empty_shape(shape, 2)]
            found = _without_covered(found)
        self._exact[key] = tuple(found)
        return self._exact[key]

    def _read_alone(self, branch: Branch, pointer: str) -> list[Shape] | None:
        """The shapes of a branch with one schema pending, if that names no other schemas and leaves no choice; else None, and it is read."""
        origin = branch.pending[0]
        if not origin.atom.positive:
            return None
        branch.pending.clear()
        branch.seen[origin.atom] = ((),)
        self.read(origin, branch)
        if branch.pending or branch.choices or branch.evaluated:
            return None
        branch.shape.settle()
        branch.shape.pointer = pointer
        return [] if branch.shape.is_contradictory else [branch.shape]

    def _wide_shapes(self, atom: Atom) -> list[Shape]:
        branch = Branch([Origin(atom, ())], is_loose=True, has_complements=False)
        return Search(self, True, "#").run(branch)

    def _keep_values(self, shape: Shape) -> bool:
        """Leave the values of an enum that the rest of the shape admits; is any left (or was there no enum)?"""
        if shape.values is None:
            return True
        shape.values = {k: v for k, v in shape.values.items() if self.membership.holds(shape, v)}
        return bool(shape.values)

    # ------------------------------------------------------------------------------------------ reading one schema

    def read(self, origin: Origin, branch: Branch) -> None:
        """Write what one schema, or its complement, demands into a branch."""
        node, positive = origin.atom.node, origin.atom.positive
        if isinstance(node.schema, bool):
            if node.schema is not positive:
                branch.shape.kinds = 0
            return
        reading = self.reading
        if node not in reading.checked:
            check(node.schema, node.pointer, self.leave_out if self.is_best_effort else None)
            reading.checked.add(node)
        branch.origin, branch.position = origin, 0
        if not positive:
            self._read_complement(origin.atom, branch)
            return
        schema = reading.keywords(node)
        if origin.watches or node in reading.failing or not _UNEVALUATED.isdisjoint(schema):
            branch.is_plain = False
            if not branch.is_loose:
                unevaluated_keywords.begin(reading, node, schema, branch)
        for position, (keyword, value) in enumerate(schema.items()):
            reader = _READERS.get(keyword)
            if reader is not None:
                branch.position = position
                try:
                    reader(reading, node, value, branch)
                except GrammarError as error:
                    self._go_on(error, origin.atom, branch)

    def _read_complement(self, atom: Atom, branch: Branch) -> None:
        key = (atom, branch.is_loose)
        known = self._complements.get(key)
        try:
            if known is None:
                known = self._complements[key] = self._complement(atom, branch.is_loose)
            branch.choose(known)
        except GrammarError as error:
            self._go_on(error, atom, branch)

    def _complement(self, atom: Atom, loose: bool) -> Requirement:
        node, reading = atom.node, self.reading
        schema = reading.keywords(node)
        return [
            *plain_keywords.complements(reading, node, schema),
            *property_keywords.complements(reading, node, schema),
            *item_keywords.complements(reading, node, schema),
            *logic_keywords.complements(reading, node, schema, loose=loose),
            *unevaluated_keywords.complements(reading, node, schema),
        ]

    def _go_on(self, error: GrammarError, atom: Atom, branch: Branch) -> None:
        """Without the demand that cannot be enforced: where that is allowed."""
        branch.is_plain = False
        if branch.is_loose:
            return
        if not self.is_best_effort:
            raise error
        self.leave_out(error.place or atom.node.pointer, error.keyword, error.message)

    # ------------------------------------------------------------------------------------------ emptiness

    def is_empty(self, conj: Conj, depth: int) -> bool:
        """Does surely no value satisfy `conj`? False may mean "not seen"."""
        key = (conj[0] if len(conj) == 1 else frozenset(conj), depth)
        known = self._empty.get(key)
        if known is None:
            try:
                shapes = self.shapes(conj, loose=True)
                known = all(self.is_empty_shape(shape, depth) for shape in shapes)
            except GrammarError:
                known = False
            self._empty[key] = known
        return known

    def is_empty_shape(self, shape: Shape, depth: int) -> bool:
        """The same of one shape."""
        if shape.values is not None:
            return not any(
                self.membership.holds(shape, v, loose=True) for v in shape.values.values()
            )
        return (
            shape.kinds == OBJECT
            and depth > 0
            and any(
                self.is_empty(self.membership.property_conj(shape, name), depth - 1)
                for name in shape.required
            )
        )

    def _overlap(self, a: Atom, b: Atom) -> bool:
        return not self.exclusion.excludes(a, b, ALL_KINDS) and not self.is_empty(
            (a, b), _EMPTINESS_DEPTH
        )


def _has_simple_values(shape: Shape) -> bool:
    return shape.values is None or not any(
        isinstance(value, (list, dict)) for value in shape.values.values()
    )


def _without_covered(found: list[Shape]) -> list[Shape]:
    """Without shapes that differ from another one only in asking for more about which names are there."""
    groups: dict[Hashable, list[Shape]] = {}
    for shape in found:
        group = groups.setdefault(shape.presence_key(), [])
        required, absent = shape.required.keys(), shape.absent.keys()
        if len(group) > _MAX_COMPARED or not any(
            other.required.keys() <= required and other.absent.keys() <= absent for other in group
        ):
            group[:] = [
                other
                for other in group
                if len(group) > _MAX_COMPARED
                or not (required <= other.required.keys() and absent <= other.absent.keys())
            ]
            group.append(shape)
    kept = {id(shape) for group in groups.values() for shape in group}
    return [shape for shape in found if id(shape) in kept]
