"""Constraints to break a compiler with: mutated schemas, patterns, grammar texts, structural tags, all out of one random number generator.

Owns what is generated. Knows nothing of compilers. A case is (kind, seed): the same numbers give the same constraint everywhere.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any, cast

from radixlm.grammar.spec import (
    Choice,
    Gbnf,
    JsonSchema,
    Lark,
    Regex,
    Spec,
    StructuralTag,
    Tag,
    Whitespace,
)

Json = Any

_NAMES = ["a", "b", "c", "ab", "", "é", "𝕏", 'q"', "\\", "a/b", "~", "$ref", "properties", "\u0000", "x" * 40]  # fmt: skip
_PATTERNS = [
    "^a", "b$", "^[ab]+$", "a|b", "^(a|bb){2,9}$", "^.{2}$", "^(?!b)", "(?=a)", r"\d{3}", r"^\w+\s?$", "[^x]", r"\p{L}", "^$", "(", "[a", "a{5,2}", r"\1", "(a)\\1",
    "^(?:(?:a{9}){9}){9}$", "a{100000}", "^\\u00e9$", "(?<=a)b", "(?i)a", "x*?", "\\", "^\\/$", "[\\s\\S]*", "^[^\\n]{0,7}$",
]  # fmt: skip
_FORMATS = ["date", "time", "date-time", "duration", "uuid", "email", "hostname", "ipv4", "ipv6", "uri", "uri-reference", "json-pointer", "regex", "byte", "int32", "zipcode"]  # fmt: skip
_TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
_NUMBERS = [0, 1, 2, 3, 7, -1, -5, 0.5, 0.1, 1.5, 1e3, 1e-7, 1e308, -1e308, 10**40, 2**53 + 1, 2**63, 100_000, 1_000_001]  # fmt: skip
_JUNK: list[Json] = [None, True, False, "", "x", [], {}, [[]], [{}], {"a": {}}, -1, 1.5, 1e400, "object", ["string", "null"], [1, 1], {"$ref": "#"}, {"not": {}}, 2**70]  # fmt: skip
_TEXTS = ["", "a", "ab", "é", "𝕏", '"', "\\n", "\u0000", "\u2028", "1", "x" * 100]


def schema_text(rng: random.Random, pool: list[Json]) -> str:
    """The text of a schema out of the pool or a new one, with none to six faults put in."""
    tree = _copy(rng.choice(pool)) if pool and rng.random() < 0.5 else _schema(rng, rng.randrange(4))  # fmt: skip
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2, 6])):
        tree = _mutated(rng, tree)
    if isinstance(tree, dict) and rng.random() < 0.9:
        tree.setdefault("$defs", {"d": _schema(rng, 1)})
    text = json.dumps(tree, ensure_ascii=rng.random() < 0.5)
    if rng.random() < 0.08:
        text = _doubled_key(rng, text)
    if rng.random() < 0.05:
        text = _damaged(rng, text)
    if rng.random() < 0.02:
        depth = rng.choice([50, 190, 210, 3_000, 100_000])
        left, right = rng.choice([('{"items":', "}"), ('{"allOf":[', "]}"), ('{"properties":{"a":', "}}"), ('{"not":', "}"), ("[", "]")])  # fmt: skip
        text = left * depth + text + right * depth
    return text


def _schema(rng: random.Random, depth: int) -> Json:
    if depth <= 0 or rng.random() < 0.1:
        return rng.choice([True, False, {}, _leaf(rng), _leaf(rng), _leaf(rng), {"$ref": _pointer(rng)}])  # fmt: skip
    found: dict[str, Json] = {}
    for _ in range(rng.randint(1, 5)):
        keyword = rng.choice([*_KEYWORDS])
        found[keyword] = _KEYWORDS[keyword](rng, depth - 1)
    return found


def _leaf(rng: random.Random) -> Json:
    keywords = rng.sample([*_LEAF_KEYWORDS], rng.randint(1, 3))
    return {keyword: _LEAF_KEYWORDS[keyword](rng) for keyword in keywords}


def _value(rng: random.Random, depth: int = 2) -> Json:
    kind = rng.randrange(6 if depth else 4)
    if kind == 4:
        return [_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 5:
        return {rng.choice(_NAMES): _value(rng, depth - 1) for _ in range(rng.randrange(3))}
    return rng.choice([None, True, False, rng.choice(_NUMBERS), rng.choice(_TEXTS)])


def _pointer(rng: random.Random) -> str:
    if rng.random() < 0.85:
        return rng.choice(["#", "#/$defs/d", "#/$defs/d"])
    return rng.choice(["#/properties/a", "#/nowhere", "#anchor", "other.json", "#/allOf/0", "#/items", "%", "http://h/#/"])  # fmt: skip


def _count(rng: random.Random) -> int:
    return rng.choice([0, 0, 1, 1, 2, 3, 5, 12, 300, 40_000])


_LEAF_KEYWORDS: dict[str, Callable[[random.Random], Json]] = {
    "type": lambda rng: rng.choice([*_TYPES, rng.sample(_TYPES, 2)]),
    "enum": lambda rng: [_value(rng) for _ in range(rng.choice([1, 2, 3, 60]))],
    "const": _value,
    "minLength": _count,
    "maxLength": _count,
    "pattern": lambda rng: rng.choice(_PATTERNS),
    "format": lambda rng: rng.choice(_FORMATS),
    "minimum": lambda rng: rng.choice(_NUMBERS),
    "maximum": lambda rng: rng.choice(_NUMBERS),
    "exclusiveMinimum": lambda rng: rng.choice(_NUMBERS),
    "exclusiveMaximum": lambda rng: rng.choice(_NUMBERS),
    "multipleOf": lambda rng: rng.choice(_NUMBERS),
}


def _below(rng: random.Random, depth: int) -> Json:
    return _schema(rng, depth)


def _some(rng: random.Random, depth: int) -> Json:
    return [_schema(rng, depth) for _ in range(rng.randint(1, 3))]


def _by_name(rng: random.Random, depth: int) -> Json:
    return {rng.choice(_NAMES): _schema(rng, depth) for _ in range(rng.randint(1, 4))}


def _names(rng: random.Random, depth: int) -> Json:
    return rng.sample(_NAMES, rng.randrange(3))


_KEYWORDS: dict[str, Callable[[random.Random, int], Json]] = {
    **dict.fromkeys(("items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames", "unevaluatedProperties", "unevaluatedItems", "additionalItems"), _below),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), _some),
    **dict.fromkeys(("properties", "dependentSchemas"), _by_name),
    "required": _names,
    "patternProperties": lambda rng, depth: {rng.choice(_PATTERNS): _schema(rng, depth)},
    "dependentRequired": lambda rng, depth: {rng.choice(_NAMES): _names(rng, depth)},
    "dependencies": lambda rng, depth: {rng.choice(_NAMES): _schema(rng, depth)},
    **{name: lambda rng, depth: _count(rng) for name in ("minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains")},
    "uniqueItems": lambda rng, depth: rng.random() < 0.8,
    "$ref": lambda rng, depth: _pointer(rng),
    "$dynamicRef": lambda rng, depth: _pointer(rng),
    "$anchor": lambda rng, depth: "anchor",
    "$schema": lambda rng, depth: rng.choice(["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]),
    **{name: lambda rng, depth, make=make: make(rng) for name, make in _LEAF_KEYWORDS.items()},
}  # fmt: skip


def _places(tree: Json) -> list[tuple[Json, Any]]:
    """(container, key) of everything inside the tree."""
    found: list[tuple[Json, Any]] = []
    todo = [tree]
    while todo:
        node = todo.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()  # fmt: skip
        for key in keys:
            found.append((node, key))
            todo.append(node[key])
    return found


def _copy(tree: Json) -> Json:
    return json.loads(json.dumps(tree))


def _mutated(rng: random.Random, tree: Json) -> Json:
    tree = _copy(tree)
    places = _places(tree)
    if not places or rng.random() < 0.03:
        return rng.choice([_copy(rng.choice(_JUNK)), {"allOf": [tree, tree]}, {"not": tree}, {"anyOf": [tree, {"items": tree}]}])  # fmt: skip
    holder, key = rng.choice(places)
    action = rng.randrange(9)
    if action == 0:
        holder[key] = _copy(rng.choice(_JUNK))
    elif action == 1:
        holder[key] = rng.choice(_NUMBERS)
    elif action == 2:
        del holder[key]
    elif action == 3:
        other, other_key = rng.choice(places)
        holder[key] = _copy(other[other_key])
    elif action == 4:
        holder[key] = {"$ref": _pointer(rng)}
    elif action == 5:
        holder[key] = _schema(rng, 2)
    elif isinstance(holder, dict):
        keyword = rng.choice([*_KEYWORDS])
        holder[keyword] = _KEYWORDS[keyword](rng, 1)
    else:
        holder.insert(rng.randrange(len(holder) + 1), _copy(rng.choice(_JUNK)))
    return tree


def _doubled_key(rng: random.Random, text: str) -> str:
    found = list(re.finditer(r'"[a-zA-Z$]+": ?("[^"\\]*"|\d+|true)', text))
    if not found:
        return text
    one = rng.choice(found)
    return text[: one.start()] + one[0] + "," + text[one.start() :]


def _damaged(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    return rng.choice([text[:at], text[:at] + rng.choice(["}", '"', ",", "\ud800", "\x00", "NaN", "//", "9" * 5000]) + text[at:], text[:at] + text[at + 1 :]])  # fmt: skip


_ATOMS = [
    "a", "b", "ab", ".", r"\s", r"\w", r"\d", r"\W", "[^a]", "[ab]", "[a-cx-z]", r"\n", "(?i:k)", "(?s:.)", "é", "𝕏", r"\x41", r"\u00e9", "^", "$", r"\A", r"\Z", r"\b", r"\B", "(?m:^a$)", "[^\\W\\d]", r"\.",
    "(?=a)", "(?!b)", "(?<=a)", "(?<!b)", "(?:)", "[]a]", "[^]]", "(?P<n>a)", "(?#c)", "a", "b", ".", "[ab]", r"\w",
]  # fmt: skip
_BAD_ATOMS = [
    r"\p{L}",
    r"\1",
    "(?P=n)",
    "(?>a)",
    "(?(1)a|b)",
    "a++",
    "\\",
    "(?<=a*)b",
    "[b-a]",
    "(?-i:a)",
]
_COUNTS = ["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "{0,2}?", "{,4}", "{0}", "{1000}", "{99999}", "{5,100}"]  # fmt: skip


def pattern(rng: random.Random, depth: int = 3) -> str:
    """A pattern, good or bad."""
    text = _pattern(rng, depth)
    while rng.random() < 0.15:
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(["(", ")", "[", "]", "{", "}", "\\", "|", "?", "-", "^", "\x00", "(?"]) + text[at:]  # fmt: skip
    return text


def _pattern(rng: random.Random, depth: int) -> str:
    if depth == 0:
        return rng.choice(_BAD_ATOMS if rng.random() < 0.02 else _ATOMS)
    parts = [_pattern(rng, depth - 1) for _ in range(rng.randint(1, 3))]
    text = rng.choice(["", "|"]).join(parts)
    if rng.random() < 0.5:
        text = rng.choice(["(", "(?:"]) + text + ")" + (rng.choice(_COUNTS) if rng.random() < 0.7 else "")  # fmt: skip
    return text


def _schema_spec(rng: random.Random, pool: list[Json]) -> Spec:
    whitespace = cast("Whitespace", rng.choice(["compact", "compact", "single_space", "indented", "flexible"]))  # fmt: skip
    return JsonSchema(
        schema_text(rng, pool),
        any_order=rng.random() < 0.3,
        whitespace=whitespace,
        best_effort=rng.random() < 0.1,
    )


def _regex_spec(rng: random.Random, pool: list[Json]) -> Spec:
    return Regex(pattern(rng, rng.randint(1, 4)))


def _choice_spec(rng: random.Random, pool: list[Json]) -> Spec:
    return Choice(tuple(rng.choice(_TEXTS) + rng.choice(_NAMES) for _ in range(rng.randrange(9))))


def _tag_spec(rng: random.Random, pool: list[Json]) -> Spec:
    triggers = rng.choice([["<t"], ["<t", "[x"], ["<<", "<["], ["ab", "ba"], ["é"], ["é", "aab"]])
    if rng.random() < 0.03:
        triggers = rng.choice([["aa", "a"], [""]])
    tags: list[Tag] = []
    for index in range(rng.randint(rng.random() > 0.05, 4)):
        trigger = rng.choice(triggers)
        begin = trigger + rng.choice(["", "=", f"{index}>", "a", "aa"]) if rng.random() < 0.99 else "z"  # fmt: skip
        content = rng.choice([_small_pattern_spec, _choice_spec, _small_schema_spec])(rng, pool)
        tags.append(Tag(begin, content, rng.choice(["", ">", "</t>", "a", "<t"]), trigger))
    is_free, is_sloppy = rng.random() < 0.6, rng.random() < 0.05
    has_answer = not is_free and rng.random() < 0.3
    return StructuralTag(
        tuple(tags),
        free_text=is_free,
        at_least_one=rng.random() < 0.3 and (not has_answer or is_sloppy),
        at_most_one=rng.random() < 0.3,
        separator=rng.choice(["", ",", "\n", "<t"]) if not is_free or is_sloppy else "",
        answer=Regex("[a-z]{1,4}") if has_answer or is_sloppy else None,
    )


def _small_schema_spec(rng: random.Random, pool: list[Json]) -> Spec:
    return JsonSchema(json.dumps(_leaf(rng)))


def _small_pattern_spec(rng: random.Random, pool: list[Json]) -> Spec:
    return Regex(rng.choice(["[a-z]+", "a*", "(ab|b)?", "x{2,3}", "[^<]{1,9}", "(?:)"]))


_LARK_SEEDS = [
    'start: expr\nexpr: expr "+" term | term\nterm: NUMBER | "(" expr ")"\nNUMBER: /[0-9]+/\n%ignore " "\n',
    'start: item ("," item)*\nitem: WORD "=" value -> pair\n?value: WORD | STRING\nWORD: /[a-z]+/\nSTRING: "\\"" /[^"]*/ "\\""\n',
    'start: a~2..4 [b]\na: "x"i | b+\nb.2: /y{1,3}/\n',
    "%import common.INT\nstart: INT (INT)?\n",
]
_GBNF_SEEDS = [
    'root ::= expr\nexpr ::= expr "+" term | term\nterm ::= [0-9]+ | "(" expr ")"\n',
    'root ::= "{" ws pair ("," ws pair)* "}"\npair ::= [a-z]+ ":" ws [^"\\\\,}]{1,9}\nws ::= [ \\t\\n]?\n',
    'root ::= ("a" | "b" root)? "\\u00e9" . # end\n',
]


def _grammar_text(rng: random.Random, seeds: list[str]) -> str:
    text = rng.choice(seeds)
    for _ in range(rng.choice([0, 0, 1, 1, 1, 2, 4])):
        at, size = rng.randrange(len(text) + 1), rng.randrange(8)
        piece = rng.choice(["", "", *[text[at : at + size] * 2] * 4, " ", "|", "a", "?", "+", "(", ")", '"', "/", "[", "]", "*", "{2,3}", "{9999999}", "\n", "::=", ":", "start", "root", "%", "\\", "\x00", "é", "~", "->", "#"])  # fmt: skip
        text = text[:at] + piece + text[at + size * (rng.random() < 0.5) :]
    return text


def _lark_spec(rng: random.Random, pool: list[Json]) -> Spec:
    return Lark(_grammar_text(rng, _LARK_SEEDS))


def _gbnf_spec(rng: random.Random, pool: list[Json]) -> Spec:
    return Gbnf(_grammar_text(rng, _GBNF_SEEDS))


KINDS: dict[str, Callable[[random.Random, list[Json]], Spec]] = {
    "schema": _schema_spec,
    "regex": _regex_spec,
    "choice": _choice_spec,
    "tag": _tag_spec,
    "lark": _lark_spec,
    "gbnf": _gbnf_spec,
}


def fuzz_spec(kind: str, seed: int, pool: list[Json]) -> Spec:
    """The constraint of case (kind, seed). `pool`: schemas to start from, beside those made up here."""
    return KINDS[kind](random.Random(f"{kind} {seed}"), pool)
