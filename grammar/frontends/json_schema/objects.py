"""Object shapes as text: declared properties in their order, then additional ones.

Owns the layout of objects (no spaces), the order of properties, and how commas are placed without a state for each pair of properties.
Knows nothing of keywords; the rules of the values come from the builder, the keys of additional properties from `keys`.

    order      properties as the schemas declare them; then those that are required and undeclared, in any order while they are few,
               with additional properties before, between and after them
    commas     up to the first required member an optional one brings the comma that follows it, beyond that every member brings the
               comma before it; without a required member the members are halved: something of the first half and perhaps more of the
               second, or something of the second alone
    repeats    an additional key may come twice (a parser keeps the last); wherever that could break a rule, the rule is refused
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

from ....errors import GrammarError
from ...expr import EMPTY, NEVER, Expr, alt, lit, opt, repeat, seq, star
from .keys import Witness, additional_members
from .shape import PropertyRule, Shape
from .source import string_text

if TYPE_CHECKING:
    from .builder import Builder

_COMMA = lit(",")
_MAX_ANY_ORDER = 3  # undeclared required properties that may come in any order
_MAX_COUNTED = 20_000  # (member, count) pairs of objects whose properties are counted
_MAX_VARIANTS = 64  # ways to place the property that a negated rule on properties asks for


@dataclass(frozen=True, slots=True)
class _Member:
    """A property that comes at most once, or a run of additional ones."""

    text: Expr
    is_required: bool = False
    is_run: bool = False


class ObjectWriter:
    """Writes the object part of shapes."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder

    def write(self, shape: Shape) -> Expr:
        """JSON texts of the objects of a shape."""
        if shape.some_property:
            return alt(
                *(self._one(variant, witnesses) for variant, witnesses in self._variants(shape))
            )
        return self._one(shape, [])

    def _one(self, shape: Shape, witnesses: list[Witness]) -> Expr:
        declared = dict.fromkeys(name for rule in shape.property_rules for name in rule.named)
        floating = [name for name in shape.required if name not in declared]
        members: list[_Member] = []
        for name in declared:
            member = self._member(shape, name)
            if member is not None:
                members.append(member)
            elif name in shape.required:
                return NEVER
        loose: list[_Member] = []
        for name in floating:
            member = self._member(shape, name)
            if member is None:
                return NEVER
            loose.append(member)
        names = [*declared, *floating]
        extra = additional_members(self._builder, shape, names, None)
        run = [_Member(extra, is_run=True)] if extra != NEVER else []
        last: list[_Member] = []
        for witness in witnesses:
            found = additional_members(self._builder, shape, names, witness)
            if found == NEVER:
                return NEVER
            last.append(_Member(found, is_required=True))
        return seq(lit("{"), self._inside(shape, members, loose, run, last), lit("}"))

    def _member(self, shape: Shape, name: str) -> _Member | None:
        """The member `name`; None when no value can stand there."""
        what = self._builder.normaliser.membership.property_conj(shape, name)
        if what and self._builder.normaliser.is_empty(what, 2):
            return None
        key = lit(string_text(name) + ":")
        return _Member(seq(key, self._builder.call(what)), name in shape.required)

    def _inside(
        self,
        shape: Shape,
        members: list[_Member],
        loose: list[_Member],
        run: list[_Member],
        last: list[_Member],
    ) -> Expr:
        num_required = sum(m.is_required for m in members) + len(loose) + len(last)
        num_possible = len(members) + len(loose) + len(last)
        low, high = shape.min_properties, shape.max_properties
        if not run and high is not None and high >= num_possible:
            high = None
        in_order = [*members, *_interleaved(loose, run), *last]
        if low > max(num_required, 1) or high is not None:
            if run and low - num_required > 1:
                raise GrammarError(
                    f"minProperties {low} beside additional properties is not supported: a key could come twice",
                    place=shape.pointer,
                    keyword="minProperties",
                )
            return _counted(in_order, low, high)
        if len(loose) < 2 or len(loose) > _MAX_ANY_ORDER:
            return _members(in_order, may_be_empty=low == 0)
        tails = [[*_interleaved(list(order), run), *last] for order in permutations(loose)]
        if any(m.is_required for m in members):
            pivot = next(i for i, m in enumerate(members) if m.is_required)
            before, after = members[:pivot], members[pivot + 1 :]
            tail = alt(*(_leading(t) for t in tails))
            return seq(_trailing(before), members[pivot].text, _leading(after), tail)
        return seq(_trailing(members), alt(*(_members(t, may_be_empty=False) for t in tails)))

    # ------------------------------------------------------------------------------------------ some property

    def _variants(self, shape: Shape) -> list[tuple[Shape, list[Witness]]]:
        """The shape, with each property that must exist placed on a declared name or among the additional ones."""
        membership = self._builder.normaliser.membership
        done: list[tuple[Shape, list[Witness]]] = [(shape, [])]
        for rule, part, what in shape.some_property:
            names = dict.fromkeys(n for r in shape.property_rules for n in r.named)
            names |= shape.required
            placed: list[tuple[Shape, list[Witness]]] = []
            for variant, witnesses in done:
                for name in names:
                    if membership.falls_to(rule, name, part):
                        named = variant.copy()
                        named.required[name] = None
                        named.property_rules.append(PropertyRule({name: what}, (), ()))
                        placed.append((named, witnesses))
                placed.append((variant, [*witnesses, Witness(rule, part, what)]))
            done = placed
            if len(done) > _MAX_VARIANTS:
                raise GrammarError(
                    f"the complement of rules on properties leaves more than {_MAX_VARIANTS} ways",
                    keyword="not",
                )
        if any(len(witnesses) > 1 for _, witnesses in done):
            done = [(variant, witnesses) for variant, witnesses in done]
            raise GrammarError(
                "two complements of rules on additional properties at once are not supported",
                keyword="not",
            )
        return done


def _interleaved(loose: Sequence[_Member], run: list[_Member]) -> list[_Member]:
    result = list(run)
    for member in loose:
        result += [member, *run]
    return result


def _leading(members: Sequence[_Member]) -> Expr:
    """Members that each bring the comma before them."""
    parts: list[Expr] = []
    for member in members:
        text = seq(_COMMA, member.text)
        parts.append(star(text) if member.is_run else text if member.is_required else opt(text))
    return seq(*parts)


def _trailing(members: Sequence[_Member]) -> Expr:
    """Optional members that each bring the comma after them."""
    parts: list[Expr] = []
    for member in members:
        text = seq(member.text, _COMMA)
        parts.append(star(text) if member.is_run else opt(text))
    return seq(*parts)


def _members(members: Sequence[_Member], *, may_be_empty: bool) -> Expr:
    """The members in order, with commas between."""
    pivot = next((i for i, member in enumerate(members) if member.is_required), None)
    if pivot is not None:
        return seq(_trailing(members[:pivot]), members[pivot].text, _leading(members[pivot + 1 :]))
    if not members:
        return EMPTY if may_be_empty else NEVER
    return opt(_some(members)) if may_be_empty else _some(members)


def _some(members: Sequence[_Member]) -> Expr:
    """At least one of optional members."""
    if len(members) == 1:
        text = members[0].text
        return seq(text, star(seq(_COMMA, text))) if members[0].is_run else text
    middle = len(members) // 2
    return alt(seq(_some(members[:middle]), _leading(members[middle:])), _some(members[middle:]))


def _counted(members: Sequence[_Member], low: int, high: int | None) -> Expr:
    """The members in order, `low` to `high` of them. Works from the end, by the count so far; above `low` nothing is counted without `high`."""
    if len(members) == 1 and members[0].is_run:
        more = repeat(
            seq(_COMMA, members[0].text), max(low - 1, 0), None if high is None else high - 1
        )
        if high == 0:
            return EMPTY
        return seq(members[0].text, more) if low else opt(seq(members[0].text, more))
    cap = max(low, 1) if high is None else high
    if (cap + 1) * len(members) > _MAX_COUNTED:
        raise GrammarError(
            f"counting {len(members)} properties up to {cap} needs too many states",
            keyword="maxProperties",
        )
    after: list[Expr] = [EMPTY if count >= low else NEVER for count in range(cap + 1)]
    for member in reversed(members):
        here: list[Expr] = [NEVER] * (cap + 1)
        for count in range(cap, -1, -1):
            text = seq(_COMMA, member.text) if count else member.text
            is_last = count == cap
            if member.is_run:
                if is_last:
                    here[count] = seq(star(text), after[count]) if high is None else after[count]
                else:
                    here[count] = alt(after[count], seq(text, here[count + 1]))
                continue
            taken = (
                after[count if is_last and high is None else count + 1]
                if not is_last or high is None
                else NEVER
            )
            with_it = seq(text, taken)
            here[count] = with_it if member.is_required else alt(with_it, after[count])
        after = here
    return after[0]
