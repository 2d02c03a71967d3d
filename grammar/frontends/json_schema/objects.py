"""Object shapes as text: which members an object has, which of them must be there, and how many.

Owns the members of each group of shapes (see `presence`): declared names in their order, names that are required or barred but declared
nowhere, and the additional ones. How they are put in a row is owned by `members`, white space by `layout`, the keys of additional
properties by `keys`. Knows nothing of keywords; the rules of the values come from the builder.

An additional key may come twice (a parser keeps the last); wherever that could break a rule, the rule is refused. Where `propertyNames`
leaves a finite set of names, each of them is a member of its own, which comes once. Additional properties that a complement asks for
(see `witnesses`) come last, so that no other one can replace them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import permutations
from typing import TYPE_CHECKING

from ....errors import GrammarError
from ...expr import NEVER, Clause, Expr, alt, join, seq
from .keys import additional_members
from .layout import BRACES, perhaps
from .members import Inside, in_any_order, in_declared_order
from .presence import Group, groups
from .shape import Conj, Shape
from .source import string_text
from .witnesses import Placing, TooMany, placings

if TYPE_CHECKING:
    from .builder import Builder

_MAX_FINITE_NAMES = 1000  # names of a finite `propertyNames`; more of them are additional ones


class ObjectWriter:
    """Writes the object part of shapes."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._layout = builder.layout
        self._known: dict[tuple[str, Conj, int], Expr] = {}

    def write(self, shapes: list[Shape], level: int) -> Expr:
        """Texts, at `level`, of the objects of these shapes."""
        parts: list[Expr] = []
        may_be_empty = False
        for group in groups(self._placed(shapes)):
            may_be_empty = may_be_empty or group.may_be_empty
            if not self._layout.is_full(level):
                parts.append(self._filled(group, self._layout.inside(level)))
        return self._layout.wrap(BRACES, level, alt(*parts), may_be_empty=may_be_empty)

    # ------------------------------------------------------------------------------------------ one group

    def _filled(self, group: Group, level: int) -> Expr:
        """What stands between the braces of the objects of a group that have a property; their parts are at `level`."""
        shape, blocks = group.shape, group.blocks
        declared = group.declared
        finite = self._finite_names(shape)
        floating = [n for n in {**group.mentioned, **finite} if n not in declared]
        names = [*declared, *floating]
        extra = NEVER if finite else additional_members(self._builder, shape, names, None, level)
        first = self._members(shape, declared, level)
        later = self._members(shape, floating, level)
        low, high = shape.min_properties, shape.max_properties
        if high is not None:
            high -= len(blocks)
            if high < 0:
                return NEVER
        clauses = list(_clauses(group, [*first, *later], high))
        if (
            low > 1
            and extra != NEVER
            and any(low - len(clause.needs) > max(len(blocks), 1) for clause in clauses)
        ):
            self._builder.go_without(
                GrammarError(
                    f"minProperties {low} beside additional properties is not supported: a key could come twice",
                    place=shape.pointer,
                    keyword="minProperties",
                )
            )
        if high is not None and extra == NEVER and high >= len(first) + len(later):
            high = None
        inside = Inside(
            tuple(first.values()),
            tuple(later.values()),
            None if extra == NEVER else extra,
            tuple(clauses),
            max(low - len(blocks), 1),
            high,
            self._layout.comma(level),
        )
        inner = in_any_order(inside) if self._builder.any_order else in_declared_order(inside)
        if not blocks:
            return inner
        last = [additional_members(self._builder, shape, names, b, level) for b in blocks]
        if NEVER in last:
            return NEVER
        before = seq(inner, inside.comma)
        if low <= len(blocks) and any(not clause.needs for clause in clauses):
            before = perhaps(before)
        return alt(*(seq(before, join(order, inside.comma)) for order in permutations(last)))

    def _members(self, shape: Shape, names: Iterable[str], level: int) -> dict[str, Expr]:
        """The members of these names, apart from those for which there is no value."""
        builder, layout, known = self._builder, self._layout, self._known
        rules = shape.property_rules
        is_plain = len(rules) == 1 and not rules[0].patterns and not shape.names
        found: dict[str, Expr] = {}
        for name in names:
            if is_plain:
                what = rules[0].named.get(name, rules[0].others)
            else:
                what = builder.normaliser.membership.property_conj(shape, name)
            key = (name, what, level)
            member = known.get(key)
            if member is None:
                if builder.is_surely_empty(what):
                    continue
                member = layout.member(string_text(name), builder.call(what, level))
                known[key] = member
            found[name] = member
        return found

    def _finite_names(self, shape: Shape) -> dict[str, None]:
        """The names that `propertyNames` allows, where they are a small finite set; else nothing."""
        if not shape.names:
            return {}
        found: dict[str, None] = {}
        for part in self._builder.normaliser.shapes(shape.names):
            if part.values is None or len(part.values) > _MAX_FINITE_NAMES:
                return {}
            found.update(dict.fromkeys(v for v in part.values.values() if isinstance(v, str)))
        return found

    def _placed(self, shapes: list[Shape]) -> list[Placing]:
        """The shapes with the properties that break a rule, wherever they can stand."""
        placed: list[Placing] = []
        for shape in shapes:
            if not shape.some_property:
                placed.append((shape, ()))
                continue
            finite = self._finite_names(shape)
            try:
                placed.extend(placings(shape, finite, self._builder.normaliser.membership))
            except TooMany as reason:
                message = f"complements of rules on properties: {reason}"
                self._builder.go_without(GrammarError(message, place=shape.pointer, keyword="not"))
                placed.append((shape, ()))
        return placed


def _clauses(group: Group, names: list[str], high: int | None) -> Iterator[Clause]:
    """The clauses by index of the members that there are; without those that cannot hold."""
    index_of = {name: index for index, name in enumerate(names)}
    for clause in group.clauses:
        needs, bars = clause.needs, clause.bars
        if needs & bars or not needs <= index_of.keys() or (high is not None and len(needs) > high):
            continue
        yield Clause(
            frozenset(map(index_of.__getitem__, needs)),
            frozenset(index_of[name] for name in bars if name in index_of),
        )
