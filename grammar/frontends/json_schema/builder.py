"""Shapes to grammar rules: one rule for each conjunction of schemas that some value must satisfy.

Owns the rules of the grammar, their names, and the text of values without parts: constants, null, booleans, numbers, strings. Arrays and
objects are written by `arrays` and `objects`, which ask here for the rules of their parts. Rules are made from a list of what is still to
do, so the depth of a schema is no depth of calls. Knows nothing of keywords.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from decimal import Decimal

from msgspec.structs import replace

from ....errors import GrammarError
from ...expr import Expr, Limits, alt, lit, minus, ref, repeat
from . import shape as s
from .arrays import ArrayWriter
from .code_points import ANY_CHAR, ANY_TEXT, text_language
from .constants import ConstantText
from .keywords import is_number
from .layout import Layout
from .normal import Normaliser
from .number_set import NumberSet
from .numbers import fraction_text, integer_text, number_text
from .objects import ObjectWriter
from .shape import Conj, Shape
from .source import value_key, value_text
from .string_sets import shape_language
from .strings import OtherTexts, StringText


class Builder:
    """The rules made so far and those still to be made."""

    def __init__(self, normaliser: Normaliser, layout: Layout, *, any_order: bool) -> None:
        self.normaliser = normaliser
        self._limits = normaliser.reading.limits
        self.layout = layout
        self.any_order = any_order
        self.constants = ConstantText(layout, any_order=any_order)
        self.strings = StringText()
        self._others = OtherTexts()
        self.rules = layout.rules  # those of separators are there, others come to them
        self._used: set[str] = set()
        self._calls: dict[tuple[Conj, int], Expr] = {}
        self._names: dict[tuple[frozenset[s.Atom], int], str] = {}
        self._pending: deque[tuple[str, Conj, int]] = deque()
        self._shared: dict[Hashable, Expr] = {}
        self._arrays = ArrayWriter(self)
        self._objects = ObjectWriter(self)

    def rule_name(self, what: Conj, level: int = 0) -> str:
        """The name of the rule for `what` at `level`; it is made later if it is new."""
        key = (frozenset(what), level)
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = self._new_name(what, level)
            self._pending.append((name, what, level))
        return name

    def _new_name(self, what: Conj, level: int) -> str:
        wanted = (
            " & ".join(("" if positive else "not ") + node.pointer for node, positive in what[:3])
            or "any value"
        )
        if level:
            wanted += f" at level {level}"
        name = wanted if wanted not in self._used else f"{wanted} ({len(self._used)})"
        self._used.add(name)
        return name

    def call(self, what: Conj, level: int) -> Expr:
        """A call of the rule for `what` at `level`; equal ones are one object."""
        key = (what, level)
        found = self._calls.get(key)
        if found is None:
            found = self._calls[key] = ref(self.rule_name(what, level))
        return found

    def run(self) -> None:
        """Make every rule that has been asked for."""
        while self._pending:
            name, what, level = self._pending.popleft()
            try:
                self.rules[name] = self._rule(what, level)
            except GrammarError as error:
                # what is found out while writing knows no schema: the one being written is the place
                error.place = error.place or (what[0].node.pointer if what else "#")
                self.go_without(error)
                self.rules[name] = self.call((), level)

    def _rule(self, what: Conj, level: int) -> Expr:
        shapes = self.normaliser.shapes(what)
        if level and not any(map(_has_parts, shapes)):
            return self.call(what, 0)  # without parts it is the same at every level
        return self._body(shapes, level)

    def go_without(self, error: GrammarError) -> None:
        """A keyword cannot be enforced: in best effort that is noted, and the caller goes on without it; else it is raised."""
        if not self.normaliser.is_best_effort:
            raise error
        self.normaliser.leave_out(error.place, error.keyword, error.message)

    def is_surely_empty(self, what: Conj) -> bool:
        """Does surely no value satisfy `what`? One schema by itself is not looked into: rules without texts are pruned later."""
        if not what:
            return False
        if len(what) == 1:
            node, positive = what[0]
            if positive or isinstance(node.schema, bool):
                return node.schema is (not positive)
        return self.normaliser.is_empty(what, 2)

    def share(self, key: Hashable, make: Callable[[], Expr]) -> Expr:
        """The expression known by `key`, made when it is new: equal parts become one object."""
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = make()
        return found

    # ------------------------------------------------------------------------------------------ one rule

    def _body(self, shapes: tuple[Shape, ...], level: int) -> Expr:
        texts: dict[str, None] = {}
        parts: dict[object, Expr] = {}
        objects: list[Shape] = []
        for shape in shapes:
            if shape.values is not None:
                for key, value in shape.values.items():
                    if isinstance(value, (dict, list)):
                        parts[key] = self.constants.text(value, level)
                    else:
                        texts[value_text(value)] = None
                continue
            for literal, kind, value in _NAMED_VALUES:
                if shape.kinds & kind and value_key(value) not in shape.excluded:
                    texts[literal] = None
            for part in self._structured(shape, level):
                parts[id(part)] = part
            if shape.kinds & s.OBJECT:
                objects.append(shape)
        if objects:
            parts[s.OBJECT] = self._objects.write(objects, level)
        return alt(*map(lit, texts), *parts.values())

    def _structured(self, shape: Shape, level: int) -> Iterator[Expr]:
        if shape.kinds & s.NUMBER:
            yield self._number(shape)
        if shape.kinds & s.STRING:
            yield self.string(shape)
        if shape.kinds & s.ARRAY:
            key = (
                "array",
                tuple(map(id, shape.item_rules)),
                tuple(map(id, shape.contains)),
                (shape.min_items, shape.max_items, shape.unique_at),
                level,
            )
            yield self.share(key, lambda: self._arrays.write(shape, level))

    def _number(self, shape: Shape) -> Expr:
        numbers = shape.numbers
        for value in shape.excluded.values():
            if is_number(value):
                numbers = numbers.without(Decimal(value))
        kinds = shape.kinds & s.NUMBER
        try:
            return self.share((kinds, numbers), lambda: _number_text(kinds, numbers, self._limits))
        except GrammarError as error:
            error.place = error.place or shape.pointer
            self.go_without(error)
            wider = replace(numbers, multiples=(), not_multiples=())
            return _number_text(kinds, wider, self._limits)

    # ------------------------------------------------------------------------------------------ strings

    def string(self, shape: Shape) -> Expr:
        """JSON texts of the strings of a shape."""
        excluded = [v for v in shape.excluded.values() if isinstance(v, str)]
        lengths = (shape.min_length, shape.max_length)
        if shape.languages or shape.not_languages or (excluded and lengths != (0, None)):
            return self.strings.quoted(shape_language(shape))
        if excluded:
            return self.quoted_without(ANY_TEXT, excluded)
        return self.share(lengths, lambda: self.strings.quoted(repeat(ANY_CHAR, *lengths)))

    def quoted_without(self, language: Expr, texts: list[str]) -> Expr:
        """JSON texts of the strings of a language, apart from some of its texts."""
        if language is ANY_TEXT and OtherTexts.can_take(texts):
            return self._others.quoted(texts)
        return self.strings.quoted(
            minus(language, alt(*map(text_language, texts))) if texts else language
        )


_NAMED_VALUES = (("null", s.NULL, None), ("true", s.BOOLEAN, True), ("false", s.BOOLEAN, False))


def _has_parts(shape: Shape) -> bool:
    """Does it hold arrays or objects?"""
    if shape.values is not None:
        return any(isinstance(value, (dict, list)) for value in shape.values.values())
    return bool(shape.kinds & (s.ARRAY | s.OBJECT))


def _number_text(kinds: int, numbers: NumberSet, limits: Limits) -> Expr:
    if kinds == s.INTEGER:
        return integer_text(numbers, limits)
    if kinds == s.NUMBER:
        return number_text(numbers, limits)
    return fraction_text(numbers, limits)
