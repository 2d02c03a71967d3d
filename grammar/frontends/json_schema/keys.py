"""The additional properties of an object shape: which keys they may have, and which values go with them.

Owns the division of undeclared keys by the patterns they match. Keys that match the same patterns have the same rule; classes of keys
with the same rule are joined again, and a pattern that makes no difference inside such a group is forgotten. Knows nothing of the order
or commas of members.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING

from ....errors import GrammarError
from ...expr import NEVER, Expr, alt, conj, minus, seq
from .code_points import ANY_TEXT
from .shape import Conj, PropertyRule, Shape, meet
from .witnesses import Block, Witness

if TYPE_CHECKING:
    from .builder import Builder

_MAX_PATTERNS = 6
_Class = tuple[bool, ...]  # for each pattern: does the key match it


def additional_members(
    builder: Builder, shape: Shape, names: list[str], block: Block | None, level: int
) -> Expr:
    """Key and value, at `level`, of the properties not in `names`; with `block` only of those that it describes."""
    patterns = list({id(p): p for rule in _rules(shape, block) for p, _ in rule.patterns}.values())
    if not patterns and block is None:
        return _without_patterns(builder, shape, names, level)
    if len(patterns) > _MAX_PATTERNS:
        builder.go_without(
            GrammarError(
                f"more than {_MAX_PATTERNS} patterns of patternProperties meet in one object",
                place=shape.pointer,
                keyword="patternProperties",
            )
        )
        keys = builder.quoted_without(ANY_TEXT, names)
        return seq(keys, builder.layout.colon, builder.call((), level))
    if block is not None:
        names = list(dict.fromkeys((*names, *block.names)))
    groups: dict[frozenset[object], tuple[Conj, set[_Class]]] = {}
    for matched in product((False, True), repeat=len(patterns)):
        hits = {id(p) for p, hit in zip(patterns, matched, strict=True) if hit}
        what = _value(shape, hits, block)
        if what is None or builder.is_surely_empty(what):
            continue
        groups.setdefault(frozenset(what), (what, set()))[1].add(matched)
    members: list[Expr] = []
    for what, classes in groups.values():
        keys = _key_language(builder, shape, patterns, classes, names)
        if keys != NEVER:
            members.append(seq(keys, builder.layout.colon, builder.call(what, level)))
    return alt(*members)


def _without_patterns(builder: Builder, shape: Shape, names: list[str], level: int) -> Expr:
    """The same where all additional properties are alike."""
    rules = shape.property_rules
    what = rules[0].others if len(rules) == 1 else meet(*(rule.others for rule in rules))
    if builder.is_surely_empty(what):
        return NEVER
    if not shape.names:
        keys = builder.quoted_without(ANY_TEXT, names)
    else:
        keys = _key_language(builder, shape, [], {()}, names)
    return seq(keys, builder.layout.colon, builder.call(what, level)) if keys != NEVER else NEVER


def _rules(shape: Shape, block: Block | None) -> Iterable[PropertyRule]:
    if block is None:
        return shape.property_rules
    return [*shape.property_rules, *(w.rule for w in (*block.falls, *block.avoids))]


def _value(shape: Shape, hits: set[int], block: Block | None) -> Conj | None:
    """What the value of a key that matches exactly these patterns must satisfy; None where there is no such key."""
    parts: list[Conj] = []
    for rule in shape.property_rules:
        found = [what for pattern, what in rule.patterns if id(pattern) in hits]
        parts.extend(found or [rule.others])
    if block is not None:
        if not all(_falls(w, hits) for w in block.falls) or any(
            _falls(w, hits) for w in block.avoids
        ):
            return None
        parts.extend(w.what for w in block.serves)
    return meet(*parts)


def _falls(witness: Witness, hits: set[int]) -> bool:
    """Does a key that matches exactly these patterns fall to the witness's part of its rule?"""
    own = [id(pattern) for pattern, _ in witness.rule.patterns]
    return own[witness.part] in hits if witness.part >= 0 else not hits.intersection(own)


def _key_language(
    builder: Builder, shape: Shape, patterns: list[Expr], classes: set[_Class], names: list[str]
) -> Expr:
    relevant = [i for i in range(len(patterns)) if not _is_irrelevant(classes, i)]
    reduced = {tuple(matched[i] for i in relevant) for matched in classes}
    allowed = builder.normaliser.reading.strings(shape.names) if shape.names else ANY_TEXT
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
