"""Shapes to grammar rules: one rule for each conjunction of schemas that some value must satisfy.

Owns the rules of the grammar, their names, and the text of values without parts: constants, null, booleans, numbers, strings. Arrays and
objects are written by `arrays` and `objects`, which ask here for the rules of their parts. Rules are made from a list of what is still to
do, so the depth of a schema is no depth of calls. Knows nothing of keywords.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from decimal import Decimal

from ....errors import GrammarError
from ...expr import NEVER, Expr, alt, conj, lit, minus, ref, repeat
from . import shape as s
from .arrays import ArrayWriter
from .code_points import ANY_CHAR, ANY_TEXT, accepts, text_language, within_lengths
from .keywords import is_number
from .normal import Normaliser
from .numbers import NumberSet, fraction_text, integer_text, number_text
from .objects import ObjectWriter
from .shape import Conj, Shape
from .source import value_key, value_text
from .strings import OtherTexts, StringText


class Builder:
    """The rules made so far and those still to be made."""

    def __init__(self, normaliser: Normaliser) -> None:
        self.normaliser = normaliser
        self.strings = StringText()
        self._others = OtherTexts()
        self.rules: dict[str, Expr] = {}
        self._names: dict[frozenset[s.Atom], str] = {}
        self._used: set[str] = set()
        self._pending: deque[tuple[str, Conj]] = deque()
        self._shared: dict[Hashable, Expr] = {}
        self._arrays = ArrayWriter(self)
        self._objects = ObjectWriter(self)

    def rule_name(self, what: Conj) -> str:
        """The name of the rule for `what`; it is made later if it is new."""
        key = frozenset(what)
        name = self._names.get(key)
        if name is None:
            wanted = (
                " & ".join(
                    ("" if positive else "not ") + node.pointer for node, positive in what[:3]
                )
                or "any value"
            )
            name = wanted if wanted not in self._used else f"{wanted} ({len(self._used)})"
            self._used.add(name)
            self._names[key] = name
            self._pending.append((name, what))
        return name

    def call(self, what: Conj) -> Expr:
        """A call of the rule for `what`."""
        return ref(self.rule_name(what))

    def run(self) -> None:
        """Make every rule that has been asked for."""
        while self._pending:
            name, what = self._pending.popleft()
            try:
                self.rules[name] = self._body(self.normaliser.shapes(what))
            except GrammarError as error:
                # what is found out while writing knows no schema: the one being written is the place
                error.place = error.place or (what[0].node.pointer if what else "#")
                raise

    def share(self, key: Hashable, make: Callable[[], Expr]) -> Expr:
        """The expression known by `key`, made when it is new: equal parts become one object."""
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = make()
        return found

    # ------------------------------------------------------------------------------------------ one rule

    def _body(self, shapes: tuple[Shape, ...]) -> Expr:
        constants: dict[str, None] = {}
        parts: dict[int, Expr] = {}
        for shape in shapes:
            if shape.values is not None:
                constants.update(dict.fromkeys(value_text(v) for v in shape.values.values()))
                continue
            for literal, kind, value in (
                ("null", s.NULL, None),
                ("true", s.BOOLEAN, True),
                ("false", s.BOOLEAN, False),
            ):
                if shape.kinds & kind and value_key(value) not in shape.excluded:
                    constants[literal] = None
            for part in self._structured(shape):
                parts[id(part)] = part
        return alt(*map(lit, constants), *parts.values())

    def _structured(self, shape: Shape) -> list[Expr]:
        parts: list[Expr] = []
        if shape.kinds & s.NUMBER:
            parts.append(self._number(shape))
        if shape.kinds & s.STRING:
            parts.append(self.string(shape))
        if shape.kinds & s.ARRAY:
            parts.append(self._arrays.write(shape))
        if shape.kinds & s.OBJECT:
            parts.append(self._objects.write(shape))
        return parts

    def _number(self, shape: Shape) -> Expr:
        numbers = shape.numbers
        for value in shape.excluded.values():
            if is_number(value):
                numbers = numbers.without(Decimal(value))
        kinds = shape.kinds & s.NUMBER
        return self.share((kinds, numbers), lambda: _number_text(kinds, numbers))

    # ------------------------------------------------------------------------------------------ strings

    def string(self, shape: Shape) -> Expr:
        """JSON texts of the strings of a shape."""
        excluded = [v for v in shape.excluded.values() if isinstance(v, str)]
        lengths = (shape.min_length, shape.max_length)
        if shape.languages or shape.not_languages or (excluded and lengths != (0, None)):
            return self.strings.quoted(self._language(shape, excluded))
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

    def string_language(self, what: Conj) -> Expr:
        """The strings among the values of `what`, as a language of decoded characters."""
        parts: list[Expr] = []
        for shape in self.normaliser.shapes(what):
            if shape.values is not None:
                parts.extend(text_language(v) for v in shape.values.values() if isinstance(v, str))
            elif shape.kinds & s.STRING:
                excluded = [v for v in shape.excluded.values() if isinstance(v, str)]
                parts.append(self._language(shape, excluded))
        return alt(*parts)

    def _language(self, shape: Shape, excluded: list[str]) -> Expr:
        low, high = shape.min_length, shape.max_length
        language = _all_within(shape.languages, low, high)
        outside = [
            *shape.not_languages,
            *(text_language(text) for text in excluded if accepts(language, text)),
        ]
        return minus(language, alt(*outside)) if outside else language


def _all_within(languages: list[Expr], low: int, high: int | None) -> Expr:
    """The strings of all of `languages` with `low` to `high` characters."""
    if not languages:
        return repeat(ANY_CHAR, low, high)
    narrowed = [within_lengths(language, low, high) for language in languages]
    if len(narrowed) == 1 or NEVER in narrowed:
        return NEVER if NEVER in narrowed else narrowed[0]
    return conj(*narrowed)


def _number_text(kinds: int, numbers: NumberSet) -> Expr:
    if kinds == s.INTEGER:
        return integer_text(numbers)
    return number_text(numbers) if kinds == s.NUMBER else fraction_text(numbers)
