"""What schemas have evaluated of an object or array, for unevaluatedProperties and unevaluatedItems.

Owns the two data types: who asks (a watch, one for each such keyword in force) and the answer for one schema object or for several that
hold together. Knows nothing of the search that collects the answers.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...expr import Expr
from .document import Node
from .shape import Conj


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Parts of a value that keywords have spoken of."""

    names: frozenset[str] = frozenset()
    patterns: tuple[Expr, ...] = ()
    has_all_properties: bool = False
    num_prefix: int = 0
    has_all_items: bool = False
    contained: tuple[Conj, ...] = ()  # items that satisfy one of these

    def joined(self, other: Evaluated) -> Evaluated:
        """What either has evaluated."""
        known = {id(p) for p in self.patterns}
        return Evaluated(
            self.names | other.names,
            self.patterns + tuple(p for p in other.patterns if id(p) not in known),
            self.has_all_properties or other.has_all_properties,
            max(self.num_prefix, other.num_prefix),
            self.has_all_items or other.has_all_items,
            tuple(dict.fromkeys((*self.contained, *other.contained))),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Watch:
    """unevaluatedProperties or unevaluatedItems of one schema object (or both), in force."""

    node: Node
    properties: Conj = ()  # what each property that is not evaluated must satisfy
    items: Conj = ()
    fails: bool = False  # or, instead, some such property or item must not
