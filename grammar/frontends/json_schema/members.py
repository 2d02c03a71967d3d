"""The members between the braces of an object, with their commas, in declared order or in any.

Owns how commas are placed, and which of the ways to write a set of members is the cheapest one that is exact. Knows nothing of schemas or
names: members are texts.

    declared order   without counts and conditions a sequence: up to the first required member an optional one brings the comma that
                     follows it, beyond that every member brings the comma before it; without a required member the members are halved:
                     something of the first half and perhaps more of the second, or something of the second alone. Otherwise `Members`.
                     Floating members follow the declared ones in any order, the additional ones among them; with counts they follow in
                     their own order
    any order        `Members`
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...expr import NEVER, Clause, Expr, Member, Members, Repeat, Seq, alt, repeat, seq, star
from .layout import perhaps

_MAX_HALVED = 8  # optional members without a required one that are written as a sequence


class Inside(Struct, frozen=True):
    """`low` (at least 1) to `high` members of which some clause holds; the clauses count declared members first, floating ones after."""

    declared: tuple[Expr, ...]
    floating: tuple[Expr, ...]
    run: Expr | None  # additional members, any number
    clauses: tuple[Clause, ...]
    low: int
    high: int | None
    comma: Expr

    @property
    def singles(self) -> tuple[Expr, ...]:
        """All members that come at most once."""
        return (*self.declared, *self.floating)


def in_any_order(inside: Inside) -> Expr:
    """The texts with the members in any order."""
    return _set(_without_barred(inside), is_ordered=False)


def in_declared_order(inside: Inside) -> Expr:
    """The texts with the declared members first, as they are declared."""
    inside = _without_barred(inside)
    if not inside.declared:
        return _set(inside, is_ordered=False)
    is_counted = inside.high is not None or inside.low > 1
    if len(inside.clauses) == 1:
        needs = inside.clauses[0].needs
        is_short = bool(needs) or len(inside.declared) <= _MAX_HALVED
        if is_short and inside.high is None and inside.low <= max(len(needs), 1):
            return _one_clause(inside, needs)
    if is_counted or not inside.floating:
        return _set(inside, is_ordered=True)
    return _two_parts(inside)


# ---------------------------------------------------------------------------------------------- sets


def _set(inside: Inside, *, is_ordered: bool) -> Expr:
    """The members in the given order or in any. None of them is barred by every clause."""
    singles, run, comma = inside.singles, inside.run, inside.comma
    low, high = inside.low, inside.high
    if not inside.clauses or high == 0:
        return NEVER
    if not singles:
        if run is None:
            return NEVER
        return seq(run, repeat(seq(comma, run), low - 1, None if high is None else high - 1))
    if len(singles) == 1 and low == 1:
        only = singles[0]
        if run is None:
            return only
        is_needed = all(clause.needs for clause in inside.clauses)
        if is_needed and high is None and not is_ordered:
            return seq(star(seq(run, comma)), only, star(seq(comma, run)))
    items = tuple(map(Member, singles))
    if run is not None:
        items = (*items, Member(run, is_run=True))
    return Members(items, comma, low, high, inside.clauses, is_ordered)


def _without_barred(inside: Inside) -> Inside:
    """Without the members that every clause bars."""
    if not inside.clauses or not inside.clauses[0].bars:
        return inside
    barred = inside.clauses[0].bars.intersection(*(clause.bars for clause in inside.clauses))
    if not barred:
        return inside
    num_declared = len(inside.declared)
    kept = [i for i in range(len(inside.singles)) if i not in barred]
    index_of = {old: new for new, old in enumerate(kept)}
    clauses = tuple(
        Clause(
            frozenset(map(index_of.__getitem__, clause.needs)),
            frozenset(index_of[i] for i in clause.bars - barred),
        )
        for clause in inside.clauses
    )
    return replace(
        inside,
        declared=tuple(inside.declared[i] for i in kept if i < num_declared),
        floating=tuple(inside.floating[i - num_declared] for i in kept if i >= num_declared),
        clauses=clauses,
    )


# ---------------------------------------------------------------------------------------------- sequences


def _one_clause(inside: Inside, needs: frozenset[int]) -> Expr:
    """Declared members, in their order, then the floating ones."""
    comma, num_declared = inside.comma, len(inside.declared)
    members = [(text, index in needs) for index, text in enumerate(inside.declared)]
    if not inside.floating:
        return _sequence(members, inside.run, comma)
    tail = _floating(inside, needs)
    tail_needed = any(index >= num_declared for index in needs)
    return _joined(members, tail, comma, tail_needed=tail_needed)


def _joined(
    members: Sequence[tuple[Expr, bool]], tail: Expr, comma: Expr, *, tail_needed: bool
) -> Expr:
    """`members`, then a tail that is not empty, or perhaps is not there."""
    after = seq(comma, tail)
    if not tail_needed:
        after = perhaps(after)
    pivot = _first_needed(members)
    if pivot is not None:
        return seq(
            _trailing(members[:pivot], comma),
            members[pivot][0],
            _leading(members[pivot + 1 :], None, comma),
            after,
        )
    if tail_needed:
        return seq(_trailing(members, comma), tail)
    return alt(seq(_some([text for text, _ in members], None, comma), after), tail)


def _floating(inside: Inside, needs: Iterable[int]) -> Expr:
    """The floating members and the additional ones, at least one, in any order."""
    num_declared = len(inside.declared)
    clause = Clause(frozenset(i - num_declared for i in needs if i >= num_declared))
    return _set(
        Inside((), inside.floating, inside.run, (clause,), 1, None, inside.comma), is_ordered=False
    )


def _sequence(members: Sequence[tuple[Expr, bool]], run: Expr | None, comma: Expr) -> Expr:
    """The members in order, at least one."""
    pivot = _first_needed(members)
    if pivot is None:
        return _some([text for text, _ in members], run, comma)
    before = _trailing(members[:pivot], comma)
    return seq(before, members[pivot][0], _leading(members[pivot + 1 :], run, comma))


def _first_needed(members: Sequence[tuple[Expr, bool]]) -> int | None:
    for index, (_, needed) in enumerate(members):
        if needed:
            return index
    return None


def _leading(members: Sequence[tuple[Expr, bool]], run: Expr | None, comma: Expr) -> Expr:
    """Members that each bring the comma before them."""
    parts: list[Expr] = []
    for member, needed in members:
        text = Seq((comma, member))
        parts.append(text if needed else Repeat(text, 0, 1))
    if run is not None:
        parts.append(star(seq(comma, run)))
    return seq(*parts)


def _trailing(members: Sequence[tuple[Expr, bool]], comma: Expr) -> Expr:
    """Optional members that each bring the comma after them."""
    return seq(*[Repeat(Seq((member, comma)), 0, 1) for member, _ in members])


def _some(members: Sequence[Expr], run: Expr | None, comma: Expr) -> Expr:
    """At least one of optional members, in order."""
    if not members:
        return NEVER if run is None else seq(run, star(seq(comma, run)))
    if len(members) == 1 and run is None:
        return members[0]
    middle = (len(members) + 1) // 2
    more = _leading([(text, False) for text in members[middle:]], run, comma)
    return alt(seq(_some(members[:middle], None, comma), more), _some(members[middle:], run, comma))


# ---------------------------------------------------------------------------------------------- several clauses


def _two_parts(inside: Inside) -> Expr:
    """Several clauses, no counts: declared members in order, floating ones in any. A clause splits into one for each part."""
    num_declared = len(inside.declared)
    by_tail: dict[Clause, list[Clause]] = {}
    for clause in inside.clauses:
        tail = Clause(*(_beyond(part, num_declared) for part in (clause.needs, clause.bars)))
        head = Clause(*(_below(part, num_declared) for part in (clause.needs, clause.bars)))
        by_tail.setdefault(tail, []).append(head)
    parts: list[Expr] = []
    for tail, heads in by_tail.items():
        head_set = Inside(inside.declared, (), None, tuple(heads), 1, None, inside.comma)
        tail_set = Inside((), inside.floating, inside.run, (tail,), 1, None, inside.comma)
        first = _set(_without_barred(head_set), is_ordered=True)
        last = _set(_without_barred(tail_set), is_ordered=False)
        after = seq(inside.comma, last)
        parts.append(seq(first, after if tail.needs else perhaps(after)))
        if any(not head.needs for head in heads):
            parts.append(last)
    return alt(*parts)


def _below(indices: frozenset[int], limit: int) -> frozenset[int]:
    return frozenset(i for i in indices if i < limit)


def _beyond(indices: frozenset[int], limit: int) -> frozenset[int]:
    return frozenset(i - limit for i in indices if i >= limit)
