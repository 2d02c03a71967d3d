"""The additional properties of an object shape: which keys they may have, and which values go with them.

Owns the division of undeclared keys by the patterns they match. Keys that match the same patterns have the same rule; classes of keys
with the same rule are joined again, and a pattern that makes no difference inside such a group is forgotten. Knows nothing of the order
or commas of members.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from ....errors import GrammarError
from ...expr import NEVER, Expr, alt, conj, lit, minus, seq
from .code_points import ANY_TEXT
from .shape import Conj, PropertyRule, Shape, meet

if TYPE_CHECKING:
    from .builder import Builder

_MAX_PATTERNS = 6
_Class = tuple[bool, ...]  # for each pattern: does the key match it


@dataclass(frozen=True, slots=True)
class Witness:
    """An additional property that falls to part `part` of `rule` and satisfies `what` (see `shape.some_property`)."""

    rule: PropertyRule
    part: int
    what: Conj


def additional_members(
    builder: Builder, shape: Shape, names: list[str], witness: Witness | None
) -> Expr:
    """Texts `"key":value` of the properties not in `names`; with `witness` only of those that it describes."""
    patterns = list(
        {id(p): p for rule in _rules(shape, witness) for p, _ in rule.patterns}.values()
    )
    if len(patterns) > _MAX_PATTERNS:
        raise GrammarError(
            f"more than {_MAX_PATTERNS} patterns of patternProperties meet in one object",
            place=shape.pointer,
            keyword="patternProperties",
        )
    groups: dict[frozenset[object], tuple[Conj, set[_Class]]] = {}
    for matched in product((False, True), repeat=len(patterns)):
        hits = {id(p) for p, hit in zip(patterns, matched, strict=True) if hit}
        what = _value(shape, hits, witness)
        if what is None or (what and builder.normaliser.is_empty(what, 2)):
            continue
        groups.setdefault(frozenset(what), (what, set()))[1].add(matched)
    members: list[Expr] = []
    for what, classes in groups.values():
        keys = _key_language(builder, shape, patterns, classes, names)
        if keys != NEVER:
            members.append(seq(keys, lit(":"), builder.call(what)))
    return alt(*members)


def _rules(shape: Shape, witness: Witness | None) -> Iterable[PropertyRule]:
    return shape.property_rules if witness is None else [*shape.property_rules, witness.rule]


def _value(shape: Shape, hits: set[int], witness: Witness | None) -> Conj | None:
    """What the value of a key that matches exactly these patterns must satisfy; None where there is no such key."""
    parts: list[Conj] = []
    for rule in shape.property_rules:
        found = [what for pattern, what in rule.patterns if id(pattern) in hits]
        parts.extend(found or [rule.others])
    if witness is not None:
        own = [id(pattern) for pattern, _ in witness.rule.patterns]
        falls = own[witness.part] in hits if witness.part >= 0 else not hits.intersection(own)
        if not falls:
            return None
        parts.append(witness.what)
    return meet(*parts)


def _key_language(
    builder: Builder, shape: Shape, patterns: list[Expr], classes: set[_Class], names: list[str]
) -> Expr:
    relevant = [i for i in range(len(patterns)) if not _is_irrelevant(classes, i)]
    reduced = {tuple(matched[i] for i in relevant) for matched in classes}
    allowed = builder.string_language(shape.names) if shape.names else ANY_TEXT
    if relevant:
        choices = [
            _class_language([patterns[i] for i in relevant], matched, allowed)
            for matched in sorted(reduced)
        ]
        language = alt(*choices)
    else:
        language = allowed
    if language == NEVER:
        return NEVER
    held = _held(builder, shape, [patterns[i] for i in relevant], reduced, names)
    return builder.quoted_without(language, held)


def _held(
    builder: Builder, shape: Shape, patterns: list[Expr], classes: set[_Class], names: list[str]
) -> list[str]:
    """Those of `names` that are among the keys."""
    if not patterns and not shape.names:
        return names
    membership = builder.normaliser.membership
    return [
        name
        for name in names
        if tuple(membership.matches(p, name) for p in patterns) in classes
        and membership.satisfies(shape.names, name)
    ]


def _is_irrelevant(classes: set[_Class], index: int) -> bool:
    return all((*c[:index], not c[index], *c[index + 1 :]) in classes for c in classes)


def _class_language(patterns: list[Expr], matched: _Class, allowed: Expr) -> Expr:
    inside = [p for p, hit in zip(patterns, matched, strict=True) if hit]
    outside = [p for p, hit in zip(patterns, matched, strict=True) if not hit]
    if allowed != ANY_TEXT:
        inside.append(allowed)
    language = conj(*inside) if inside else ANY_TEXT
    return minus(language, alt(*outside)) if outside else language
