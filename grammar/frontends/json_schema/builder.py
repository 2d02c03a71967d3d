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
from ...expr import NEVER, Expr, Limits, alt, lit, minus, ref, repeat
from . import leaves
from . import shape as s
from .any_value import AnyValue
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
from .strings import StringText, are_simple, other_strings


class Builder:
    """The rules made so far and those still to be made. `any_value` are rules of any value that need not be made."""

    def __init__(
        self,
        normaliser: Normaliser,
        layout: Layout,
        *,
        any_order: bool,
        any_value: AnyValue | None = None,
    ) -> None:
        self.normaliser = normaliser
        self._limits = normaliser.reading.limits
        # without the shared rules of any value every schema is read, as a report needs it
        self._remembers = self._limits == _DEFAULT and any_value is not None
        self._any_value = any_value
        self._layout_name = "" if any_value is None else any_value.name
        self.layout = layout
        self.any_order = any_order
        self.constants = ConstantText(layout, any_order=any_order)
        self.strings = StringText()
        self.rules = layout.rules  # those of separators are there, others come to them
        if any_value is not None:
            self.rules.update(any_value.rules)
        self._used: set[str] = set()
        self._calls: dict[tuple[Conj, int], Expr] = {}
        self._names: dict[tuple[frozenset[s.Atom], int], str] = {}
        self._pending: deque[tuple[str, Conj, int]] = deque()
        self._shared: dict[Hashable, Expr] = {}
        self._arrays = ArrayWriter(self)
        self._objects = ObjectWriter(self)

    def rule_name(self, what: Conj, level: int = 0, wanted: str = "") -> str:
        """The name of the rule for `what` at `level`, made of `wanted` if that is given; the rule is made later if it is new."""
        if not what and self._any_value is not None:
            return self._any_value.name
        key = (frozenset(what), level)
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = self._new_name(what, level, wanted)
            self._pending.append((name, what, level))
        return name

    def _new_name(self, what: Conj, level: int, wanted: str) -> str:
        if not wanted and len(what) == 1 and what[0].positive:
            wanted = what[0].node.pointer
        wanted = wanted or (
            " & ".join(("" if atom.positive else "not ") + atom.node.pointer for atom in what[:3])
            or "any value"
        )
        if level:
            wanted += f" at level {level}"
        name = wanted if wanted not in self._used else f"{wanted} ({len(self._used)})"
        self._used.add(name)
        return name

    def call(self, what: Conj, level: int) -> Expr:
        """A call of the rule for `what` at `level`; equal ones are one object."""
        if not what and self._any_value is not None:
            return self._any_value.call
        key = (what, level)
        found = self._calls.get(key)
        if found is None:
            found = self._leaf(what) if self._remembers and len(what) == 1 else None
            if found is None:
                found = ref(self.rule_name(what, level))
            self._calls[key] = found
        return found

    def _leaf(self, what: Conj) -> Expr | None:
        """The text of a leaf, where it can be had from what is remembered, or kept there."""
        node = what[0].node
        if (
            not what[0].positive
            or isinstance(node.schema, bool)
            or node in self.normaliser.reading.failing
        ):
            return None
        key = leaves.key_of(node.schema, self._layout_name)
        text = None if key is None else leaves.TEXTS.get(key)
        if key is not None and text is None:
            if node in self.normaliser.reading.checked:
                return None  # what there was to note about it is noted already
            before, num_rules = self.normaliser.num_notes, len(self._names)
            try:
                text = self._body(self.normaliser.shapes(what), 0)
            except GrammarError:
                return None  # the rule for it will meet the error again, where it can be dealt with
            if text == NEVER or self.normaliser.num_notes != before:
                return None
            if len(self._names) == num_rules:  # it calls none of this document's rules
                leaves.keep(key, text)
        return text

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
            schema, positive = what[0].node.schema, what[0].positive
            if positive or isinstance(schema, bool):
                return schema is (not positive)
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
            kinds = shape.kinds
            if kinds & _NAMED:
                for literal, kind, value in _NAMED_VALUES:
                    if kinds & kind and value_key(value) not in shape.excluded:
                        texts[literal] = None
            if kinds & _STRUCTURED:
                for part in self._structured(shape, level):
                    parts[id(part)] = part
            if kinds & s.OBJECT:
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
        if language is ANY_TEXT and are_simple(texts):
            return other_strings(texts)
        return self.strings.quoted(
            minus(language, alt(*map(text_language, texts))) if texts else language
        )


_DEFAULT = Limits()
_NAMED = s.NULL | s.BOOLEAN
_STRUCTURED = s.NUMBER | s.STRING | s.ARRAY
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
