"""Random JSON schemas and small JSON values that have a fair chance to be valid under them."""

from __future__ import annotations

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


def orders(value: Any) -> list[Any]:
    """The value with the keys of its objects in every order."""
    if isinstance(value, list):
        return [list(items) for items in product(*map(orders, value))]
    if isinstance(value, dict):
        keyed = [[(key, item) for item in orders(below)] for key, below in value.items()]
        return [dict(items) for order in permutations(keyed) for items in product(*order)]
    return [value]
