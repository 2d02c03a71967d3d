"""A branch of the search for shapes: a conjunction of schemas being put together.

Owns what the readers of keywords write into: the shape so far, the schemas that must hold as well and are still to be read, the choices
put off, and what the schemas that hold have evaluated. A requirement is a list of options of which at least one must hold; an option is a
list of facts and of schemas (or complements of schemas), all of which must hold. Knows nothing of any keyword.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from .document import Node
from .evaluation import Evaluated, Watch
from .shape import Atom, Fact, Place, PropertyRule, Shape

Part = Fact | Atom
Option = Sequence[Part]
Requirement = Sequence[Option]


def opposite(atom: Atom) -> Atom:
    """The complement of an atom."""
    return Atom(atom.node, not atom.positive)


class Origin(Struct, frozen=True, eq=False):
    """An atom under way, where it stands, the atoms that led to it, and who wants to know what it evaluates."""

    atom: Atom
    place: Place
    above: Origin | None = None
    watches: tuple[Watch, ...] = ()

    def stems_from(self, atom: Atom) -> bool:
        """Is the schema of `atom` this one, or one of those that led to it?"""
        origin: Origin | None = self
        while origin is not None:
            if origin.atom.node is atom.node:
                return True
            origin = origin.above
        return False


class Choice(Struct, frozen=True):
    """A requirement put off, and the keyword that makes it."""

    requirement: Requirement
    origin: Origin
    place: Place


_NOTHING = Origin(Atom(Node(True, "#", ""), True), ())


class Branch:
    """One partial conjunction. With `is_loose` it may be wider than what the schemas say, without complements even more so."""

    __slots__ = (
        "choices",
        "evaluated",
        "has_complements",
        "is_loose",
        "is_plain",
        "origin",
        "pending",
        "position",
        "seen",
        "shape",
    )

    def __init__(
        self, pending: list[Origin], *, is_loose: bool, has_complements: bool = True
    ) -> None:
        self.shape = Shape()
        self.is_loose = is_loose
        self.has_complements = has_complements
        self.is_plain = True  # reading it loosely or exactly makes no difference
        self.pending = pending
        self.seen: dict[Atom, tuple[tuple[Watch, ...], ...]] = {}  # and for which watches
        self.choices: list[Choice] = []
        self.evaluated: dict[Watch, Evaluated] = {}
        self.origin = _NOTHING  # being read
        self.position = 0  # of the keyword being read

    def fork(self, choices: list[Choice]) -> Branch:
        """A copy with nothing pending and these choices."""
        branch = Branch([], is_loose=self.is_loose, has_complements=self.has_complements)
        branch.is_plain = self.is_plain
        branch.shape = self.shape.copy()
        branch.seen = dict(self.seen)
        branch.choices = list(choices)
        branch.evaluated = dict(self.evaluated)
        return branch

    def demand(self, atom: Atom, index: int = 0) -> None:
        """The keyword being read demands that `atom` holds of the same value."""
        place = (*self.origin.place, self.position, index)
        self._put_down(atom, self.origin, place)

    def choose(self, requirement: Requirement) -> None:
        """The keyword being read demands one of these options."""
        place = (*self.origin.place, self.position)
        if len(requirement) == 1:
            self.take(requirement[0], self.origin, place)
        elif requirement:
            self.is_plain = False
            self.choices.append(Choice(requirement, self.origin, place))
        else:
            self.shape.kinds = 0

    def add_rule(self, rule: PropertyRule) -> None:
        """The keyword being read is this rule on properties."""
        self.shape.property_rules.append(rule)
        self.shape.rule_places.append((*self.origin.place, self.position))

    def take(self, option: Option, origin: Origin, place: Place) -> None:
        """Apply the facts of an option; the schemas it names are put down as pending."""
        shape = self.shape
        for index, part in enumerate(option):
            if isinstance(part, Atom):
                self._put_down(part, origin, (*place, index))
            else:
                part(shape)
        missing = len(shape.property_rules) - len(shape.rule_places)
        shape.rule_places.extend([place] * missing)

    def _put_down(self, atom: Atom, origin: Origin, place: Place) -> None:
        if not atom.positive and not self.has_complements:
            return
        watches = origin.watches if atom.positive else ()
        self.pending.append(Origin(atom, place, origin, watches))

    def holds(self, atom: Atom, watches: tuple[Watch, ...]) -> bool:
        """Is `atom` part of this conjunction already (as far as these watches ask)?"""
        known = self.seen.get(atom)
        return known is not None and (watches if atom.positive else ()) in known

    def is_met(self, choice: Choice) -> bool:
        """Does some option hold already? Not by what led to the choice: that would be a circle."""
        origin = choice.origin
        return any(
            len(option) > 0
            and all(
                isinstance(part, Atom)
                and self.holds(part, origin.watches)
                and not origin.stems_from(part)
                for part in option
            )
            for option in choice.requirement
        )
