"""The grammar language that front ends produce and the compiler consumes.

Owns the expression types, their smart constructors and the named limits of a compile. A language is a set of byte strings. Everything
here is regular except `Ref`, the call of a named rule, which may be recursive in any way. Knows nothing of automata, tokens,
vocabularies, JSON or regex syntax.

    Bytes(mask)      one byte out of a set of 256, bit b = byte b
    Lit(data)        exactly these bytes
    Chars(ranges)    one code point out of inclusive ranges, spelled in UTF-8; surrogates are never produced
    Seq(items)       one after another;  Seq(()) is the empty string        Alt(items)     any of;  Alt(()) is nothing at all
    Repeat(item, lo, hi)   lo to hi times, hi=None without end; bounds may be large, they become counters
    And(items)       what all accept     Minus(keep, drop)   what `keep` accepts and `drop` does not: both over Ref-free parts only
    Erase(item, mask)      what `item` accepts, with the bytes of `mask` taken out of it; Ref-free too
    Members(items, separator, lo, hi, clauses, is_ordered)     a set of members in one text, see the class
    Unlisted(texts, plain, tail, special)    other texts than those of a list, see the class and `unlisted.py`; Ref-free
    Ref(name)        whatever the rule `name` accepts

Expressions are immutable, equal by value, and may share parts freely (a DAG): the compiler works on each shared object once. They are
structs made in C, since a schema is thousands of them; those that hold a part directly are left to the garbage collector, because its
objects are freed without recursion however long a chain of them is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

import msgspec

MAX_CODE_POINT = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)
_MAX_MERGED_BOUND = 1_000_000
_MAX_FLATTENED = 16


class Bytes(msgspec.Struct, frozen=True, gc=False):
    """One byte out of `mask`, a 256-bit set."""

    mask: int


class Lit(msgspec.Struct, frozen=True, gc=False):
    """Exactly `data`."""

    data: bytes


class Chars(msgspec.Struct, frozen=True, gc=False):
    """One code point out of `ranges` (inclusive, sorted, disjoint, without surrogates), as UTF-8."""

    ranges: tuple[tuple[int, int], ...]


class Seq(msgspec.Struct, frozen=True, gc=False):
    """All `items`, one after another."""

    items: tuple[Expr, ...]


class Alt(msgspec.Struct, frozen=True, gc=False):
    """Any one of `items`."""

    items: tuple[Expr, ...]


class Repeat(msgspec.Struct, frozen=True):
    """`item`, `lo` to `hi` times; hi=None is without end."""

    item: Expr
    lo: int
    hi: int | None


class And(msgspec.Struct, frozen=True, gc=False):
    """What every one of `items` accepts. Ref-free items only."""

    items: tuple[Expr, ...]


class Minus(msgspec.Struct, frozen=True):
    """What `keep` accepts and `drop` does not. Ref-free parts only."""

    keep: Expr
    drop: Expr


class Erase(msgspec.Struct, frozen=True):
    """What `item` accepts, with all bytes of `mask` taken out: markers that only served to state a condition. Ref-free only.

    Marker bytes need not be in the alphabet. Use bytes that UTF-8 never has.
    """

    item: Expr
    mask: int


class Member(msgspec.Struct, frozen=True):
    """One of `Members`: its text, which never is empty, and whether it may come more than once."""

    text: Expr
    is_run: bool = False


class Clause(msgspec.Struct, frozen=True, gc=False):
    """Members that must be there, and members that must not, by index."""

    needs: frozenset[int] = frozenset()
    bars: frozenset[int] = frozenset()


class Members(msgspec.Struct, frozen=True):
    """`lo` to `hi` (None: any number) of `items`, with `separator` between neighbours; each item at most once, a run any number of times.

    The set of the items that are there satisfies one of `clauses`. With `is_ordered` they come in the order of `items` (a run's
    repetitions together), else in any order. Never inside And, Minus or Erase. `separator` is EMPTY or never empty.
    """

    items: tuple[Member, ...]
    separator: Expr
    lo: int = 0
    hi: int | None = None
    clauses: tuple[Clause, ...] = (Clause(),)
    is_ordered: bool = False


class Ref(msgspec.Struct, frozen=True, gc=False):
    """A call of the rule `name`."""

    name: str


class Unlisted(msgspec.Struct, frozen=True):
    """Texts off a list: along the tree of the beginnings of `texts`, and out of it by a byte of `plain` and then `tail`, or by `special`.

    Or ending inside it, where no text of the list ends. `texts` are sorted, differ, and are made of `plain` bytes only; at least one.
    """

    texts: tuple[bytes, ...]
    plain: int
    tail: Expr
    special: Expr


Expr = Bytes | Lit | Chars | Seq | Alt | Repeat | And | Minus | Erase | Members | Ref | Unlisted

EMPTY = Seq(())
NEVER = Alt(())


@dataclass(frozen=True, slots=True)
class Grammar:
    """Named rules, and the rule the whole output must match."""

    rules: Mapping[str, Expr]
    start: str


def lit(text: str | bytes) -> Expr:
    """Exactly `text` (UTF-8)."""
    data = text.encode() if isinstance(text, str) else text
    return Lit(data) if data else EMPTY


def byte_set(values: Iterable[int]) -> Expr:
    """One byte out of `values`."""
    mask = 0
    for value in values:
        mask |= 1 << value
    return Bytes(mask) if mask else NEVER


def normal_ranges(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Inclusive code point ranges, sorted, merged, clipped to Unicode, surrogates taken out."""
    pairs = sorted(ranges)
    if len(pairs) == 1 and 0 <= pairs[0][0] <= pairs[0][1] < _SURROGATES[0]:
        return (pairs[0],)
    merged: list[tuple[int, int]] = []
    for low, high in pairs:
        low, high = max(low, 0), min(high, MAX_CODE_POINT)
        if low > high:
            continue
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    result: list[tuple[int, int]] = []
    for low, high in merged:
        if low < _SURROGATES[0]:
            result.append((low, min(high, _SURROGATES[0] - 1)))
        if high > _SURROGATES[1]:
            result.append((max(low, _SURROGATES[1] + 1), high))
    return tuple(result)


def outside_ranges(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The code points in none of `ranges`, normalised."""
    gaps: list[tuple[int, int]] = []
    next_free = 0
    for low, high in normal_ranges(ranges):
        gaps.append((next_free, low - 1))
        next_free = high + 1
    gaps.append((next_free, MAX_CODE_POINT))
    return normal_ranges(gaps)


def chars(*ranges: tuple[int, int] | str) -> Expr:
    """One code point out of `ranges`: inclusive pairs, or strings whose every character is meant."""
    pairs: list[tuple[int, int]] = []
    for item in ranges:
        if isinstance(item, str):
            pairs.extend((ord(c), ord(c)) for c in item)
        else:
            pairs.append(item)
    normal = normal_ranges(pairs)
    return Chars(normal) if normal else NEVER


def any_char() -> Expr:
    """Any one code point."""
    return chars((0, MAX_CODE_POINT))


def seq(*items: Expr) -> Expr:
    """Concatenation; short sequences in it are flattened, and neighbouring literals become one."""
    if len(items) == 1:
        return items[0]
    flat: list[Expr] = []
    last: Lit | None = None  # the end of `flat`, where that is a literal
    for item in items:
        if type(item) is Lit:
            if last is None:
                last = item
                flat.append(item)
            else:
                last = flat[-1] = Lit(last.data + item.data)
        elif (
            type(item) is Seq and len(item.items) <= _MAX_FLATTENED
        ):  # a longer one is worth sharing
            parts = item.items
            if parts and last is not None and type(parts[0]) is Lit:
                flat[-1] = Lit(last.data + parts[0].data)
                parts = parts[1:]
            flat += parts
            end = flat[-1] if flat else None
            last = end if type(end) is Lit else None
        elif type(item) is Alt and not item.items:
            return NEVER
        else:
            last = None
            flat.append(item)
    return flat[0] if len(flat) == 1 else Seq(tuple(flat)) if flat else EMPTY


def alt(*items: Expr) -> Expr:
    """Union, flattened; an alternative given twice as the same object is kept once."""
    if len(items) == 1:
        return items[0]
    flat: dict[int, Expr] = {}
    for item in items:
        if type(item) is Alt:
            for part in item.items:
                flat[id(part)] = part
        else:
            flat[id(item)] = item
    if len(flat) == 1:
        return next(iter(flat.values()))
    return Alt(tuple(flat.values())) if flat else NEVER


def repeat(item: Expr, lo: int, hi: int | None) -> Expr:
    """`item`, `lo` to `hi` times; a repeat of a repeat becomes one where that is the same language."""
    if hi is not None and hi < lo:
        return NEVER
    if hi == 0 or (type(item) is Seq and not item.items):
        return EMPTY
    if lo == 1 and hi == 1:
        return item
    if type(item) is Repeat:
        if item.hi == 0:
            return EMPTY
        merged = _merged_bounds(item, lo, hi)
        if merged is not None:
            return Repeat(item.item, *merged)
    return Repeat(item, lo, hi)


def _merged_bounds(inner: Repeat, lo: int, hi: int | None) -> tuple[int, int | None] | None:
    """Bounds m..n with (x{a,b}){lo,hi} = x{m,n}, or None where the counts would have gaps or grow huge."""
    a, b = inner.lo, inner.hi
    if hi != lo:
        # The counts k*a..k*b of neighbouring k must touch; if the first two do, all others do.
        if lo == 0 and a > 1:
            return None
        first = max(lo, 1)
        if b is not None and first * b + 1 < (first + 1) * a:
            return None
    high = None if hi is None or b is None else hi * b
    if max(lo * a, high or 0) > _MAX_MERGED_BOUND:
        return None
    return lo * a, high


def opt(item: Expr) -> Expr:
    """`item` or nothing."""
    return repeat(item, 0, 1)


def star(item: Expr) -> Expr:
    """`item` any number of times."""
    return repeat(item, 0, None)


def plus(item: Expr) -> Expr:
    """`item` at least once."""
    return repeat(item, 1, None)


def conj(*items: Expr) -> Expr:
    """Intersection of Ref-free expressions."""
    return items[0] if len(items) == 1 else And(tuple(items))


def minus(keep: Expr, drop: Expr) -> Expr:
    """`keep` without what `drop` accepts; both Ref-free."""
    return keep if type(drop) is Alt and not drop.items else Minus(keep, drop)


def join(items: Sequence[Expr], separator: Expr) -> Expr:
    """All of `items` with `separator` between neighbours."""
    parts: list[Expr] = []
    for index, item in enumerate(items):
        if index:
            parts.append(separator)
        parts.append(item)
    return seq(*parts)


def ref(name: str) -> Expr:
    """A call of the rule `name`."""
    return Ref(name)


CONSTANTS: dict[int, Expr] = {}
"""The expressions given to `constant`, by id, in the order in which they were given. It only grows."""
CONSTANT_RULES: dict[str, Expr] = {}
"""The rules that constants may call: the same ones in every grammar that has them. It only grows."""


def constant(item: Expr) -> Expr:
    """Declare `item` a constant of the process: it lives as long as that, so what is worked out of it can be kept by its identity.

    For a bounded number of expressions only, such as the text of any JSON number; never for one that depends on a constraint. It calls no
    rules but those of CONSTANT_RULES.
    """
    CONSTANTS[id(item)] = item
    return item


_constant_calls: dict[str, Expr] = {}
_lock = Lock()


def constant_call(rules: Mapping[str, Expr], start: str) -> Expr:
    """A call of `start`, declared a constant; the one given before, if there is one.

    `rules` call one another and other constant rules only; their names are used for nothing else. A grammar that holds the call has all of
    them, as they are in CONSTANT_RULES.
    """
    with _lock:
        if start not in _constant_calls:
            for name, body in rules.items():
                constant(CONSTANT_RULES.setdefault(name, body))
            _constant_calls[start] = constant(Ref(start))
        return _constant_calls[start]


@dataclass(frozen=True, slots=True)
class Limits:
    """Budgets of one compile. Each one exceeded is a GrammarError whose message names it."""

    spec_bytes: int = 1 << 20  # source text of a schema or pattern, or all choices together
    depth: int = 200  # nesting of a schema or a pattern
    choices: int = 100_000  # options of a choice, values of an enum
    expressions: int = 400_000  # distinct expression objects of a grammar
    repeat_bound: int = 1_000_000  # lo or hi of a counted repeat
    states: int = 1_000_000  # automaton states of the finished program
    transitions: int = 2_000_000  # automaton edges of the finished program
    product_states: int = 20_000  # states met while intersecting or subtracting
    program_bytes: int = 32 << 20  # the serialised program
    number_integer_digits: int = 40  # of an unbounded number, before the point
    number_fraction_digits: int = 40  # of a number that need not be whole, behind the point
    number_exponent: int = 199  # magnitude of the exponent of such a number
