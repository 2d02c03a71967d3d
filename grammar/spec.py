"""Constraints as data: what the output must be, before anything is compiled.

Owns the spec types that programs, the wire and the compile worker share. Knows nothing of automata, tokens or models. A spec is
frozen and hashable, so that equal constraints share one compiled program.
"""

from __future__ import annotations

import hashlib
from typing import Literal

import msgspec


class Regex(msgspec.Struct, frozen=True, tag="regex"):
    """The whole output matches `pattern` (Python `re` syntax, as by `re.fullmatch`)."""

    pattern: str


Whitespace = Literal["compact", "single_space", "indented", "flexible"]


class JsonSchema(msgspec.Struct, frozen=True, tag="json_schema"):
    """The output is one JSON text valid under the schema `text` (its JSON source).

    any_order    properties in any order; else declared ones come first, as the schema declares them
    whitespace   compact: none. single_space: one space after each comma and colon, as `json.dumps` writes. indented: two spaces a level,
                 one member or item a line, as `json.dumps(indent=2)`. flexible: a bounded gap of spaces and line breaks wherever JSON allows one
    best_effort  keywords that cannot be enforced are left out and reported, instead of refused
    """

    text: str
    any_order: bool = False
    whitespace: Whitespace = "compact"
    best_effort: bool = False


class Lark(msgspec.Struct, frozen=True, tag="lark"):
    """The output is a sentence of the grammar `text`, written in the Lark dialect, from its rule `start`."""

    text: str
    start: str = "start"


class Gbnf(msgspec.Struct, frozen=True, tag="gbnf"):
    """The output is a sentence of the grammar `text`, written as llama.cpp's GBNF, from its rule `root`."""

    text: str


class Choice(msgspec.Struct, frozen=True, tag="choice"):
    """The output is exactly one of `options`."""

    options: tuple[str, ...]


class AfterReasoning(msgspec.Struct, frozen=True, tag="after_reasoning"):
    """Free text up to the first `end`, then a text of `content`: what a model thinks is free, its answer is constrained.

    `begin`, if any, must come first of all.
    """

    content: Regex | JsonSchema | Lark | Gbnf | Choice | StructuralTag
    end: str = "</think>"
    begin: str = ""


class Tag(msgspec.Struct, frozen=True):
    """A stretch of output: `begin`, then a text of `content`, then `end`. `begin` starts with `trigger`.

    `name` and `place` are for errors: what the tag is called, and where its content stands for the user.
    """

    begin: str
    content: Spec
    end: str
    trigger: str
    name: str = ""
    place: str = ""


class StructuralTag(msgspec.Struct, frozen=True, tag="structural_tag"):
    """Tags, in free text or alone.

    free_text      text around the tags, in which a trigger only comes as the beginning of one of its tags; the tags decide what follows.
                   Text begins anew behind a tag: a trigger that would start inside the tag's end is none. Without it there is nothing
                   but tags, with `separator` between neighbours
    at_least_one, at_most_one   how many tags there must or may be. With neither, there may be none at all
    answer         instead of tags the whole output may be a text of this constraint. Not together with free_text or at_least_one
    """

    tags: tuple[Tag, ...]
    free_text: bool = True
    at_least_one: bool = False
    at_most_one: bool = False
    separator: str = ""
    answer: Regex | JsonSchema | Lark | Gbnf | Choice | None = None


Spec = Regex | JsonSchema | Lark | Gbnf | Choice | StructuralTag | AfterReasoning


def spec_key(spec: Spec) -> str:
    """A stable 32-hex-digit name of the spec: equal specs, equal key, across processes and runs."""
    return hashlib.blake2b(msgspec.msgpack.encode(spec), digest_size=16).hexdigest()
