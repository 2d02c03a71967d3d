"""Python types as the language of answers: a type becomes a JSON Schema, an answer becomes a value of that type.

Owns the step from pydantic models, dataclasses, TypedDicts, Enums, Literals, int, float, bool, str, list[...], dict[str, ...] and their
unions to `grammar.spec.JsonSchema` and back. The JSON text keeps the declared order of fields, which is the order the model writes them.
Must not know grammars: what a grammar cannot enforce it refuses itself. pydantic is imported on first use.

Two additions to pydantic's schema: an object with declared properties is closed (`additionalProperties: false`) unless its type allows
extra ones, and `typing.TypedDict` is understood on Python 3.11 too.
"""

from __future__ import annotations

import inspect
import json
import re
import typing
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, cast

from ..errors import OutputError, ProgramError
from ..grammar.spec import JsonSchema

if TYPE_CHECKING:
    from ..runtime.messages import Output

_FORMATS = (
    frozenset(  # of pydantic's types, that the grammar takes for annotations: any string would pass
        [
            "base64",
            "base64url",
            "ipv4network",
            "ipv6network",
            "ipv4interface",
            "ipv6interface",
            "ipvanyaddress",
            "ipvanyinterface",
            "ipvanynetwork",
        ]
    )
)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_UNTOUCHED = frozenset({"default", "const", "enum", "examples"})


class TypedSchema:
    """A Python type, its spec, and the way back."""

    def __init__(self, python_type: Any) -> None:
        """Raises ProgramError for a type that has no JSON Schema, or one that no grammar enforces."""
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticUserError

        if inspect.isroutine(python_type) or isinstance(python_type, dict | str):
            kind = type(cast("object", python_type)).__name__
            raise ProgramError(
                f"schema= takes a Python type, not a {kind}",
                place="schema",
                hint="A JSON Schema goes to json_schema=",
            )
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(_portable(python_type))
            schema = self._adapter.json_schema()
        except (PydanticUserError, TypeError, NameError, AttributeError) as error:
            reason = str(error).split("\n", 1)[0]
            raise ProgramError(
                f"{python_type!r} cannot be a schema: {reason}", place="schema"
            ) from error
        self.python_type = python_type
        self.schema: dict[str, Any] = _closed(schema)
        self.spec = JsonSchema(json.dumps(self.schema, ensure_ascii=False))

    def decode(self, output: Output) -> object:
        """The value of an output. OutputError if it was cut, or a validator of the type refuses it."""
        if output.grammar_complete is False:
            raise OutputError(
                f"the JSON text was cut by max_tokens: {output.text[-80:]!r}",
                hint="Allow more tokens, or bound the schema (maxLength, maxItems)",
            )
        return self.value_of(output.text)

    def value_of(self, text: str) -> Any:
        """The value of a JSON text. OutputError, with a JSON pointer as place, if the type or a validator of it refuses the text."""
        from pydantic import ValidationError

        try:
            return self._adapter.validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            pointer = "".join(f"/{part}" for part in first["loc"])
            name = getattr(self.python_type, "__name__", repr(self.python_type))
            message = f"{name} refuses {text[:200]!r}: {first['msg']}"
            raise OutputError(message, place=pointer) from error


def typed_schema(python_type: Any) -> TypedSchema:
    """The TypedSchema of a type; made once for a type that programs use again and again."""
    try:
        return _remembered(python_type)
    except TypeError:  # not hashable: such as Annotated[int, ["metadata"]]
        return TypedSchema(python_type)


def plain_json(value: Any) -> str:
    """A value as JSON text: models, dataclasses, dates, sets and the like in their plain form. ValueError for what has none."""
    from pydantic_core import PydanticSerializationError, to_json

    try:
        return to_json(value, inf_nan_mode="strings").decode()
    except PydanticSerializationError as error:
        raise ValueError(str(error)) from error


def to_spec(python_type: Any) -> JsonSchema:
    """The constraint for values of `python_type`."""
    return typed_schema(python_type).spec


def partial_values(text: str) -> list[Any]:
    """The value of the beginning of a JSON text, in a list; [] while there is none.

    The longest that stays true whatever follows: strings, lists and objects as far as they are written, numbers and words only once they
    have ended. So the values of longer and longer beginnings only grow.
    """
    from pydantic_core import from_json

    text = _without_open_number(text)
    try:
        return [from_json(text, allow_partial="trailing-strings")]
    except ValueError:
        return []


def whole_value(text: str) -> Any:
    """The value of a JSON text. ValueError if it is not complete."""
    from pydantic_core import from_json

    return from_json(text)


def _without_open_number(text: str) -> str:
    """The text without a number at its end, which might go on."""
    cut = text.rstrip("0123456789+-.eE")
    if len(cut) == len(text) or '"' in _STRING.sub("", text):
        return text  # no number, or the inside of a string
    return cut


def value_of_text(python_type: Any, text: str) -> Any:
    """`text` as a value of a type: itself if the type takes texts, else as JSON, else in the type's plain form. ValueError if none fits.

    Of a type that pydantic does not know: JSON, else the text.
    """
    from pydantic import TypeAdapter, ValidationError
    from pydantic.errors import PydanticUserError

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(_portable(python_type))
    except (PydanticUserError, TypeError, NameError):
        try:
            return json.loads(text)
        except ValueError:
            return text
    reason = ""
    for read in (
        partial(adapter.validate_python, strict=True),
        partial(adapter.validate_json, strict=True),
        adapter.validate_strings,
    ):
        try:
            return read(text)
        except ValidationError as error:
            reason = error.errors(include_url=False)[0]["msg"]
    raise ValueError(reason)


@lru_cache(maxsize=256)
def _remembered(python_type: Any) -> TypedSchema:
    return TypedSchema(python_type)


def _closed(schema: Any) -> Any:
    """The schema with every object of declared properties closed."""
    if isinstance(schema, list):
        return [_closed(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    node = cast("dict[str, Any]", schema)
    if node.get("format") in _FORMATS:
        raise ProgramError(
            f"a type of the format {node['format']!r} cannot be enforced",
            place="schema",
            hint="Use str, perhaps with Field(pattern=...), and convert the value",
        )
    closed = {
        key: node[key] if key in _UNTOUCHED else _closed_under(key, node[key]) for key in node
    }
    if "properties" in node and node.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    return closed


def _closed_under(key: str, value: Any) -> Any:
    if key in {"properties", "$defs", "patternProperties"}:  # names of fields, not keywords
        return {name: _closed(part) for name, part in value.items()}
    return _closed(value)


def _portable(python_type: Any) -> Any:
    """The type with each `typing.TypedDict` in it replaced by the typing_extensions twin that pydantic needs before Python 3.12."""
    if typing.is_typeddict(python_type) and type(python_type).__module__ == "typing":
        from typing_extensions import TypedDict

        marks = (typing.Required, typing.NotRequired)
        fields: dict[str, Any] = {}
        for name, hint in typing.get_type_hints(python_type, include_extras=True).items():
            mark = typing.get_origin(hint)
            if mark not in marks:
                mark = marks[0] if name in python_type.__required_keys__ else marks[1]
            else:
                hint = typing.get_args(hint)[0]
            fields[name] = mark[_portable(hint)]
        twin: Any = TypedDict(python_type.__name__, fields)  # pyright: ignore[reportArgumentType, reportGeneralTypeIssues]
        twin.__doc__ = python_type.__doc__
        return twin
    origin, arguments = typing.get_origin(python_type), typing.get_args(python_type)
    if origin is None or origin is typing.Literal or origin is typing.Annotated:
        return python_type
    portable = tuple(_portable(argument) for argument in arguments)
    if portable == arguments:
        return python_type
    if hasattr(python_type, "copy_with"):
        return python_type.copy_with(portable)
    if type(python_type).__name__ == "UnionType":
        return typing.Union[portable]  # noqa: UP007  built from a tuple
    return origin[portable]
