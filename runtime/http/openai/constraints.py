"""The constraint a body asks for, in any of the spellings clients use, as one `grammar.spec` value and the name of its field.

Owns: response_format (OpenAI), structured_outputs and guided_* (vLLM), regex, json_schema and ebnf (SGLang), grammar (llama.cpp), choices (ours);
only one may be given, but in several spellings. A grammar is Lark or GBNF, told apart by its text.
Compiles nothing: what a schema may hold is the grammar's business.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ....errors import GrammarError, UserError
from ....grammar.dialects import spec_of_text
from ....grammar.spec import Choice, Gbnf, JsonSchema, Lark, Regex
from .bodies import GenerationBody, ResponseFormat, StructuredOutputs

_ANY_OBJECT = JsonSchema('{"type": "object"}')
_FORMATS = "text, json_object, json_schema or grammar"
ANSWER_PLACE = "/answer"  # of the constraint, in a structural tag beside tools


@dataclass(frozen=True, slots=True)
class Constraint:
    """A spec and the field of the body that holds it."""

    spec: Regex | JsonSchema | Lark | Gbnf | Choice
    field: str


def constraint_of(body: GenerationBody) -> Constraint | None:
    """The body's one constraint, or None. Raises GrammarError or UserError naming the field."""
    found = [
        *_format_constraint(body.response_format),
        *_structured(body.structured_outputs),
        *_json("json_schema", body.json_schema),
        *_json("guided_json", body.guided_json),
        *_regex("regex", body.regex),
        *_regex("guided_regex", body.guided_regex),
        *_choice("choices", body.choices),
        *_choice("guided_choice", body.guided_choice),
        *_grammar("grammar", body.grammar or None),  # clients of llama.cpp send "" for none
        *_grammar("guided_grammar", body.guided_grammar),
        *_grammar("ebnf", body.ebnf),
    ]
    if len({constraint.spec for constraint in found}) > 1:
        names = " and ".join(constraint.field for constraint in found)
        raise UserError(f"a request takes one constraint, not {names}", place=found[1].field)
    return found[0] if found else None


def _format_constraint(wanted: ResponseFormat | None) -> list[Constraint]:
    if wanted is None or wanted.type == "text":
        return []
    if wanted.type == "json_object":
        return [Constraint(_ANY_OBJECT, "response_format")]
    if wanted.type == "grammar":
        if wanted.grammar is None:
            raise GrammarError(
                "a response format grammar needs its grammar", place="response_format.grammar"
            )
        return _grammar("response_format.grammar", wanted.grammar)
    if wanted.type != "json_schema":
        raise UserError(
            f"the response format {wanted.type!r} is unknown",
            place="response_format.type",
            hint=f"Use {_FORMATS}",
        )
    field = "response_format.json_schema"
    if wanted.json_schema is None:
        raise GrammarError("a response format json_schema needs its schema", place=field)
    field += ".schema"
    given = wanted.json_schema
    if given.schema is None:
        raise GrammarError("a response format json_schema needs its schema", place=field)
    spec = JsonSchema(
        _schema_text(given.schema), given.any_order or False, given.whitespace or "compact"
    )
    return [Constraint(spec, field)]


def _structured(wanted: StructuredOutputs | None) -> list[Constraint]:
    if wanted is None:
        return []
    name = "structured_outputs"
    found = [
        *_json(f"{name}.json", wanted.json),
        *_regex(f"{name}.regex", wanted.regex),
        *_choice(f"{name}.choice", wanted.choice),
        *_grammar(f"{name}.grammar", wanted.grammar),
    ]
    if wanted.json_object:
        found.append(Constraint(_ANY_OBJECT, f"{name}.json_object"))
    return found


def _json(field: str, schema: Any) -> list[Constraint]:
    if schema is None:
        return []
    return [Constraint(JsonSchema(_schema_text(schema)), field)]


def _schema_text(schema: Any) -> str:
    """A schema's source; some clients send it as text."""
    return schema if isinstance(schema, str) else json.dumps(schema, ensure_ascii=False)


def _regex(field: str, pattern: str | None) -> list[Constraint]:
    return [] if pattern is None else [Constraint(Regex(pattern), field)]


def _choice(field: str, options: list[str] | None) -> list[Constraint]:
    return [] if options is None else [Constraint(Choice(tuple(options)), field)]


def _grammar(field: str, text: str | None) -> list[Constraint]:
    return [] if text is None else [Constraint(spec_of_text(text), field)]
