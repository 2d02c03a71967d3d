"""Constraints as other servers take them: which JSON Schema says the same, and how the text comes out of the JSON again.

A server that only enforces objects of a JSON Schema can enforce a choice, a pattern or a plain number too, as the one property of an object:

    Choice("yes", "no")  ->  {"answer": one of the enum}    {"answer":"yes"}  ->  yes

`Wrapped` is the way back, also for an answer that was cut. Narrowing is allowed (an optional property that is always written is valid under
the original schema), weakening is not: what a server cannot enforce is refused by name. Owns these rewritings; knows no server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

from ...errors import GrammarError, OutputError
from ...grammar.spec import AfterReasoning, Choice, Gbnf, JsonSchema, Lark, Regex, Spec

ROOM_TOKENS = 16
"""What max_tokens is raised by where an answer is wrapped: the JSON around it is not the program's."""

_KEY = "answer"
_HEAD = re.compile(r'\s*\{\s*"answer"\s*:\s*')
_NAMES: dict[type[Any], str] = {
    Regex: "regex",
    JsonSchema: "json_schema",
    Lark: "grammar",
    Gbnf: "grammar",
    Choice: "choices",
    AfterReasoning: "AfterReasoning",
}
_WITH_SCHEMAS = ("properties", "$defs", "definitions", "patternProperties")
_WITH_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_WITH_ONE = ("items",)
_TURNED = ("not", "if")  # what is narrower below them makes the whole wider
_LOOKS = re.compile(r"(?P<look>\(\?<?[=!])|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Wrapped:
    """What was put into an object of one property: a text, or any JSON value. `pattern` is checked again: dialects of regexes differ."""

    kind: Literal["text", "value"]
    pattern: str = ""

    def whole(self, text: str, server: str) -> str:
        """The text of a complete answer."""
        try:
            data: Any = json.loads(text)
            value = data[_KEY]
        except (ValueError, KeyError, TypeError):
            raise OutputError(
                f"{server} did not keep to the schema that was asked for: {text[:200]!r}"
            ) from None
        if self.kind == "value":
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        if self.pattern and not _matches(self.pattern, str(value)):
            raise OutputError(f"{server} did not keep to the pattern {self.pattern!r}: {value!r}")
        return str(value)

    def partial(self, text: str) -> str:
        """The text of an answer that was cut."""
        head = _HEAD.match(text)
        rest = text[head.end() :] if head else ""
        if self.kind == "value":
            return rest
        rest = rest.removeprefix('"')
        for cut in range(len(rest), max(len(rest) - 12, -1), -1):  # an escape may be cut
            try:
                return cast("str", json.loads(f'"{rest[:cut]}"'))
            except ValueError:
                continue
        return ""


@dataclass(frozen=True, slots=True)
class Constrained:
    """The fields of a body that enforce a constraint; `wrapped`: how the text comes out of the answer."""

    fields: dict[str, Any]
    wrapped: Wrapped | None = None


def object_schema(spec: Spec, server: str) -> tuple[dict[str, Any], Wrapped | None]:
    """A schema of an object for `spec`. GrammarError for what no schema says."""
    if isinstance(spec, Choice):
        return _wrapping({"type": "string", "enum": list(spec.options)}), Wrapped("text")
    if isinstance(spec, Regex):
        inner = {"type": "string", "pattern": f"^(?:{without_looks(spec.pattern, server)})$"}
        return _wrapping(inner), Wrapped("text", spec.pattern)
    if not isinstance(spec, JsonSchema):
        raise cannot_enforce(spec, server)
    schema = schema_of(spec)
    if isinstance(schema, dict) and cast("dict[str, Any]", schema).get("type") == "object":
        return cast("dict[str, Any]", schema), None
    definitions: dict[str, Any] = {}
    if isinstance(schema, dict):
        inner = dict(cast("dict[str, Any]", schema))
        inner.pop("$schema", None)
        definitions = {name: inner.pop(name) for name in ("$defs", "definitions") if name in inner}
        schema = inner
    return {**_wrapping(schema), **definitions}, Wrapped("value")


def schema_of(spec: JsonSchema) -> Any:
    """The schema as data. GrammarError if its text is no JSON."""
    try:
        return json.loads(spec.text)
    except ValueError as error:
        raise GrammarError(f"the schema is no JSON: {error}", place="json_schema") from None


def closed(schema: Any, server: str, *, all_required: bool) -> Any:
    """The schema with every object closed and, if the server wants that, every property required. A copy; never wider than `schema`."""
    return _closed(schema, server, all_required, "#")


def without_looks(pattern: str, server: str) -> str:
    """The pattern. GrammarError for a lookahead or lookbehind, which these servers' automata do not know."""
    for found in _LOOKS.finditer(pattern):
        if found["look"]:
            raise GrammarError(
                f"{server} does not enforce lookarounds, and {pattern[:80]!r} holds one",
                place="regex",
                hint="stop_regex is made of one too: use stop=, or radixlm.RuntimeEndpoint, which takes both",
                keyword="lookaround",
            )
    return pattern


def cannot_enforce(spec: Spec, server: str, hint: str = "") -> GrammarError:
    """The refusal of a kind of constraint."""
    name = _NAMES.get(type(spec), type(spec).__name__)
    kind = " (Lark)" if isinstance(spec, Lark) else " (GBNF)" if isinstance(spec, Gbnf) else ""
    return GrammarError(f"{server} cannot enforce {name}{kind}", place=name, hint=hint)


def alternatives(choice: Choice) -> str:
    """The choices as a regular expression of the plainest kind."""
    special = re.compile(r"[\\.^$*+?()\[\]{}|]")
    return "|".join(special.sub(lambda found: "\\" + found[0], text) for text in choice.options)


def gbnf_of(choice: Choice) -> str:
    """The choices as a GBNF grammar."""
    return "root ::= " + " | ".join(json.dumps(t, ensure_ascii=False) for t in choice.options)


def _wrapping(inner: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {_KEY: inner},
        "required": [_KEY],
        "additionalProperties": False,
    }


def _closed(schema: Any, server: str, all_required: bool, place: str) -> Any:
    if not isinstance(schema, dict):
        return schema
    own = dict(cast("dict[str, Any]", schema))

    def below(name: str) -> Callable[[str, Any], Any]:
        return lambda key, inner: _closed(inner, server, all_required, f"{place}/{name}/{key}")

    _refuse_turned(own, server, place)
    for name in _WITH_SCHEMAS:
        if isinstance(own.get(name), dict):
            go = below(name)
            own[name] = {key: go(key, inner) for key, inner in own[name].items()}
    for name in _WITH_LISTS:
        if isinstance(own.get(name), list):
            go = below(name)
            own[name] = [go(str(index), inner) for index, inner in enumerate(own[name])]
    for name in _WITH_ONE:
        if isinstance(own.get(name), dict):
            own[name] = _closed(own[name], server, all_required, f"{place}/{name}")
    if own.get("type") == "object" or "properties" in own:
        if own.get("additionalProperties", True) is not False and not own.get("properties"):
            raise GrammarError(
                f"{server} only enforces objects whose properties are listed",
                place=place,
                hint="Name the properties, or use a list of key and value",
                keyword="additionalProperties",
            )
        own["additionalProperties"] = False
        if all_required:
            own["required"] = list(own.get("properties", {}))
    return own


def _refuse_turned(own: dict[str, Any], server: str, place: str) -> None:
    for name in _TURNED:
        if name in own:
            raise GrammarError(
                f"{server} only enforces closed objects, and a schema with {name!r} cannot be closed",
                place=f"{place}/{name}",
                keyword=name,
            )


def _matches(pattern: str, text: str) -> bool:
    try:
        return re.fullmatch(pattern, text) is not None
    except re.error:  # \p{L} and the like, which Python does not read
        return True
