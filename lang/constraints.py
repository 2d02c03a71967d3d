"""The constraint among a request's options (`schema`, `json_schema`, `regex`, `choices`), and how its output becomes a value.

Owns the names of these options and the rule that there is at most one. Must not know grammars beyond their spec, nor requests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ..errors import OutputError, ProgramError
from .primitives.gen import check_choices, check_regex

if TYPE_CHECKING:
    from ..grammar.spec import Spec
    from ..runtime.messages import Output

Decode: TypeAlias = "Callable[[Output], Any]"

CONSTRAINT_NAMES = ("schema", "json_schema", "regex", "choices")


def constraint_of(options: Mapping[str, Any]) -> tuple[Spec | None, Decode]:
    """The spec of the one constraint in `options` (others are ignored), and the way from an output to its value.

    `schema` is a pydantic model, dataclass, Literal ... or, like `json_schema`, a JSON Schema as dict or text. Raises ProgramError for
    two constraints or a schema that is none; what the grammar refuses is found later, when it is compiled.
    """
    from ..grammar.spec import Choice, JsonSchema, Regex

    given = {name: options[name] for name in CONSTRAINT_NAMES if options.get(name) is not None}
    if len(given) > 1:
        raise ProgramError(
            f"a request takes one constraint, not {' and '.join(given)}", place=list(given)[1]
        )
    if "regex" in given:
        return Regex(check_regex(given["regex"])), complete_text
    if "choices" in given:
        return Choice(check_choices(given["choices"])), complete_text
    schema: Any = given.get("json_schema", given.get("schema"))
    if schema is None:
        return None, lambda output: output.text
    if "json_schema" in given or isinstance(schema, str | Mapping):
        return JsonSchema(schema_text(cast("object", schema))), lambda output: json.loads(
            complete_text(output)
        )
    from .schema import typed_schema

    typed = typed_schema(schema)
    return typed.spec, typed.decode


def schema_text(schema: object) -> str:
    """A JSON Schema given as dict or text, as text with its key order kept."""
    if isinstance(schema, str):
        return schema
    try:
        return json.dumps(dict(cast("Mapping[str, Any]", schema)), ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise ProgramError(
            f"the schema cannot be written as JSON: {error}", place="json_schema"
        ) from None


def complete_text(output: Output) -> str:
    """The output's text; OutputError when a constraint was cut before it was complete."""
    if output.grammar_complete is False:
        raise OutputError(
            f"the output was cut before it was complete: {output.text[-80:]!r}",
            hint="Allow more tokens (max_tokens), or bound the constraint",
        )
    return output.text
