"""Rows about JSON Schema: every keyword that is enforced, those that are refused by name, and the formats.

Texts are JSON; a schema, too. The drafts are those in which the keyword has this meaning.
"""

from __future__ import annotations

from readme_tables import Row, Table

from radixlm.grammar.frontends.json_schema import keywords

_ALL, _FROM_6, _FROM_7, _FROM_2019 = (
    "4 to 2020-12",
    "6 to 2020-12",
    "7 to 2020-12",
    "2019-09, 2020-12",
)


def _row(
    name: str,
    drafts: str,
    how: str,
    schema: str,
    accepts: str,
    rejects: str,
    *,
    but: str = "",
    refused: str | None = None,
) -> Row:
    return Row(f"`{name}`", (drafts, how, but), schema, accepts, rejects, refused)


_BACKREFERENCE = r'{"pattern":"(a)\\1"}'
_ROWS = (
    _row("type", _ALL, "one type or a list of them", '{"type":["string","integer"]}', "3", "null"),
    _row("enum", _ALL, "the values that everything beside it admits; numbers by value, spelled as in the schema",
         '{"enum":[1,"a"]}', '"a"', '"b"', but="more values than the limit `choices`"),
    _row("const", _FROM_6, "as an enum of one", '{"const":{"a":1}}', '{"a":1}', '{"a":2}'),
    _row("$ref", _ALL, "recursion, siblings (from 2019-09 on), JSON pointers, anchors, identifiers within the document",
         '{"$ref":"#/$defs/a","$defs":{"a":{"items":{"$ref":"#/$defs/a"},"type":"array"}}}', "[[],[[]]]", "[1]",
         but="it leads out of the document, nowhere, or to itself without a value between",
         refused='{"$ref":"https://example.com/s.json"}'),
    _row("$dynamicRef", "2020-12", "by the dynamic scope",
         '{"$dynamicAnchor":"n","type":"object","properties":{"c":{"$dynamicRef":"#n"}},"additionalProperties":false}',
         '{"c":{"c":{}}}', '{"c":1}'),
    _row("$recursiveRef", "2019-09", "by the dynamic scope",
         '{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"type":"object",'
         '"properties":{"c":{"$recursiveRef":"#"}},"additionalProperties":false}', '{"c":{}}', '{"c":1}'),
    _row("allOf", _ALL, "together with everything beside it", '{"allOf":[{"minimum":1},{"maximum":3}],"type":"integer"}', "2", "4"),
    _row("anyOf", _ALL, "a branch that nothing satisfies is dropped", '{"anyOf":[{"const":1},{"type":"null"}]}', "null", "2",
         but="too many ways to satisfy one schema"),
    _row("oneOf", _ALL, "exactly one branch", '{"oneOf":[{"type":"integer"},{"minimum":5,"type":"number"}]}', "3", "7",
         but="branches overlap and the complement of one is not known",
         refused='{"type":"array","oneOf":[{"minItems":1},{"items":{"enum":[1,2]},"uniqueItems":true}]}'),
    _row("not", _ALL, "as the complement", '{"not":{"const":1},"type":"integer"}', "2", "1",
         but="the complement is not known (that of `uniqueItems`)", refused='{"not":{"uniqueItems":true},"type":"array"}'),
    _row("if", _FROM_7, "with `then` and `else`", '{"if":{"minimum":5},"then":{"const":7},"type":"integer"}', "7", "8", but="as `not`"),
    _row("then", _FROM_7, "nothing without `if`", '{"if":{"minimum":5},"then":{"const":7},"type":"integer"}', "7", "8"),
    _row("else", _FROM_7, "nothing without `if`", '{"if":{"minimum":5},"else":{"const":1},"type":"integer"}', "1", "2"),
    _row("minimum", _ALL, "integers and decimals, without rounding", '{"minimum":1.5,"type":"number"}', "1.50", "1.49"),
    _row("maximum", _ALL, "integers and decimals, without rounding", '{"maximum":10,"type":"integer"}', "10", "11"),
    _row("exclusiveMinimum", _ALL, "a number, in draft 4 a boolean", '{"exclusiveMinimum":1,"type":"number"}', "1.1", "1.0"),
    _row("exclusiveMaximum", _ALL, "a number, in draft 4 a boolean", '{"maximum":1,"exclusiveMaximum":true,"type":"integer"}', "0", "1"),
    _row("multipleOf", _ALL, "exact, on the decimal text", '{"multipleOf":0.25,"type":"number"}', "0.75", "0.3",
         but="division leaves more than 800 remainders to tell apart, and the bounds many multiples", refused='{"multipleOf":1.009,"type":"number"}'),
    _row("minLength", _ALL, "code points of the decoded string", '{"minLength":2,"type":"string"}', '"\\u00e9a"', '"a"',
         but="above the limit `repeat_bound`", refused='{"minLength":2000000,"type":"string"}'),
    _row("maxLength", _ALL, "code points of the decoded string", '{"maxLength":1,"type":"string"}', '"\\u00e9"', '"aa"',
         but="above the limit `repeat_bound`", refused='{"maxLength":2000000,"type":"string"}'),
    _row("pattern", _ALL, "ECMA-262 with code points, found anywhere in the decoded string", '{"pattern":"^a+$","type":"string"}', '"aa"',
         '"ab"', but="see Patterns", refused=_BACKREFERENCE),
    _row("format", _ALL, "see Formats; an unknown one is an annotation", '{"format":"date","type":"string"}', '"2024-02-29"', '"2023-02-29"'),
    _row("properties", _ALL, "in declared order, or in any order if asked for", '{"properties":{"a":{"type":"null"}},"type":"object"}',
         '{"a":null}', '{"a":1}'),
    _row("required", _ALL, "names that are declared nowhere, too", '{"required":["a"],"type":"object"}', '{"a":1}', '{"b":1}'),
    _row("additionalProperties", _ALL, "after the declared ones, unless any order is asked for",
         '{"additionalProperties":{"type":"null"},"properties":{"a":true},"type":"object"}', '{"a":1,"b":null}', '{"a":1,"b":1}'),
    _row("patternProperties", _ALL, "with `properties`: a declared name is ruled by patterns that match it, too",
         '{"patternProperties":{"^x":{"type":"null"}},"type":"object"}', '{"xa":null,"a":1}', '{"xa":1}',
         but="see Patterns", refused='{"patternProperties":{"(a)\\\\1":false}}'),
    _row("propertyNames", _FROM_6, "all, with the others", '{"propertyNames":{"maxLength":1},"type":"object"}', '{"a":1}', '{"ab":1}'),
    _row("minProperties", _ALL, "with everything beside it", '{"minProperties":1,"properties":{"a":true},"additionalProperties":false,"type":"object"}',
         '{"a":1}', "{}", but="additional keys would have to fill it: they might repeat each other", refused='{"minProperties":2,"type":"object"}'),
    _row("maxProperties", _ALL, "with everything beside it", '{"maxProperties":1,"type":"object"}', '{"a":1}', '{"a":1,"b":1}'),
    _row("dependentRequired", _FROM_2019, "all", '{"dependentRequired":{"a":["b"]},"properties":{"a":true,"b":true},"type":"object"}',
         '{"a":1,"b":1}', '{"a":1}'),
    _row("dependentSchemas", _FROM_2019, "all", '{"dependentSchemas":{"a":{"required":["b"]}},"properties":{"a":true,"b":true},"type":"object"}',
         '{"a":1,"b":1}', '{"a":1}'),
    _row("dependencies", "4 to 7", "names and schemas", '{"dependencies":{"a":["b"]},"properties":{"a":true,"b":true},"type":"object"}',
         '{"b":1}', '{"a":1}'),
    _row("unevaluatedProperties", _FROM_2019, "where what was evaluated is decidable",
         '{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false,"type":"object"}', '{"a":1}', '{"b":1}'),
    _row("items", _ALL, "a schema, or (up to 2019-09) a list of them", '{"items":{"type":"null"},"type":"array"}', "[null]", "[1]"),
    _row("prefixItems", "2020-12", "with `items` for what follows", '{"prefixItems":[{"type":"null"}],"items":false,"type":"array"}', "[null]", "[1]"),
    _row("additionalItems", "4 to 2019-09", "behind a list in `items`", '{"items":[true],"additionalItems":false,"type":"array"}', "[1]", "[1,2]"),
    _row("unevaluatedItems", _FROM_2019, "where what was evaluated is decidable",
         '{"allOf":[{"prefixItems":[true]}],"unevaluatedItems":false,"type":"array"}', "[1]", "[1,2]"),
    _row("minItems", _ALL, "all", '{"minItems":2,"type":"array"}', "[1,2]", "[1]"),
    _row("maxItems", _ALL, "all", '{"maxItems":1,"type":"array"}', "[1]", "[1,2]"),
    _row("contains", _FROM_6, "with `minContains` and `maxContains`", '{"contains":{"const":1},"type":"array"}', "[2,1]", "[2]",
         but="the counts need more than 20,000 steps",
         refused='{"contains":{"const":1},"minContains":30000,"type":"array"}'),
    _row("minContains", _FROM_2019, "with `contains`", '{"contains":{"const":1},"minContains":2,"type":"array"}', "[1,1]", "[1]"),
    _row("maxContains", _FROM_2019, "with `contains`", '{"contains":{"const":1},"maxContains":1,"type":"array"}', "[1]", "[1,1]"),
    _row("uniqueItems", _ALL, "items out of a small set of values, or at most one item", '{"uniqueItems":true,"items":{"enum":[1,2]},"type":"array"}',
         "[2,1]", "[1,1]", but="other items: what came would have to be remembered", refused='{"uniqueItems":true,"items":{"type":"string"}}'),
)  # fmt: skip

KEYWORD_TABLE = Table(
    "json-schema-keywords", "json", ("keyword", "drafts", "enforced", "refused if"), _ROWS
)

_EXAMPLES = {"extends": "{}", "disallow": '"string"', "divisibleBy": "2"}

REFUSED_TABLE = Table(
    "json-schema-refused",
    "json",
    ("keyword", "always refused: the reason"),
    tuple(
        Row(f"`{name}`", (reason,), f'{{"{name}":{_EXAMPLES.get(name, "true")}}}')
        for name, reason in keywords.REFUSED.items()
    ),
)


def _format(names: str, meaning: str, accepts: str, rejects: str) -> Row:
    first = names.split()[0]
    schema = f'{{"format":"{first}","type":["string","integer"]}}'
    return Row(", ".join(f"`{n}`" for n in names.split()), (meaning,), schema, accepts, rejects)


ANNOTATION_TABLE = Table(
    "json-schema-annotations",
    "json",
    ("annotations: they allow and forbid nothing",),
    (Row(" ".join(f"`{name}`" for name in sorted(keywords.ANNOTATIONS)), (), '{"title":"a","type":"null"}', "null", "1"),),
)  # fmt: skip

FORMAT_TABLE = Table(
    "json-schema-formats",
    "json",
    ("format", "which texts"),
    (
        _format("date", "RFC 3339; days of months, leap years; from the year 0001 on", '"2024-02-29"', '"2023-02-29"'),
        _format("time", "RFC 3339 with an offset; at most nine digits of a second; a leap second at 23:59:60 UTC only", '"23:59:60Z"', '"12:00:60Z"'),
        _format("date-time", "a date, T, a time", '"2024-02-29T12:00:00Z"', '"2024-02-29T12:00:00"'),
        _format("duration", "RFC 3339, with bounded numbers", '"P1Y2M"', '"P1S"'),
        _format("uuid", "RFC 9562", '"00000000-0000-0000-0000-000000000000"', '"0"'),
        _format("uuid4 uuid1 uuid2 uuid3 uuid5 uuid6 uuid7 uuid8", "the version and the variant, too",
                '"00000000-0000-4000-8000-000000000000"', '"00000000-0000-1000-8000-000000000000"'),
        _format("email", "RFC 5321", '"a@b.de"', '"a@"'),
        _format("hostname", "RFC 1123, at most 253 characters; the more labels, the shorter each", '"a-b.c"', '"-a"'),
        _format("ipv4 ip-address", "four bytes without leading zeros", '"10.0.0.1"', '"10.0.0.01"'),
        _format("ipv6", "RFC 4291", '"::1"', '":1"'),
        _format("uri", "RFC 3986, with a scheme", '"a:b"', '"/b"'),
        _format("uri-reference", "RFC 3986", '"/b"', '"^"'),
        _format("iri", "RFC 3987, with a scheme", '"a:\u00e9"', '"/b"'),
        _format("iri-reference", "RFC 3987", '"\u00e9"', '"^"'),
        _format("uri-template", "RFC 6570", '"/{a}"', '"/{"'),
        _format("json-pointer", "RFC 6901", '"/a~0"', '"a"'),
        _format("relative-json-pointer", "the Internet draft", '"1/a"', '"/a"'),
        _format("byte", "base64 with padding (OpenAPI)", '"YQ=="', '"YQ"'),
        _format("int32", "the numbers of 32 bits (OpenAPI)", "2147483647", "2147483648"),
        _format("int64", "the numbers of 64 bits (OpenAPI)", "9223372036854775807", "9223372036854775808"),
        _format("idn-email", "RFC 6531", '"\u00e9@b.de"', '"a@"'),
        _format("idn-hostname", "labels with letters beyond ASCII", '"\u00e9.de"', '"-a"'),
        _format("regex", "ECMA-262, as patterns are", '"(a|b)*"', '"(a"'),
    ),
)  # fmt: skip
