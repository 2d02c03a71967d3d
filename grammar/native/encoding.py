"""Expressions as flat buffers for the native compiler.

Owns the walk over the expression objects and the expressions that a process keeps for ever. Knows nothing of automata. The words are
the id of the whole, then blocks: a kind, the number of expressions in the block, their ids, then what they hold, column by column. An id is the address of
the object, and parts are named by their ids, so the native side does all the linking.

    BYTES    LIT size*    SEQ, ALT, AND count* id**    REPEAT lo* hi* id*    REF id* (the rules' expressions)
    and in blocks of one expression each:
    CHARS count (lo hi)*    MINUS id id    ERASE id    CHOICE count size* (an ALT of literals)
    UNLISTED count size* id id (the texts' sizes; tail and special)
    MEMBERS num_ids num_info lo hi info* id*   with info = is_ordered, is_run of each item, number of clauses,
                                               (count needs* count bars*) of each clause; ids = separator, items

The texts of LIT, CHOICE and UNLISTED and the byte sets of BYTES, ERASE and UNLISTED (32 bytes each) stand in two further buffers, in the order of their use.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from ...errors import GrammarError
from ..expr import (
    CONSTANT_RULES,
    CONSTANTS,
    Alt,
    And,
    Bytes,
    Chars,
    Erase,
    Expr,
    Grammar,
    Lit,
    Members,
    Minus,
    Ref,
    Repeat,
    Seq,
    Unlisted,
)

(
    _BYTES,
    _LIT,
    _CHARS,
    _SEQ,
    _ALT,
    _REPEAT,
    _AND,
    _MINUS,
    _ERASE,
    _MEMBERS,
    _REF,
    _CHOICE,
    _UNLISTED,
) = range(13)
_MIN_CHOICE = 8  # alternatives from which on it pays to look whether all are literals

_ONLY_LIT = {Lit}


@dataclass(frozen=True, slots=True)
class Encoding:
    """The three buffers; words are 64-bit numbers of this machine."""

    words: bytes
    texts: bytes
    masks: bytes


class _Walk:
    """One encoding in progress; `seen` are ids that need no record any more, nor do those of permanent expressions."""

    __slots__ = ("blocks", "masks", "rules", "seen", "texts")

    def __init__(self, rules: Mapping[str, Expr]) -> None:
        self.rules = rules
        self.seen: set[int] = set()
        self.blocks: list[int] = []
        self.texts: list[bytes] = []
        self.masks: list[bytes] = []

    def run(self, start: Expr) -> None:
        """Record `start` and all below it. This loop is most of an encoding's time: it only sorts by kind."""
        seen, permanent = self.seen, _permanent
        sequences: list[Seq] = []
        choices: list[Alt] = []
        literals: list[Lit] = []
        repeats: list[Repeat] = []
        byte_sets: list[Bytes] = []
        calls: list[Ref] = []
        others: list[Expr] = []
        queue: list[Expr] = [start]
        for expr in queue:
            key = id(expr)
            if key in seen or key in permanent:
                continue
            seen.add(key)
            if type(expr) is Seq:
                sequences.append(expr)
                queue += expr.items
            elif type(expr) is Lit:
                literals.append(expr)
            elif type(expr) is Alt:
                if len(expr.items) >= _MIN_CHOICE and set(map(type, expr.items)) == _ONLY_LIT:
                    others.append(expr)
                else:
                    choices.append(expr)
                    queue += expr.items
            elif type(expr) is Repeat:
                repeats.append(expr)
                queue.append(expr.item)
            elif type(expr) is Bytes:
                byte_sets.append(expr)
            elif type(expr) is Ref:
                calls.append(expr)
                queue.append(self._rule(expr))
            else:
                others.append(expr)
                queue += _parts(expr)
        self._add_lists(_SEQ, sequences)
        self._add_lists(_ALT, choices)
        self._add_plain(literals, repeats, byte_sets, calls)
        for expr in others:
            _RECORDS[type(expr)](self, expr)

    def result(self, start: Expr) -> Encoding:
        """The buffers; the first word is the id of the whole."""
        try:
            words = struct.pack(f"{1 + len(self.blocks)}q", id(start), *self.blocks)
        except struct.error as error:
            raise OverflowError("a bound does not fit 64 bits") from error
        return Encoding(words, b"".join(self.texts), b"".join(self.masks))

    def _rule(self, call: Ref) -> Expr:
        rule = self.rules.get(call.name)
        if rule is None:
            raise GrammarError(
                f"the grammar calls a rule {call.name!r} that it does not define", keyword=call.name
            )
        return rule

    def _add_lists(self, kind: int, exprs: Sequence[Seq | Alt | And]) -> None:
        items = [expr.items for expr in exprs]
        blocks = self.blocks
        blocks += (kind, len(exprs))
        blocks += map(id, exprs)
        blocks += map(len, items)
        blocks += map(id, chain.from_iterable(items))

    def _add_plain(
        self, literals: list[Lit], repeats: list[Repeat], byte_sets: list[Bytes], calls: list[Ref]
    ) -> None:
        blocks = self.blocks
        texts = [expr.data for expr in literals]
        self.texts += texts
        blocks += (_LIT, len(literals))
        blocks += map(id, literals)
        blocks += map(len, texts)
        blocks += (_REPEAT, len(repeats))
        blocks += map(id, repeats)
        blocks += [expr.lo for expr in repeats]
        blocks += [_hi(expr.hi) for expr in repeats]
        blocks += [id(expr.item) for expr in repeats]
        self.masks += [expr.mask.to_bytes(32, "little") for expr in byte_sets]
        blocks += (_BYTES, len(byte_sets))
        blocks += map(id, byte_sets)
        blocks += (_REF, len(calls))
        blocks += map(id, calls)
        blocks += [id(self.rules[call.name]) for call in calls]


def _hi(bound: int | None) -> int:
    if bound is None:
        return -1
    return bound if bound >= 0 else -2


def _parts(expr: Expr) -> tuple[Expr, ...]:
    """The parts of the rarer kinds."""
    if isinstance(expr, Members):
        return (expr.separator, *(item.text for item in expr.items))
    if isinstance(expr, And):
        return expr.items
    if isinstance(expr, Unlisted):
        return (expr.tail, expr.special)
    if isinstance(expr, Minus):
        return (expr.keep, expr.drop)
    return (expr.item,) if isinstance(expr, Erase) else ()


def _chars(walk: _Walk, expr: Chars) -> None:
    walk.blocks += (_CHARS, 1, id(expr), len(expr.ranges))
    walk.blocks += chain.from_iterable(expr.ranges)


def _choice(walk: _Walk, expr: Alt) -> None:
    texts = [item.data for item in expr.items if isinstance(item, Lit)]
    walk.texts += texts
    walk.blocks += (_CHOICE, 1, id(expr), len(texts))
    walk.blocks += map(len, texts)


def _and(walk: _Walk, expr: And) -> None:
    walk.blocks += (_AND, 1, id(expr), len(expr.items))
    walk.blocks += map(id, expr.items)


def _minus(walk: _Walk, expr: Minus) -> None:
    walk.blocks += (_MINUS, 1, id(expr), id(expr.keep), id(expr.drop))


def _erase(walk: _Walk, expr: Erase) -> None:
    walk.masks.append(expr.mask.to_bytes(32, "little"))
    walk.blocks += (_ERASE, 1, id(expr), id(expr.item))


def _members(walk: _Walk, expr: Members) -> None:
    info = [int(expr.is_ordered), *(int(item.is_run) for item in expr.items), len(expr.clauses)]
    for clause in expr.clauses:
        info += (len(clause.needs), *clause.needs, len(clause.bars), *clause.bars)
    parts = _parts(expr)
    walk.blocks += (_MEMBERS, 1, id(expr), len(parts), len(info), expr.lo, _hi(expr.hi))
    walk.blocks += info
    walk.blocks += map(id, parts)


def _unlisted(walk: _Walk, expr: Unlisted) -> None:
    walk.texts += expr.texts
    walk.masks.append(expr.plain.to_bytes(32, "little"))
    walk.blocks += (_UNLISTED, 1, id(expr), len(expr.texts))
    walk.blocks += map(len, expr.texts)
    walk.blocks += (id(expr.tail), id(expr.special))


_RECORDS: dict[type, Callable[..., None]] = {
    Chars: _chars, Alt: _choice, And: _and, Minus: _minus, Erase: _erase, Members: _members,
    Unlisted: _unlisted,
}  # fmt: skip


def encode(grammar: Grammar) -> Encoding:
    """The grammar below its start rule. GrammarError for a rule that is called but not defined.

    OverflowError if a bound does not fit 64 bits. The constants of the process need an encoding of their own first, see `hand_over`.
    """
    walk = _Walk(grammar.rules)
    start = Ref(grammar.start)
    walk.run(start)
    return walk.result(start)


_lock = threading.Lock()
_permanent: set[int] = set()  # ids of constants, and of all below them, that the native side has
_num_taken = 0  # of CONSTANTS, which only grows


def hand_over(keep: Callable[[Encoding], None]) -> None:
    """Give the encoding of every constant of the process that `keep` has not had yet to it, once.

    Whatever lies below a constant lives as long as that, so later encodings need not look at it again.
    """
    global _num_taken
    if _num_taken == len(CONSTANTS):
        return
    with _lock:
        new = list(islice(CONSTANTS.values(), _num_taken, None))
        _num_taken += len(new)
        # all in one: a constant that is recursive is complete only with the others of its rules
        walk = _Walk(CONSTANT_RULES)
        for expr in new:
            walk.run(expr)
        if walk.seen:
            keep(walk.result(new[0]))
            _permanent.update(walk.seen)
