"""Constraints as data: what the output must be, before anything is compiled.

Owns the spec types that programs, the wire and the compile worker share. Knows nothing of automata, tokens or models. A spec is
frozen and hashable, so that equal constraints share one compiled program.
"""

from __future__ import annotations

import hashlib

import msgspec


class Regex(msgspec.Struct, frozen=True, tag="regex"):
    """The whole output matches `pattern` (Python `re` syntax, as by `re.fullmatch`)."""

    pattern: str


class JsonSchema(msgspec.Struct, frozen=True, tag="json_schema"):
    """The output is one compact JSON text valid under the schema `text` (its JSON source; key order is the output order)."""

    text: str


class Choice(msgspec.Struct, frozen=True, tag="choice"):
    """The output is exactly one of `options`."""

    options: tuple[str, ...]


Spec = Regex | JsonSchema | Choice


def spec_key(spec: Spec) -> str:
    """A stable 32-hex-digit name of the spec: equal specs, equal key, across processes and runs."""
    return hashlib.blake2b(msgspec.msgpack.encode(spec), digest_size=16).hexdigest()
