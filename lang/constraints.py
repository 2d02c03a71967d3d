"""Constraints as options (`regex`, `choices`, `json_schema`, `schema`, `grammar`): their names, their check, their spec, the value of their output.

Owns the rule that there is at most one, for gens and for plain requests alike. Must not know requests, branches, or grammars beyond their
spec: what a grammar refuses is found later, when it is compiled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from ..errors import OutputError, ProgramError
from .plain_text import check_text

if TYPE_CHECKING:
    from ..grammar.spec import AfterReasoning, Choice, Gbnf, JsonSchema, Lark, Regex, Spec
    from ..runtime.messages import Output

Decode: TypeAlias = "Callable[[Output], Any]"
ValueKind = Literal["text", "choice", "json", "int", "float", "bool"]
"""What the value of an output is: its text, one of the choices, what JSON makes of the text, or what Python's type makes of it."""

_FILE_NAME = re.compile(r"[\w./\\-]+\.(?:lark|gbnf)")

CONSTRAINT_NAMES = ("regex", "choices", "json_schema", "schema", "grammar")


def only_constraint(options: Mapping[str, Any], asker: str) -> tuple[str, Any] | None:
    """Name and value of the one constraint in `options`; others are ignored. ProgramError for two."""
    given = {name: options[name] for name in CONSTRAINT_NAMES if options.get(name) is not None}
    if len(given) > 1:
        raise ProgramError(
            f"{asker} takes one constraint, not {' and '.join(given)}", place=list(given)[1]
        )
    return next(iter(given.items()), None)


def text_spec(name: str, value: Any) -> Regex | Choice | JsonSchema | Lark | Gbnf | AfterReasoning:
    """The spec of `regex`, `choices`, `json_schema` or `grammar`. ProgramError, PromptError for a value that is none."""
    from ..grammar.spec import Choice, Regex

    if name == "regex":
        return Regex(check_regex(value))
    if name == "choices":
        return Choice(check_choices(value))
    if name == "grammar":
        return check_grammar(value)
    return check_json_schema(value)


def constraint_of(options: Mapping[str, Any]) -> tuple[Spec | None, Decode]:
    """The spec of a request's constraint, and the way from an output to its value: parsed JSON, an instance, else text.

    `schema` is a pydantic model, dataclass, Literal ... or, like `json_schema`, a JSON Schema as dict, text or `grammar.spec.JsonSchema`,
    whose options say the order of properties and the white space.
    """
    found = only_constraint(options, "a request")
    if found is None:
        return None, text_of
    name, value = found
    if name == "schema" and not _is_json_schema(value):
        from .schema import typed_schema

        typed = typed_schema(value)
        return typed.spec, typed.decode
    is_text = name in ("regex", "choices", "grammar")
    return text_spec(name, value), complete_text if is_text else _parsed_json


def check_choices(choices: object) -> tuple[str, ...]:
    """The choices without repetitions. ProgramError if there are none, one is empty or not a string; PromptError for a lone surrogate."""
    if isinstance(choices, str) or not isinstance(choices, Iterable):
        raise ProgramError(f"choices={choices!r:.80} is not a list of texts", place="choices")
    items = tuple(cast("Iterable[object]", choices))
    for index, choice in enumerate(items):
        if not isinstance(choice, str) or not choice:
            raise ProgramError(f"choice {index} is {choice!r:.80}", place=f"choices[{index}]")
        check_text(choice, f"choices[{index}]")
    if not items:
        raise ProgramError("there is nothing to choose from", place="choices")
    return tuple(dict.fromkeys(cast("tuple[str, ...]", items)))


def _is_json_schema(value: object) -> bool:
    from ..grammar.spec import JsonSchema

    return isinstance(value, str | Mapping | JsonSchema)


def check_regex(regex: object) -> str:
    """The pattern. ProgramError if it is not a string."""
    if not isinstance(regex, str):
        raise ProgramError(f"regex={regex!r:.80} is not a string", place="regex")
    return regex


def check_grammar(grammar: object) -> Lark | Gbnf | AfterReasoning:
    """The spec of a grammar given as text (Lark, or GBNF if it has rules written `name ::= ...`) or as a spec. ProgramError for what is neither."""
    from ..grammar.dialects import spec_of_text
    from ..grammar.spec import AfterReasoning, Gbnf, Lark

    if isinstance(grammar, Lark | Gbnf | AfterReasoning):
        return grammar
    if not isinstance(grammar, str):
        raise ProgramError(
            f"grammar={grammar!r:.80} is no grammar",
            place="grammar",
            hint="It is a text, or a Lark, Gbnf or AfterReasoning of radixlm.grammar.spec",
        )
    if _FILE_NAME.fullmatch(grammar):
        raise ProgramError(
            f"grammar={grammar!r} looks like the name of a file",
            place="grammar",
            hint="Pass its text: Path(...).read_text()",
        )
    return spec_of_text(grammar)


def check_json_schema(schema: object) -> JsonSchema:
    """The spec of a JSON Schema given as dict, text or spec (whose text may be a dict too). ProgramError for what is none, and for options that are not."""
    from typing import get_args

    import msgspec

    from ..grammar.spec import JsonSchema, Whitespace

    if not isinstance(schema, JsonSchema):
        return JsonSchema(schema_text(schema))
    try:
        whole = msgspec.structs.replace(schema, text=schema_text(schema.text))
        return msgspec.convert(msgspec.to_builtins(whole), JsonSchema)
    except msgspec.ValidationError as error:
        allowed = f"whitespace is one of {', '.join(get_args(Whitespace))}"
        raise ProgramError(f"JsonSchema: {error}", place="json_schema", hint=allowed) from None


def schema_text(schema: object) -> str:
    """A JSON Schema given as dict or text, as text with its key order kept."""
    if isinstance(schema, str):
        return schema
    if not isinstance(schema, Mapping):
        raise ProgramError(
            f"{schema!r:.80} is no JSON Schema",
            place="json_schema",
            hint="It is a dict or JSON text; a Python type goes to schema=",
        )
    try:
        return json.dumps(dict(cast("Mapping[str, Any]", schema)), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ProgramError(
            f"the schema cannot be written as JSON: {error}", place="json_schema"
        ) from None


def text_of(output: Output) -> str:
    """The value of an output without a type: its text."""
    return output.text


def complete_text(output: Output) -> str:
    """The output's text; OutputError when a constraint was cut before it was complete."""
    if output.grammar_complete is False:
        raise OutputError(
            f"the output {output.text[-80:]!r} was cut by max_tokens before it was complete",
            hint="Allow more tokens, or bound the constraint",
        )
    return output.text


def _parsed_json(output: Output) -> Any:
    return json.loads(complete_text(output))
