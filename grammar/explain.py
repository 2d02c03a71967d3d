"""What a constraint means, for a person: its size, what it forces, what may come first, an example, and what it ignores.

Owns the questions asked of a compiled constraint and the walk over a schema that finds annotations. Knows nothing of models beyond their
vocabulary, nor of printing. It uses the same passes, masks and matcher as an engine, so what it says is what will happen.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np

from .compiler import compile_spec
from .expr import Limits
from .frontends.json_schema.formats import format_named
from .frontends.json_schema.keywords import ANNOTATIONS, ENFORCED
from .frontends.json_schema.source import Json, child_pointer, parse
from .masks import TokenMasks
from .matcher import Matcher
from .spec import JsonSchema, Spec
from .token_costs import NEVER
from .vocabulary import Vocabulary

_MAX_EXAMPLES = 12
_SAMPLE_TOKENS = 48
_MAX_SAMPLE_BYTES = 1 << 16
_HASTE = 0.4  # how often a sample takes a token towards its end

# Keywords by what they hold: schemas stand below these.
_HOLDS_SCHEMA = frozenset(
    [
        "additionalItems",
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
    ]
)
_HOLDS_LIST = frozenset(["allOf", "anyOf", "items", "oneOf", "prefixItems"])
_HOLDS_MAP = frozenset(
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"]
)
_PARTIAL = frozenset(("allOf", "if", "then", "else", "not"))  # below them stands part of an object
_SILENT = frozenset(("$defs", "definitions", "$schema", "$id", "id", "$anchor", "$comment"))


@dataclass(frozen=True, slots=True)
class Note:
    """Something in a schema that constrains nothing. `place` is a JSON pointer, as in the front end's errors."""

    place: str
    keyword: str
    value: str


@dataclass(frozen=True, slots=True)
class LooseObject:
    """An object schema with properties that an output need not have, or beside which it may have any others."""

    place: str
    is_optional: bool
    is_open: bool

    def advice(self) -> str:
        """What is loose, and what to add."""
        parts: list[str] = []
        add: list[str] = []
        if self.is_optional:
            parts.append("no property is required")
            add.append("required")
        if self.is_open:
            parts.append("others are allowed" if parts else "undeclared properties are allowed")
            add.append("additionalProperties: false")
        return f"{' and '.join(parts)} at {self.place}; add {' and '.join(add)}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """What there is to say of one constraint over one vocabulary."""

    num_states: int
    num_bytes: int
    compile_s: float
    forced_text: str
    """How every output begins."""
    may_be_empty: bool
    num_first_tokens: int
    first_tokens: tuple[str, ...]
    """Some of the tokens that may come first, the shortest ones."""
    shortest: str
    """A shortest output."""
    max_tokens_needed: int | None
    """max_tokens that certainly suffices for some output (single-byte tokens); None if no number does."""
    sample: str
    """An output drawn at random."""
    sample_tokens: int
    sample_forced_bytes: int
    """Bytes of the sample that the grammar left no choice about."""
    annotations: tuple[Note, ...]
    """Keywords of a schema that are ignored."""
    loose_objects: tuple[LooseObject, ...]
    """Objects of a schema that may lack their properties, or have others."""
    unknown_formats: tuple[Note, ...]
    """Formats that are ignored, since their meaning is not known here."""


def explain(
    spec: Spec, vocabulary: Vocabulary, limits: Limits | None = None, seed: int = 0
) -> Explanation:
    """Compile `spec` and look at it. Raises GrammarError with place and keyword as the compiler does."""
    began_s = time.perf_counter()
    program = compile_spec(spec, vocabulary.alphabet, limits)
    compile_s = time.perf_counter() - began_s
    matcher = Matcher(TokenMasks(program, vocabulary))
    allowed = _allowed(matcher, vocabulary)
    distance = matcher.distance()
    sample, num_tokens, num_forced = _sample(matcher.fork(), vocabulary, random.Random(seed))
    annotations: tuple[Note, ...] = ()
    formats: tuple[Note, ...] = ()
    loose: tuple[LooseObject, ...] = ()
    if isinstance(spec, JsonSchema):
        annotations, formats = _notes(parse(spec.text, limits or Limits()))
        loose = loose_objects(spec, limits)
    return Explanation(
        num_states=program.num_states,
        num_bytes=program.num_bytes,
        compile_s=compile_s,
        forced_text=_text(matcher.forced_bytes()),
        may_be_empty=matcher.is_accepting,
        num_first_tokens=len(allowed),
        first_tokens=_examples(allowed, vocabulary),
        shortest=_text(matcher.shortest_completion(_MAX_SAMPLE_BYTES)),
        max_tokens_needed=distance if distance < NEVER else None,
        sample=sample,
        sample_tokens=num_tokens,
        sample_forced_bytes=num_forced,
        annotations=annotations,
        loose_objects=loose,
        unknown_formats=formats,
    )


def _allowed(matcher: Matcher, vocabulary: Vocabulary, budget: int | None = None) -> list[int]:
    """Ids of the text tokens that may come next."""
    row = np.zeros((vocabulary.vocab_size + 31) // 32, dtype=np.uint32)
    matcher.fill_mask(row, budget)
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: vocabulary.vocab_size]
    return [i for i in np.flatnonzero(bits).tolist() if vocabulary.token_bytes[i] is not None]


def _examples(token_ids: list[int], vocabulary: Vocabulary) -> tuple[str, ...]:
    """The shortest tokens that are text by themselves, in the order of their bytes."""
    texts = (vocabulary.token_bytes[i] or b"" for i in token_ids)
    readable = {text for text in texts if _is_text(text)}
    return tuple(
        text.decode()
        for text in sorted(readable, key=lambda text: (len(text), text))[:_MAX_EXAMPLES]
    )


def _sample(
    matcher: Matcher, vocabulary: Vocabulary, choose: random.Random
) -> tuple[str, int, int]:
    """A random output, its tokens, and its forced bytes. Forced text is taken as a whole, as an engine does."""
    budget = max(_SAMPLE_TOKENS, 2 * min(matcher.distance(), _MAX_SAMPLE_BYTES))
    found = bytearray()
    num_tokens = num_forced = 0
    while not matcher.is_complete and num_tokens < budget and len(found) < _MAX_SAMPLE_BYTES:
        forced = matcher.forced_bytes()
        if forced:
            matcher.advance_bytes(forced)
            found += forced
            num_forced += len(forced)
            continue
        if matcher.is_accepting and choose.random() < _HASTE:
            break
        towards_end = matcher.distance() if choose.random() < _HASTE else budget - num_tokens
        allowed = _allowed(matcher, vocabulary, max(towards_end, 1))
        plain = [i for i in allowed if _is_plain(vocabulary.token_bytes[i] or b"")]
        token_id = choose.choice(plain or allowed)
        matcher.advance(token_id)
        found += vocabulary.token_bytes[token_id] or b""
        num_tokens += 1
    if not matcher.is_accepting:
        found += matcher.shortest_completion(_MAX_SAMPLE_BYTES)
    return _text(bytes(found)), num_tokens, num_forced


def _is_text(data: bytes) -> bool:
    try:
        return data.decode().isprintable()
    except UnicodeDecodeError:
        return False


def _is_plain(data: bytes) -> bool:
    """Characters that read well in an example, and the ends of strings and lists."""
    return data.isascii() and (data.isalnum() or data in (b'"', b"]", b"}", b",", b'",', b'"}'))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def loose_objects(spec: JsonSchema, limits: Limits | None = None) -> tuple[LooseObject, ...]:
    """Where outputs of a schema may be emptier or fuller than its author thinks. A small model makes use of that."""
    found: list[LooseObject] = []
    for pointer, node in _schemas(parse(spec.text, limits or Limits())):
        if node.get("properties") and not _PARTIAL.intersection(pointer.split("/")):
            is_open = node.get("additionalProperties", True) is not False
            loose = LooseObject(pointer, not node.get("required"), is_open)
            if loose.is_optional or loose.is_open:
                found.append(loose)
    return tuple(found)


# ------------------------------------------------------------------------------------ annotations


def _notes(schema: Json) -> tuple[tuple[Note, ...], tuple[Note, ...]]:
    """Ignored keywords (names of definitions and identifiers aside), and formats without a meaning here."""
    annotations: list[Note] = []
    formats: list[Note] = []
    for pointer, node in _schemas(schema):
        for name, value in node.items():
            place = child_pointer(pointer, name)
            if name == "format" and isinstance(value, str):
                if format_named(value, place) is None:
                    formats.append(Note(place, name, value))
            elif name in ANNOTATIONS - _SILENT or (name not in ENFORCED and name not in _SILENT):
                annotations.append(Note(place, name, _brief(value)))
    return tuple(annotations), tuple(formats)


def _schemas(schema: Json) -> Iterator[tuple[str, dict[str, Json]]]:
    """Every schema object with its pointer, from the top."""
    todo: list[tuple[str, Json]] = [("#", schema)]  # as in the errors of the front end
    while todo:
        pointer, node = todo.pop()
        if not isinstance(node, dict):
            continue
        fields = cast("dict[str, Json]", node)
        yield pointer, fields
        below: list[tuple[str, Json]] = []
        for name, value in fields.items():
            place = child_pointer(pointer, name)
            if name in _HOLDS_MAP and isinstance(value, dict):
                entries = cast("dict[str, Json]", value)
                below += [(child_pointer(place, key), each) for key, each in entries.items()]
            elif name in _HOLDS_LIST and isinstance(value, list):
                items = cast("list[Json]", value)
                below += [(child_pointer(place, number), each) for number, each in enumerate(items)]
            elif name in _HOLDS_SCHEMA:
                below.append((place, value))
        todo.extend(reversed(below))


def _brief(value: Json) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
