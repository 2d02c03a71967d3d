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
from dataclasses import dataclass
from itertools import chain

from ....errors import GrammarError
from ...expr import Limits
from . import item_keywords, logic_keywords, plain_keywords, property_keywords
from .document import Document
from .keywords import check
from .membership import Membership
from .reading import Option, Reading, Requirement, Schema
from .shape import OBJECT, Atom, Conj, Place, Shape

_MAX_BRANCHES = 4000  # ways looked at for one conjunction of schemas
_EMPTINESS_DEPTH = 3  # levels of required properties looked through for a contradiction

_Placed = tuple[int, Requirement]


class Normaliser:
    """Shapes of the schemas of one document."""

    def __init__(self, document: Document, limits: Limits) -> None:
        self.document = document
        self.reading = Reading(
            document, limits, lambda a, b: not self.is_empty((a, b), _EMPTINESS_DEPTH)
        )
        self.membership = Membership(self.shapes)
        self._shapes: dict[tuple[frozenset[Atom], bool], tuple[Shape, ...]] = {}
        self._demands_of: dict[tuple[Atom, bool], list[_Placed]] = {}
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

    def demands(self, atom: Atom, *, loose: bool) -> list[_Placed]:
        """What one atom demands, each with the position of its keyword."""
        node, positive = atom
        if isinstance(node.schema, bool):
            return [] if node.schema is positive else [(0, [])]
        key = (atom, loose)
        known = self._demands_of.get(key)
        if known is None:
            check(node.schema, node.pointer)
            try:
                known = self._read(atom, loose) if positive else [(0, self._complement(atom))]
            except GrammarError:
                if not loose:
                    raise
                known = []
            self._demands_of[key] = known
        return known

    def _read(self, atom: Atom, loose: bool) -> list[_Placed]:
        node, reading = atom.node, self.reading
        schema = reading.keywords(node)
        found: list[_Placed] = [(0, r) for r in plain_keywords.demands(reading, node, schema)]
        found.extend((0, r) for r in item_keywords.demands(reading, node, schema))
        places = {keyword: place for place, keyword in enumerate(schema)}
        for keyword, requirement in property_keywords.demands(reading, node, schema):
            found.append((places.get(keyword, 0), requirement))
        for keyword, requirement in logic_keywords.demands(reading, node, schema, loose=loose):
            found.append((places[keyword], requirement))
        return found

    def _complement(self, atom: Atom) -> Requirement:
        node, reading = atom.node, self.reading
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


@dataclass(frozen=True, slots=True)
class _Origin:
    """An atom under way, where it stands, and the atoms that led to it."""

    atom: Atom
    place: Place
    above: _Origin | None


@dataclass(slots=True)
class _State:
    """A partial conjunction: what is known, what is still to be read, and the choices put off."""

    shape: Shape
    pending: list[_Origin]
    seen: dict[Atom, None]
    choices: list[tuple[Requirement, _Origin, Place]]

    def branch(self, without: int) -> _State:
        """A copy to take one option of choice number `without` in."""
        choices = self.choices[:without] + self.choices[without + 1 :]
        return _State(self.shape.copy(), [], dict(self.seen), choices)

    def take(self, option: Option, origin: _Origin, place: Place) -> None:
        """Apply the facts of an option; the schemas it names are put down as pending."""
        self.shape.place = place
        for index, part in enumerate(option):
            if isinstance(part, Atom):
                self.pending.append(_Origin(part, (*place, index), origin))
            else:
                part(self.shape)


class _Search:
    """One search through the options of a conjunction."""

    def __init__(self, normaliser: Normaliser, loose: bool) -> None:
        self._normaliser = normaliser
        self._loose = loose
        self._num_branches = 0

    def run(self, conj: Conj) -> Iterator[Shape]:
        """Every shape found."""
        start = [_Origin(atom, (index,), None) for index, atom in enumerate(conj)]
        for shape in self._branch(_State(Shape(), start, {}, [])):
            shape.settle_order()
            if conj:
                shape.pointer = conj[0].node.pointer
            yield shape

    def _branch(self, state: _State) -> Iterator[Shape]:
        if not self._propagate(state):
            return
        if not state.choices:
            yield state.shape
            return
        first = min(range(len(state.choices)), key=lambda i: len(state.choices[i][0]))
        requirement, origin, place = state.choices[first]
        for option in requirement:
            self._num_branches += 1
            if self._num_branches > _MAX_BRANCHES:
                raise GrammarError(
                    f"anyOf, oneOf, not and if leave more than {_MAX_BRANCHES} ways to satisfy this schema",
                    place=origin.atom.node.pointer,
                )
            narrowed = state.branch(first)
            narrowed.take(option, origin, place)
            yield from self._branch(narrowed)

    def _propagate(self, state: _State) -> bool:
        """Take everything that leaves no choice; False on a contradiction."""
        position = 0
        while position < len(state.pending):
            origin = state.pending[position]
            position += 1
            _refuse_circle(origin)
            if origin.atom in state.seen:
                continue
            state.seen[origin.atom] = None
            for place, requirement in self._normaliser.demands(origin.atom, loose=self._loose):
                if len(requirement) == 1:
                    state.take(requirement[0], origin, (*origin.place, place))
                elif requirement:
                    state.choices.append((requirement, origin, (*origin.place, place)))
                else:
                    return False
            if state.shape.is_contradictory:
                return False
        return not state.shape.is_contradictory


def _refuse_circle(origin: _Origin) -> None:
    above = origin.above
    while above is not None:
        if above.atom == origin.atom:
            raise GrammarError(
                "the schema refers to itself without entering a value: it means nothing",
                place=origin.atom.node.pointer,
                keyword="$ref",
            )
        above = above.above
