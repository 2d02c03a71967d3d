"""Quick proofs that two schemas share no value: by kind, by constants, by a property that has different constants in each.

Owns the digest of a schema by which pairs are compared without looking at the schemas again: n alternatives cost n digests. A digest looks
at no complement: a complement that others make superfluous may then be left out, since what proves it superfluous is no complement that
could be left out in turn. Knows of keywords only enum and const; "not excluded" says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import cast

from ....errors import GrammarError
from .membership import kind_of
from .shape import ALL_KINDS, OBJECT, Atom, Conj, Shape
from .source import Json, value_key

_MAX_SHAPES = 12  # of one schema: more are not worth comparing

_Keys = frozenset[object]


@dataclass(frozen=True, slots=True)
class _Digest:
    """What can be seen of one shape."""

    kinds: int
    values: _Keys | None
    required: frozenset[str]
    absent: frozenset[str]
    tags: dict[str, _Keys]  # properties with few values


@dataclass(frozen=True, slots=True)
class _Meeting:
    """What two shapes share at most: values of these kinds, and no object that has one of these properties."""

    kinds: int
    without: frozenset[str]


_NOTHING_KNOWN = (_Meeting(ALL_KINDS, frozenset()),)


class Exclusion:
    """Comparison of schemas, each digested once. `wide_shapes` gives shapes of a schema, read without complements."""

    def __init__(self, wide_shapes: Callable[[Atom], list[Shape]]) -> None:
        self._wide_shapes = wide_shapes
        self._digests: dict[Atom, list[_Digest] | None] = {}
        self._pairs: dict[tuple[Atom, Atom], tuple[_Meeting, ...]] = {}

    def excludes(self, a: Atom, b: Atom, kinds: int, required: Collection[str] = ()) -> bool:
        """Is it plain that no value of these kinds, if an object with these properties, satisfies both?"""
        known = self._pairs.get((a, b))
        if known is None:
            known = self._compare(a, b)
        for meeting in known:
            shared = meeting.kinds & kinds
            if shared & OBJECT and not meeting.without.isdisjoint(required):
                shared &= ~OBJECT
            if shared:
                return False
        return True

    def _compare(self, a: Atom, b: Atom) -> tuple[_Meeting, ...]:
        left, right = self._digest(a), self._digest(b)
        if left is None or right is None:
            return _NOTHING_KNOWN  # perhaps only while one of them is being made
        found = tuple(m for x in left for y in right if (m := _meeting(x, y)).kinds)
        self._pairs[a, b] = self._pairs[b, a] = found
        return found

    def _digest(self, atom: Atom) -> list[_Digest] | None:
        if atom not in self._digests:
            self._digests[atom] = None  # while it is being made, nothing is known
            try:
                shapes = self._wide_shapes(atom)
                if len(shapes) <= _MAX_SHAPES:
                    self._digests[atom] = [_digest_of(shape) for shape in shapes]
            except GrammarError:
                pass
        return self._digests[atom]


def _digest_of(shape: Shape) -> _Digest:
    kinds, values = shape.kinds, None
    if shape.values is not None:
        kinds = 0
        for value in shape.values.values():
            kinds |= kind_of(value) & shape.kinds
        values = frozenset(shape.values)
    tags: dict[str, _Keys] = {}
    for rule in shape.property_rules:
        for name, what in rule.named.items():
            found = _constants(what)
            if found is not None:
                tags[name] = tags[name] & found if name in tags else found
    return _Digest(kinds, values, frozenset(shape.required), frozenset(shape.absent), tags)


def _constants(what: Conj) -> _Keys | None:
    """Values of which what satisfies `what` is one, if that can be read off."""
    for atom in what:
        schema = atom.node.schema
        if atom.positive and isinstance(schema, dict) and "$ref" not in schema:
            if "const" in schema:
                return frozenset((value_key(schema["const"]),))
            if isinstance(schema.get("enum"), list):
                return frozenset(map(value_key, cast("list[Json]", schema["enum"])))
    return None


def _meeting(a: _Digest, b: _Digest) -> _Meeting:
    kinds = a.kinds & b.kinds
    if a.values is not None and b.values is not None and a.values.isdisjoint(b.values):
        return _Meeting(0, frozenset())
    without = frozenset(
        name for name, keys in a.tags.items() if name in b.tags and keys.isdisjoint(b.tags[name])
    )
    required = a.required | b.required
    if not required.isdisjoint(without | a.absent | b.absent):
        kinds &= ~OBJECT
    return _Meeting(kinds, without)
