"""Constants as text: the values of enum and const, laid out as everything else is.

Owns the text of arrays and objects among them. With `any_order` the keys of a constant object may come in any order: it stays the same
value. Knows nothing of schemas.
"""

from __future__ import annotations

from typing import cast

from ...expr import NEVER, Clause, Expr, Member, Members, join, lit
from .layout import BRACES, SQUARE, Layout
from .source import Json, string_text, value_text


class ConstantText:
    """Writes constants in one layout."""

    def __init__(self, layout: Layout, *, any_order: bool) -> None:
        self._layout = layout
        self._any_order = any_order

    def text(self, value: Json, level: int) -> Expr:
        """The texts of `value` at `level`."""
        if isinstance(value, dict):
            return self._object(cast("dict[str, Json]", value), level)
        if isinstance(value, list):
            return self._array(cast("list[Json]", value), level)
        return lit(value_text(value))

    def _array(self, items: list[Json], level: int) -> Expr:
        inside = self._layout.inside(level)
        inner = (
            join([self.text(item, inside) for item in items], self._layout.comma(inside))
            if items
            else NEVER
        )
        return self._layout.wrap(SQUARE, level, inner, may_be_empty=not items)

    def _object(self, entries: dict[str, Json], level: int) -> Expr:
        layout = self._layout
        inside = layout.inside(level)
        members = [
            layout.member(string_text(key), self.text(item, inside))
            for key, item in entries.items()
        ]
        if not members:
            inner = NEVER
        elif self._any_order and len(members) > 1:
            every = Clause(needs=frozenset(range(len(members))))
            items = tuple(Member(text) for text in members)
            inner = Members(items, layout.comma(inside), len(items), None, (every,))
        else:
            inner = join(members, layout.comma(inside))
        return layout.wrap(BRACES, level, inner, may_be_empty=not members)
