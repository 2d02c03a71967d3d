"""What to extract: a schema, and the check that a value satisfies it.

Owns the reading of schemas in all their spellings, and the validation with `jsonschema`, which shares no code with the grammar that made
the output. Must not know documents or backends. A Python type also gives values of that type (`lang.schema`).

A `pattern` that Python's `re` cannot read (such as \\p{L}) is left to the grammar, which enforced it. References to other documents are
never fetched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import jsonschema
from jsonschema.exceptions import SchemaError, ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable

from ...errors import ConfigError, GrammarError, OutputError
from ...grammar.spec import JsonSchema
from ...runtime.messages import Output
from ..user_code import load_module

_MODULE = re.compile(r"(?P<module>[A-Za-z_][\w.]*|.*\.py):(?P<name>[A-Za-z_][\w.]*)")
_Check = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


class Target:
    """A schema: the constraint for the model, the check of its output, and the way to Python values."""

    def __init__(self, schema: Mapping[str, Any], typed: Any = None) -> None:
        """`typed` is a `lang.schema.TypedSchema` or None. GrammarError for a schema that is none."""
        self.schema = schema
        self.spec = typed.spec if typed is not None else JsonSchema(_as_json(schema))
        self._typed = typed
        tools: Any = jsonschema  # typed in part only
        kind = tools.validators.validator_for(schema, default=tools.Draft202012Validator)
        try:
            kind.check_schema(schema, format_checker=tools.FormatChecker(()))
        except SchemaError as error:
            pointer = "".join(f"/{part}" for part in error.absolute_path)
            raise GrammarError(f"this is no JSON Schema: {error.message}", place=pointer) from None
        checks = {
            name: _lenient(kind.VALIDATORS[name], name)
            for name in ("pattern", "patternProperties")
            if name in kind.VALIDATORS
        }
        self._best = tools.exceptions.best_match
        self._validator = tools.validators.extend(kind, checks)(
            schema, format_checker=kind.FORMAT_CHECKER, registry=cast("Any", Registry)()
        )

    @staticmethod
    def of(schema: Any) -> Target:
        """From a dict, JSON text, the path of a JSON file, "module:Model", "file.py:Model", or a Python type as `gen(schema=)` takes it."""
        if isinstance(schema, Mapping):
            return Target(cast("Mapping[str, Any]", schema))
        if isinstance(schema, Path):
            return Target(_read(schema))
        if isinstance(schema, str):
            return _named(schema)
        if schema is None:
            raise ConfigError("no schema is given", place="schema")
        from ..schema import typed_schema

        typed = typed_schema(schema)
        return Target(json.loads(typed.spec.text), typed)

    def check(self, value: Any) -> None:
        """OutputError with a JSON pointer if the value breaks the schema."""
        wrong = self.first_error(value)
        if wrong is not None:
            pointer = "".join(f"/{part}" for part in wrong.absolute_path)
            raise OutputError(f"the value breaks the schema: {wrong.message[:300]}", place=pointer)

    def first_error(self, value: Any, schema: Any = None) -> ValidationError | None:
        """The most telling error of a value under the schema, or under a part of it."""
        validator = self._validator if schema is None else self._validator.evolve(schema=schema)
        try:
            return self._best(validator.iter_errors(value))
        except Unresolvable as error:
            raise GrammarError(f"the schema refers to {error.ref!r}, which is not in it") from None

    def typed(self, value: Any, text: str) -> Any:
        """The Python value of parsed JSON and its text. OutputError if a validator of the type refuses it."""
        return value if self._typed is None else self._typed.decode(Output(text, (), "stop"))


def _lenient(check: _Check, name: str) -> _Check:
    """A check that leaves patterns to the grammar which Python cannot read."""

    def checked(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        if name == "pattern":
            readable = value if _is_readable(value) else None
        else:
            readable = {pattern: part for pattern, part in value.items() if _is_readable(pattern)}
        return check(validator, readable, instance, schema) if readable is not None else None

    return checked


def _is_readable(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _named(text: str) -> Target:
    if text.lstrip().startswith("{"):
        return Target(_parsed(text, "schema"))
    path = Path(text)
    if path.is_file():
        return Target(_read(path))
    found = _MODULE.fullmatch(text)
    if found is None:
        raise ConfigError(
            f"{text!r} is neither a file nor module:Model",
            place="schema",
            hint="Write schema.json, or my_module:Invoice",
        )
    return Target.of(_imported(found["module"], found["name"]))


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the schema {path} cannot be read: {error}", place="schema") from None
    return _parsed(text, str(path))


def _parsed(text: str, name: str) -> dict[str, Any]:
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name} is no JSON: {error}", place="schema") from None
    if not isinstance(schema, dict):
        raise ConfigError(f"{name} is {schema!r:.60}, not a JSON Schema", place="schema")
    return cast("dict[str, Any]", schema)


def _as_json(schema: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(schema), ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"the schema cannot be written as JSON: {error}", place="schema"
        ) from None


def _imported(module_name: str, name: str) -> Any:
    found: Any = load_module(module_name)
    for part in name.split("."):
        found = getattr(found, part, None)
        if found is None:
            raise ConfigError(f"there is no {name} in {module_name}", place="schema")
    return found
