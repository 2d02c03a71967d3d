"""Properties that an object must have so that a rule on properties is broken (`not` over `properties` and their like).

Owns where such a property can stand: on a name that the schemas speak of, or among the additional ones. Two of them among the additional
ones are one property, or two whose keys differ for sure: they differ in which of the two they could be by their key. Objects that have
them only on two keys of the same sort are not written. Knows nothing of text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from .membership import Membership
from .shape import Conj, PropertyRule, Shape

MAX_VARIANTS = 256  # ways to place the properties of one shape
_MAX_TOGETHER = 2  # of them among the additional properties


@dataclass(frozen=True, slots=True)
class Witness:
    """A property that falls to part `part` of `rule` and satisfies `what` (see `Shape.some_property`)."""

    rule: PropertyRule
    part: int
    what: Conj

    @property
    def key(self) -> tuple[int, int, Conj]:
        """Equal for equal ones."""
        return (id(self.rule), self.part, self.what)


@dataclass(frozen=True, slots=True)
class Block:
    """One additional property: what it serves as, what its key would allow it to serve as, and what not."""

    serves: tuple[Witness, ...]
    falls: tuple[Witness, ...]
    avoids: tuple[Witness, ...]
    names: tuple[str, ...]  # which it does not have

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for equal ones."""
        parts = (self.serves, self.falls, self.avoids)
        return tuple(tuple(w.key for w in part) for part in parts)


Placing = tuple[Shape, tuple[Block, ...]]
"""A shape with what was put on names in it, and the additional properties it must have."""


class TooMany(Exception):
    """There are more ways than are written."""


def is_never(what: Conj) -> bool:
    """Is there a part of `what` that allows no value, by its looks?"""
    return any(atom.node.schema is (not atom.positive) for atom in what)


def placings(shape: Shape, finite: Iterable[str], membership: Membership) -> Iterator[Placing]:
    """The ways to place all properties that `shape` asks for; `finite`: the only names there are, if not empty. Raises TooMany."""
    spoken_of = dict.fromkeys(n for rule, _, _ in shape.some_property for n in rule.named)
    spoken_of.update(dict.fromkeys(finite))
    found: list[tuple[Shape, list[Witness]]] = [(shape, [])]
    for rule, part, what in shape.some_property:
        witness = Witness(rule, part, what)
        found = [
            placed
            for variant, others in found
            for placed in _placed(variant, others, witness, spoken_of, membership)
        ]
        if len(found) > MAX_VARIANTS:
            raise TooMany(f"there are more than {MAX_VARIANTS} ways")
    if any(finite):
        found = [pair for pair in found if not pair[1]]
    return (
        (variant, blocks)
        for variant, others in found
        for blocks in _blocks(others, tuple(spoken_of))
    )


def _placed(
    variant: Shape,
    others: list[Witness],
    witness: Witness,
    spoken_of: Iterable[str],
    membership: Membership,
) -> Iterator[tuple[Shape, list[Witness]]]:
    names = dict.fromkeys(n for rule in variant.property_rules for n in rule.named)
    names.update(variant.required)
    names.update(dict.fromkeys(spoken_of))
    for name in names:
        if name in variant.absent or is_never(witness.what):
            continue
        if membership.falls_to(witness.rule, name, witness.part):
            named = variant.copy()
            named.required[name] = None
            if witness.what:
                named.property_rules.append(PropertyRule({name: witness.what}, (), ()))
            yield named, others
    yield variant, [*others, witness]


def _blocks(witnesses: list[Witness], names: tuple[str, ...]) -> Iterator[tuple[Block, ...]]:
    if not witnesses:
        yield ()
        return
    if len(witnesses) > _MAX_TOGETHER:
        raise TooMany(f"more than {_MAX_TOGETHER} additional properties may be asked for")
    yield (Block(tuple(witnesses), tuple(witnesses), (), names),)
    if len(witnesses) == 1:
        return
    first, second = witnesses
    for more, also in product((False, True), repeat=2):
        if not (more and also):
            yield (
                _block(first, second, names, is_both=more),
                _block(second, first, names, is_both=also),
            )


def _block(serves: Witness, other: Witness, names: tuple[str, ...], *, is_both: bool) -> Block:
    if is_both:
        return Block((serves,), (serves, other), (), names)
    return Block((serves,), (serves,), (other,), names)
