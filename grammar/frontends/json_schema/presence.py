"""Object shapes that differ only in which properties must be there or must not: one group, with a clause for each shape.

Owns the grouping, and the names of the properties that a group speaks of. anyOf, oneOf, if and not over `required`, and dependencies
between properties, leave many such shapes; what is written for a group is written once. Knows nothing of text.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from .shape import PropertyRule, Shape
from .witnesses import Block, Placing, is_never

_MAX_CLAUSES = 256  # shapes in one group; more make another one


class Presence(Struct, frozen=True):
    """Properties that must be there, and properties that must not."""

    needs: frozenset[str] = frozenset()
    bars: frozenset[str] = frozenset()

    def covers(self, other: Presence) -> bool:
        """Does every object of `other` satisfy this too?"""
        return self.needs <= other.needs and self.bars <= other.bars


class Group(Struct):
    """What shapes share, as a shape without absent properties, and which properties each of them wants present or absent."""

    shape: Shape
    blocks: tuple[Block, ...]  # additional properties that must be there
    clauses: list[Presence]
    mentioned: dict[str, None] = {}  # names of the clauses

    @property
    def may_be_empty(self) -> bool:
        """Is the object without properties in?"""
        return (
            self.shape.min_properties == 0
            and not self.blocks
            and any(not clause.needs for clause in self.clauses)
        )

    @property
    def declared(self) -> dict[str, None]:
        """The declared names, in their order."""
        rules = self.shape.property_rules
        if len(rules) == 1:
            return dict.fromkeys(rules[0].named)
        return dict.fromkeys(name for rule in rules for name in rule.named)


def groups(placings: Sequence[Placing]) -> list[Group]:
    """The shapes, each with the additional properties it asks for, sorted into groups."""
    found: dict[object, Group] = {}
    done: list[Group] = []
    for shape, blocks in placings:
        rules, absent = _split(shape.property_rules)
        if shape.absent:
            absent.update(shape.absent)
        clause = Presence(frozenset(shape.required), frozenset(absent))
        key = _key_of(shape, rules, blocks) if len(placings) > 1 else None
        group = found.get(key)
        if group is None or len(group.clauses) >= _MAX_CLAUSES:
            group = found[key] = Group(_without_absences(shape, rules), blocks, [])
            done.append(group)
        group.clauses.append(clause)
        group.mentioned.update(shape.required)
        group.mentioned.update(absent)
    for group in done:
        if len(group.clauses) > 1:
            group.clauses = least(group.clauses)
    return done


def _key_of(shape: Shape, rules: list[PropertyRule], blocks: tuple[Block, ...]) -> object:
    """Equal for shapes of one group."""
    return (
        tuple(map(id, rules)),
        shape.names,
        shape.min_properties,
        shape.max_properties,
        tuple(block.key for block in blocks),
    )


def least(clauses: Sequence[Presence]) -> list[Presence]:
    """The clauses that no other one covers, nor contradicts itself: together they say the same."""
    distinct = sorted(
        (c for c in dict.fromkeys(clauses) if not c.needs & c.bars),
        key=lambda c: len(c.needs) + len(c.bars),
    )
    kept: list[Presence] = []
    for clause in distinct:
        if not any(other.covers(clause) for other in kept):
            kept.append(clause)
    return kept


def _split(rules: list[PropertyRule]) -> tuple[list[PropertyRule], dict[str, None]]:
    """The rules that say more than that properties are absent, and the names of those that are."""
    absent: dict[str, None] = {}
    if len(rules) == 1 and (rules[0].others or not rules[0].named or rules[0].patterns):
        return rules, absent
    others: list[PropertyRule] = []
    for rule in rules:
        if not rule.others and rule.named and not rule.patterns and _all_absent(rule):
            absent.update(dict.fromkeys(rule.named))
        else:
            others.append(rule)
    return others, absent


def _all_absent(rule: PropertyRule) -> bool:
    return all(what and is_never(what) for what in rule.named.values())


def _without_absences(shape: Shape, rules: list[PropertyRule]) -> Shape:
    if len(rules) == len(shape.property_rules) and not shape.absent:
        return shape
    rest = shape.copy()
    rest.property_rules = rules
    rest.absent = {}
    return rest
