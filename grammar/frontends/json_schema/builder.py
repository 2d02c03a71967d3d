"""Shapes to grammar rules: one rule for each conjunction of schemas that some value must satisfy.

Owns the rules of the grammar, their names, and the text of values without parts: constants, null, booleans, numbers, strings. Arrays and
objects are written by `arrays` and `objects`, which ask here for the rules of their parts. Rules are made from a list of what is still to
do, so the depth of a schema is no depth of calls. Knows nothing of keywords.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

from ...expr import NEVER, Expr, alt, conj, lit, minus, ref, repeat
from . import shape as s
from .code_points import ANY_CHAR, accepts, everything_but, text_language, within_lengths
from .normal import Normaliser
from .numbers import NumberSet, fraction_text, integer_text, number_text
from .shape import Conj, Shape
from .source import Json, value_text
from .strings import StringText

_MAX_LISTED_TEXT = 10_000  # characters of excluded strings taken out without an automaton


class Builder:
    """The rules made so far and those still to be made."""

    def __init__(self, normaliser: Normaliser) -> None:
        from .arrays import ArrayWriter
        from .objects import ObjectWriter

        self.normaliser = normaliser
        self.strings = StringText()
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
            wanted = " & ".join(("" if positive else "not ") + node.pointer for node, positive in what[:3]) or "any value"
            name = wanted if wanted not in self._used else f"{wanted} ({len(self._used)})"
            self._used.add(name)
            self._names[key] = name
            self._pending.append((name, what))
        return name

    def call(self, what: Conj) -> Expr:
        """A call of the rule for `what`."""
        return self.share(("call", frozenset(what)), lambda: ref(self.rule_name(what)))

    def run(self) -> None:
        """Make every rule that has been asked for."""
        while self._pending:
            name, what = self._pending.popleft()
            self.rules[name] = self._body(self.normaliser.shapes(what))

    def share(self, key: Hashable, make: _Maker) -> Expr:
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
            for literal, kind, value in (("null", s.NULL, None), ("true", s.BOOLEAN, True), ("false", s.BOOLEAN, False)):
                if shape.kinds & kind and s.value_key(value) not in shape.excluded:
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
            if s.is_number(value):
                numbers = numbers.without(s.decimal(value))
        kinds = shape.kinds & s.NUMBER
        return self.share((kinds, numbers), lambda: _number_text(kinds, numbers))

    # ------------------------------------------------------------------------------------------ strings

    def string(self, shape: Shape) -> Expr:
        """JSON texts of the strings of a shape."""
        excluded = [v for v in shape.excluded.values() if isinstance(v, str)]
        if shape.languages or shape.not_languages or excluded:
            return self.quoted(self._language(shape, excluded))
        lengths = (shape.min_length, shape.max_length)
        return self.share(lengths, lambda: self.quoted(repeat(ANY_CHAR, *lengths)))

    def quoted(self, language: Expr) -> Expr:
        """JSON texts of the strings of a language."""
        return self.strings.quoted(language)

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
        outside = list(shape.not_languages)
        if excluded and not shape.languages and low == 0 and high is None:
            language = without_texts(language, excluded)
        else:
            outside.extend(text_language(text) for text in excluded if accepts(language, text))
        return minus(language, alt(*outside)) if outside else language


def without_texts(language: Expr, texts: list[str]) -> Expr:
    """A language without some texts."""
    if language == repeat(ANY_CHAR, 0, None) and sum(map(len, texts)) <= _MAX_LISTED_TEXT:
        return everything_but(texts)
    held = [text_language(text) for text in texts if accepts(language, text)]
    return minus(language, alt(*held)) if held else language


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


__all__ = ["Builder", "Json", "without_texts"]
