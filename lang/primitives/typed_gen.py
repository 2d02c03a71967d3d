"""gen_int, gen_string, and `gen(dtype=)`: outputs of a plain type.

Owns what such an output may be and how it becomes a value: int in digits, float as a JSON number, bool as Python writes it, str as a JSON string.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...errors import OutputError, ProgramError
from ..constraints import complete_text, schema_text
from .gen import Gen, checked_name, own_options

if TYPE_CHECKING:
    from typing import Unpack

    from ...grammar.spec import Spec
    from ...runtime.messages import Output
    from ..constraints import ValueKind
    from ..sglang_names import ProgramOptions

_PARSERS: dict[str, Callable[[str], object]] = {
    "json": json.loads,
    "int": int,
    "float": float,
    "bool": "True".__eq__,
}
_INT_PATTERN = "-?(?:0|[1-9][0-9]{0,17})"
_FLOAT_PATTERN = r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?(?:[eE][-+]?[0-9]{1,2})?"


def gen_int(
    name: str | None = None,
    max_tokens: int | None = None,
    *,
    minimum: int | None = None,
    maximum: int | None = None,
    **options: Unpack[ProgramOptions],
) -> Gen:
    """A whole number, read as int. Without bounds: up to 18 digits, perhaps negative."""
    _check_bounds(minimum=minimum, maximum=maximum)
    from ...grammar.spec import JsonSchema, Regex

    if minimum is None and maximum is None:
        spec: Spec = Regex(_INT_PATTERN)
    else:
        bounds = {"type": "integer", "minimum": minimum, "maximum": maximum}
        spec = JsonSchema(schema_text({k: v for k, v in bounds.items() if v is not None}))
    return _typed(name, max_tokens, options, spec, "int")


def gen_string(
    name: str | None = None,
    max_tokens: int | None = None,
    *,
    max_length: int | None = None,
    **options: Unpack[ProgramOptions],
) -> Gen:
    """A string, written in the text as a JSON string (quoted, escaped), read as its content."""
    from ...grammar.spec import JsonSchema

    _check_bounds(max_length=max_length)
    shape: dict[str, Any] = {"type": "string"}
    if max_length is not None:
        shape["maxLength"] = max_length
    spec = JsonSchema(schema_text(shape))
    return _typed(name, max_tokens, options, spec, "json")


def plain_type(dtype: object) -> tuple[Spec, Callable[[Output], object], ValueKind]:
    """The constraint of `dtype=` and the way to its value, with its name. ProgramError for another type."""
    from ...grammar.spec import Choice, JsonSchema, Regex

    kind = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", "")
    if kind == "int":
        return Regex(_INT_PATTERN), reader_of("int"), "int"
    if kind == "float":
        return Regex(_FLOAT_PATTERN), reader_of("float"), "float"
    if kind == "bool":
        return Choice(("True", "False")), reader_of("bool"), "bool"
    if kind == "str":
        return JsonSchema('{"type": "string"}'), reader_of("json"), "json"
    raise ProgramError(
        f"dtype={dtype!r:.80} is not int, float, bool or str",
        place="dtype",
        hint="Another type goes to schema=",
    )


def _typed(
    name: str | None,
    max_tokens: int | None,
    options: ProgramOptions,
    spec: Spec,
    value: ValueKind,
) -> Gen:
    own = own_options(max_tokens, options)
    if "stop_regex" in own:
        raise ProgramError("stop_regex does not go with another constraint", place="stop_regex")
    return Gen(checked_name(name), own, spec, reader_of(value), None, value)


def reader_of(value: ValueKind) -> Callable[[Output], object]:
    """The way to a value that a parser makes: "json", "int", "float" or "bool"."""
    parse = _PARSERS[value]

    def decode(output: Output) -> object:
        try:
            return parse(complete_text(output))
        except ValueError as error:
            raise OutputError(f"the output {output.text!r} cannot be read: {error}") from error

    return decode


def _check_bounds(**bounds: object) -> None:
    for name, value in bounds.items():
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise ProgramError(f"{name}={value!r:.80} is not a whole number", place=name)
