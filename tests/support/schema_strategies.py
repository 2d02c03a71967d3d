"""Random JSON schemas and small JSON values that have a fair chance to be valid under them."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import permutations, product
from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "c")
PATTERNS = ("^a", "b$", "^[ab]+$", "ab", "^(a|bb)$", "^.{2}$", "^(?!b)", "a|b")

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 6),
    st.sampled_from([0.5, 1.5, -0.25, 2.75]),
    st.text("abc", max_size=3),
)


def values(depth: int = 2) -> st.SearchStrategy[Any]:
    """Small JSON values."""
    if depth == 0:
        return scalars
    inner = values(depth - 1)
    return st.one_of(
        scalars,
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from([*NAMES, "ab", "z"]), inner, max_size=3),
    )


def _optional(**keywords: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with some of the keywords, in any order."""
    return st.fixed_dictionaries({}, optional=keywords).flatmap(
        lambda found: st.permutations(list(found.items())).map(dict)
    )


_small = st.integers(0, 3)
_bounds = st.one_of(st.integers(-2, 5), st.sampled_from([0.5, 1.25, -0.5, 2.75]))
_types = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])

plain_schemas = st.one_of(
    st.booleans(),
    _optional(type=st.one_of(_types, st.lists(_types, min_size=1, max_size=3, unique=True))),
    _optional(type=st.just("string"), minLength=_small, maxLength=_small),
    _optional(
        type=st.just("string"),
        pattern=st.sampled_from(PATTERNS),
        maxLength=_small,
        minLength=_small,
    ),
    _optional(type=st.sampled_from(["integer", "number"]), minimum=_bounds, maximum=_bounds),
    _optional(type=st.just("number"), exclusiveMinimum=_bounds, exclusiveMaximum=_bounds),
    _optional(multipleOf=st.sampled_from([1, 2, 5, 0.5, 0.25]), minimum=_bounds),
    st.lists(values(1), max_size=4).map(lambda v: {"enum": v}),
    values(1).map(lambda v: {"const": v}),
)


def schemas(depth: int = 2) -> st.SearchStrategy[Any]:
    """Schemas of the enforced keywords; `$ref` leads to "#/$defs/d", which `documents` defines."""
    if depth == 0:
        return st.one_of(plain_schemas, st.just({"$ref": "#/$defs/d"}))
    inner = schemas(depth - 1)
    some = st.lists(inner, min_size=1, max_size=3)
    names = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)
    properties = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    arrays = _optional(
        type=st.just("array"),
        items=inner,
        prefixItems=some,
        minItems=_small,
        maxItems=_small,
        contains=inner,
    )
    objects = _optional(
        type=st.just("object"),
        properties=properties,
        required=names,
        additionalProperties=inner,
        patternProperties=st.dictionaries(st.sampled_from(PATTERNS[:3]), inner, max_size=2),
        propertyNames=_optional(maxLength=_small, pattern=st.sampled_from(PATTERNS)),
        maxProperties=_small,
        minProperties=st.integers(0, 1),
        dependentRequired=st.dictionaries(st.sampled_from(NAMES), names, max_size=1),
    )
    combined = _optional(
        type=_types,
        properties=properties,
        required=names,
        anyOf=some,
        allOf=some,
        oneOf=some,
        minimum=_bounds,
        **{"not": inner, "if": inner, "then": inner, "else": inner},
    )
    return st.one_of(plain_schemas, arrays, objects, combined)


documents = st.builds(
    lambda schema, definition: (
        {**schema, "$defs": {"d": definition}} if isinstance(schema, dict) else schema
    ),
    schemas(),
    schemas(1),
)


_names = st.lists(st.sampled_from([*NAMES, "ab", "z"]), max_size=3, unique=True)
_conditions = st.recursive(
    st.one_of(
        st.builds(lambda names: {"required": names}, _names),
        st.builds(lambda name: {"properties": {name: False}}, st.sampled_from([*NAMES, "z"])),
    ),
    lambda inner: st.one_of(
        st.builds(lambda part: {"not": part}, inner),
        st.builds(
            lambda key, parts: {key: parts},
            st.sampled_from(["anyOf", "oneOf", "allOf"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        st.builds(lambda a, b, c: {"if": a, "then": b, "else": c}, inner, inner, inner),
    ),
    max_leaves=4,
)
object_schemas = st.builds(
    lambda plain, condition: {"type": "object", **plain, **condition},
    _optional(
        properties=st.dictionaries(
            st.sampled_from([*NAMES, "ab"]), st.sampled_from([{}, {"type": "integer"}, False])
        ),
        required=_names,
        additionalProperties=st.sampled_from([True, False, {"type": "integer"}]),
        propertyNames=st.sampled_from([{"enum": ["a", "b", "z"]}, {"maxLength": 1}]),
        minProperties=st.integers(0, 3),
        maxProperties=st.integers(0, 4),
        dependentRequired=st.dictionaries(st.sampled_from([*NAMES, "z"]), _names, max_size=2),
    ),
    _conditions,
)
"""Objects with conditions on which properties are present, and how many."""

_few_values = st.sampled_from(
    [
        {"enum": ["a", "b", 1]},
        {"enum": [[1], {"a": 1}, None]},
        {"type": ["boolean", "null"]},
        {"type": "integer", "minimum": 0, "maximum": 3},
        {"type": "integer", "minimum": 1, "not": {"const": 2}, "maximum": 3},
        {"const": "b"},
        {"anyOf": [{"type": "boolean"}, {"enum": [True, 0, "a"]}]},
        False,
    ]
)
_many_values = st.sampled_from([{"type": "array"}, {"type": "string", "minLength": 2}])
unique_arrays = st.builds(
    lambda first, rest, counts, contains: {
        "type": "array",
        **({"prefixItems": first} if first else contains),
        "items": rest,
        "uniqueItems": True,
        **counts,
    },
    st.lists(st.one_of(_few_values, _many_values), max_size=3),
    _few_values,
    _optional(minItems=_small, maxItems=_small),
    st.one_of(
        st.just({}),
        _optional(contains=_few_values, minContains=_small, maxContains=_small),
    ),
)
"""Arrays whose items all differ, most of them out of a few values."""

_typed = st.sampled_from([{}, {"type": "integer"}, {"type": "string"}, False])
property_rules = _optional(
    properties=st.dictionaries(st.sampled_from([*NAMES, "z"]), _typed, max_size=2),
    patternProperties=st.dictionaries(st.sampled_from(["^a", "b$", "^z"]), _typed, max_size=2),
    additionalProperties=_typed,
)
"""Rules on properties, to be broken."""

_gaps = st.sampled_from(["", "", " ", "\n", "\r\n\t", " \n  ", "\n\n    "])


@st.composite
def gapped(draw: st.DrawFn, value: Any) -> str:
    """The JSON text of a value with white space in all sorts of places, none of it at the end."""
    return draw(_gaps) + _with_gaps(value, lambda: draw(_gaps))


def _with_gaps(value: Any, gap: Callable[[], str]) -> str:
    if isinstance(value, list):
        parts = [_with_gaps(item, gap) for item in value]
    elif isinstance(value, dict):
        parts = [
            f"{json.dumps(key)}{gap()}:{gap()}{_with_gaps(item, gap)}"
            for key, item in value.items()
        ]
    else:
        return json.dumps(value, ensure_ascii=False)
    left, right = "[]" if isinstance(value, list) else "{}"
    inner = "".join((f"{gap()},{gap()}" if i else "") + part for i, part in enumerate(parts))
    return f"{left}{gap()}{inner}{gap() if parts else ''}{right}"


def orders(value: Any) -> list[Any]:
    """The value with the keys of its objects in every order."""
    if isinstance(value, list):
        return [list(items) for items in product(*map(orders, value))]
    if isinstance(value, dict):
        keyed = [[(key, item) for item in orders(below)] for key, below in value.items()]
        return [dict(items) for order in permutations(keyed) for items in product(*order)]
    return [value]
