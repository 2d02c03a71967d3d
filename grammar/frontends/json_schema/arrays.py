"""Array shapes as text: items by position, counts, contains, and distinct items of a small set.

Owns the layout of arrays (no spaces) and which combinations of rules on items can be written. Knows nothing of keywords; the rules of
the items themselves come from the builder.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from ....errors import GrammarError
from ...expr import EMPTY, NEVER, Expr, alt, lit, opt, repeat, seq
from .membership import item_conj
from .shape import BOOLEAN, NULL, Atom, Conj, Contains, Shape, meet
from .source import Json, value_key, value_text

if TYPE_CHECKING:
    from .builder import Builder

_MAX_STEPS = 20_000  # (position, counts, sort of item) triples of arrays with contains
_MAX_UNIQUE = 10  # values of a set whose arrays without repetition are written out
_COMMA = lit(",")


class ArrayWriter:
    """Writes the array part of shapes."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder

    def write(self, shape: Shape) -> Expr:
        """JSON texts of the arrays of a shape."""
        prefix = [
            item_conj(shape, i)
            for i in range(max((len(r.prefix) for r in shape.item_rules), default=0))
        ]
        rest = item_conj(shape, len(prefix))
        high = shape.max_items
        for index, what in enumerate([*prefix, rest]):
            if self._is_empty(what):
                high = index if high is None else min(high, index)
                break
        if high is not None and high < shape.min_items:
            return NEVER
        if shape.unique_at and (high is None or high > 1):
            inner = self._unique(shape, prefix, rest, shape.min_items, high)
        elif shape.contains:
            inner = self._containing(shape.contains, prefix, rest, shape.min_items, high)
        else:
            inner = self._plain(prefix, rest, shape.min_items, high)
        return seq(lit("["), inner, lit("]"))

    def _is_empty(self, what: Conj) -> bool:
        return bool(what) and self._builder.normaliser.is_empty(what, 2)

    def _plain(self, prefix: list[Conj], rest: Conj, low: int, high: int | None) -> Expr:
        call = self._builder.call
        num_prefix = len(prefix) if high is None else min(len(prefix), high)
        tail: Expr = EMPTY
        if high is None or high > num_prefix:
            item = call(rest)
            fewest = max(low - num_prefix, 0)
            most = None if high is None else high - num_prefix
            if num_prefix:
                tail = repeat(seq(_COMMA, item), fewest, most)
            else:
                more = repeat(
                    seq(_COMMA, item), max(fewest - 1, 0), None if most is None else most - 1
                )
                tail = seq(item, more) if fewest else opt(seq(item, more))
        for index in range(num_prefix - 1, -1, -1):
            item = call(prefix[index])
            tail = seq(_COMMA, item, tail) if index else seq(item, tail)
            if index >= low:
                tail = opt(tail)
        return tail

    # ------------------------------------------------------------------------------------------ contains

    def _containing(
        self, rules: list[Contains], prefix: list[Conj], rest: Conj, low: int, high: int | None
    ) -> Expr:
        """Arrays by position and by how many items each rule has met so far; both stop counting where no more matters."""
        last = max(len(prefix), low, 1) if high is None else high
        caps = [rule.low if rule.high is None else rule.high for rule in rules]
        num_steps = (last + 1) * 2 ** len(rules)
        for cap in caps:
            num_steps *= cap + 1
        if num_steps > _MAX_STEPS:
            raise GrammarError(
                f"contains with these counts needs more than {_MAX_STEPS} steps", keyword="contains"
            )
        table: dict[tuple[int, tuple[int, ...]], Expr] = {}
        for position in range(last, -1, -1):
            for counts in sorted(product(*(range(cap + 1) for cap in caps)), reverse=True):
                what = prefix[position] if position < len(prefix) else rest
                table[position, counts] = self._from(
                    rules, what, position, counts, table, (low, last, high is None)
                )
        return table[0, (0,) * len(rules)]

    def _from(
        self,
        rules: list[Contains],
        what: Conj,
        position: int,
        counts: tuple[int, ...],
        table: dict[tuple[int, tuple[int, ...]], Expr],
        span: tuple[int, int, bool],
    ) -> Expr:
        """What may follow `position` items of which `counts` were met."""
        low, last, is_open = span
        done = position >= low and all(c >= rule.low for c, rule in zip(counts, rules, strict=True))
        parts: list[Expr] = [EMPTY] if done else []
        loop: list[Expr] = []
        if position < last or is_open:
            comma = _COMMA if position else EMPTY
            for after, sort in self._sorts(rules, what, counts):
                item = self._builder.call(sort)
                if position < last:
                    parts.append(seq(comma, item, table[position + 1, after]))
                elif after == counts:
                    loop.append(seq(_COMMA, item))
                else:
                    parts.append(seq(comma, item, table[position, after]))
        return seq(repeat(alt(*loop), 0, None), alt(*parts)) if loop else alt(*parts)

    def _sorts(
        self, rules: list[Contains], what: Conj, counts: tuple[int, ...]
    ) -> list[tuple[tuple[int, ...], Conj]]:
        """For each way an item can meet rules: the counts after it, and what it must satisfy."""
        sorts: list[tuple[tuple[int, ...], Conj]] = []
        for met in product((False, True), repeat=len(rules)):
            after: list[int] = []
            parts: list[Conj] = [what]
            for hit, count, rule in zip(met, counts, rules, strict=True):
                cap = rule.low if rule.high is None else rule.high
                if hit:
                    parts.append(rule.what)
                elif rule.high is not None:
                    parts.append(self._outside(rule.what))
                after.append(count + 1 if hit else count)
                if after[-1] > cap:
                    # beyond a lower bound nothing is counted; beyond an upper one nothing is left
                    after[-1] = cap if rule.high is None else -1
            sort = meet(*parts)
            if -1 not in after and not self._is_empty(sort):
                sorts.append((tuple(after), sort))
        return sorts

    def _outside(self, what: Conj) -> Conj:
        if len(what) == 1:
            return (Atom(what[0].node, not what[0].positive),)
        if not what:
            return (Atom(self._builder.normaliser.document.never, True),)
        raise GrammarError("contains of a combined schema cannot be excluded", keyword="contains")

    # ------------------------------------------------------------------------------------------ distinct items

    def _unique(
        self, shape: Shape, prefix: list[Conj], rest: Conj, low: int, high: int | None
    ) -> Expr:
        values = None if prefix or shape.contains else self._finite(rest)
        if values is None or len(values) > _MAX_UNIQUE:
            raise GrammarError(
                f"uniqueItems is supported for items out of at most {_MAX_UNIQUE} values only",
                place=shape.unique_at,
                keyword="uniqueItems",
            )
        texts = [lit(value_text(value)) for value in values]
        high = len(texts) if high is None else min(high, len(texts))
        return self._without(texts, frozenset(range(len(texts))), low, high, {})

    def _without(
        self,
        texts: list[Expr],
        left: frozenset[int],
        low: int,
        high: int,
        known: dict[frozenset[int], Expr],
    ) -> Expr:
        """Items out of those still `left`, `low` to `high` in all."""
        if left not in known:
            num_taken = len(texts) - len(left)
            parts: list[Expr] = [EMPTY] if num_taken >= low else []
            if num_taken < high:
                comma = _COMMA if num_taken else EMPTY
                parts.extend(
                    seq(comma, texts[i], self._without(texts, left - {i}, low, high, known))
                    for i in sorted(left)
                )
            known[left] = alt(*parts)
        return known[left]

    def _finite(self, what: Conj) -> list[Json] | None:
        """All values of a conjunction that has few, or None."""
        values: dict[object, Json] = {}
        for shape in self._builder.normaliser.shapes(what):
            if shape.values is not None:
                values.update(shape.values)
            elif shape.kinds & ~(NULL | BOOLEAN) == 0:
                candidates = ([None] if shape.kinds & NULL else []) + (
                    [False, True] if shape.kinds & BOOLEAN else []
                )
                found = {value_key(v): v for v in candidates}
                values.update({k: v for k, v in found.items() if k not in shape.excluded})
            else:
                return None
        return list(values.values())
