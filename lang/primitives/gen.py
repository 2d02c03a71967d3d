"""`gen`: continue the text by sampling, free or constrained; gen_int and gen_string.

Owns the Gen node, the rule that a gen has at most one constraint, and how outputs become values. Must not know branches' inner life.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ...errors import OutputError, ProgramError
from ..ir import Node
from ..plain_text import check_text
from ..sampling import clean_options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Unpack

    from ...grammar.spec import Spec
    from ...runtime.messages import Output
    from ..ir import BranchOps
    from ..sampling import SamplingOptions

_INT_PATTERN = "-?(?:0|[1-9][0-9]{0,17})"


@dataclass(frozen=True)
class Gen(Node):
    """Sampled text. `options` are its own sampling arguments; `decode` makes a value of an output."""

    name: str | None
    options: Mapping[str, Any]
    constraint: Spec | None
    decode: Callable[[Output], object] = field(repr=False)

    def submit(self, branch: BranchOps) -> None:
        """Ask the branch to generate."""
        branch.generate(self.name, self.options, self.constraint, self.decode)


def gen(
    name: str | None = None,
    max_tokens: int | None = None,
    *,
    regex: str | None = None,
    choices: Sequence[str] | None = None,
    json_schema: str | Mapping[str, Any] | None = None,
    schema: Any = None,
    **options: Unpack[SamplingOptions],
) -> Gen:
    """Continue the text by sampling, and keep the result in `s[name]` (a list if n > 1; the program goes on with the first).

    At most one constraint: `regex` (whole output, Python syntax), `choices` (exactly one of them; OutputError if cut), `json_schema` (JSON text or dict; the
    value stays text), or `schema` (a pydantic model, dataclass, TypedDict, Enum, Literal, int, list[...]; the value is of that type).
    To pick a choice by likelihood instead of sampling, use `select`.

    Without a name it is called gen_0, gen_1, ... by its number on the branch. A name used twice holds the latest result. Options not
    given come from the run. Raises GrammarError, ProgramError, SamplingError.
    """
    from ...grammar.spec import Choice, JsonSchema, Regex

    given = {
        key: value
        for key, value in (
            ("regex", regex),
            ("choices", choices),
            ("json_schema", json_schema),
            ("schema", schema),
        )
        if value is not None
    }
    if len(given) > 1:
        raise ProgramError(
            f"a gen takes one constraint, not {' and '.join(given)}", place=name or ""
        )
    constraint: Spec | None = None
    decode = text_of
    if regex is not None:
        constraint = Regex(check_regex(regex))
    elif choices is not None:
        constraint = Choice(check_choices(choices))
        decode = partial(_choice_of, constraint.options)
    elif json_schema is not None:
        text = json_schema if isinstance(json_schema, str) else _as_json(json_schema)
        constraint = JsonSchema(text)
    elif schema is not None:
        from ..schema import typed_schema

        typed = typed_schema(schema)
        constraint, decode = typed.spec, typed.decode
    return Gen(_checked_name(name), _own_options(max_tokens, options), constraint, decode)


def gen_int(
    name: str | None = None,
    max_tokens: int | None = None,
    *,
    minimum: int | None = None,
    maximum: int | None = None,
    **options: Unpack[SamplingOptions],
) -> Gen:
    """A whole number, read as int. Without bounds: up to 18 digits, perhaps negative."""
    from ...grammar.spec import JsonSchema, Regex

    if minimum is None and maximum is None:
        spec: Spec = Regex(_INT_PATTERN)
    else:
        bounds = {"type": "integer", "minimum": minimum, "maximum": maximum}
        spec = JsonSchema(_as_json({k: v for k, v in bounds.items() if v is not None}))
    return _typed(name, max_tokens, options, spec, lambda output: int(output.text))


def gen_string(
    name: str | None = None,
    max_tokens: int | None = None,
    *,
    max_length: int | None = None,
    **options: Unpack[SamplingOptions],
) -> Gen:
    """A string, written in the text as a JSON string (quoted, escaped), read as its content."""
    from ...grammar.spec import JsonSchema

    shape: dict[str, Any] = {"type": "string"}
    if max_length is not None:
        shape["maxLength"] = max_length
    spec = JsonSchema(_as_json(shape))
    return _typed(name, max_tokens, options, spec, lambda output: json.loads(output.text))


def check_choices(choices: Sequence[str]) -> tuple[str, ...]:
    """The choices without repetitions. ProgramError if there are none, one is empty or not a string; PromptError for a lone surrogate."""
    if isinstance(choices, str):
        raise ProgramError(f"choices={choices!r} is one string, not a list", place="choices")
    unique = tuple(dict.fromkeys(choices))
    if not unique:
        raise ProgramError("there is nothing to choose from", place="choices")
    for index, choice in enumerate(unique):
        if not isinstance(choice, str) or not choice:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ProgramError(f"choice {index} is {choice!r}", place=f"choices[{index}]")
        check_text(choice, f"choices[{index}]")
    return unique


def check_regex(regex: str) -> str:
    """The pattern. ProgramError if it is not a string."""
    if not isinstance(regex, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ProgramError(f"regex={regex!r} is not a string", place="regex")
    return regex


def text_of(output: Output) -> object:
    """The value of a gen without a type: its text."""
    return output.text


def _choice_of(choices: tuple[str, ...], output: Output) -> object:
    if output.grammar_complete is False and output.text not in choices:
        raise _cut(output)
    return output.text


def _cut(output: Output) -> OutputError:
    message = f"the output {output.text!r} was cut by max_tokens"
    return OutputError(message, hint="Allow more tokens")


def _typed(
    name: str | None,
    max_tokens: int | None,
    options: SamplingOptions,
    spec: Spec,
    parse: Callable[[Output], object],
) -> Gen:
    def decode(output: Output) -> object:
        if output.grammar_complete is False:
            raise _cut(output)
        try:
            return parse(output)
        except ValueError as error:
            raise OutputError(f"the output {output.text!r} cannot be read: {error}") from error

    return Gen(_checked_name(name), _own_options(max_tokens, options), spec, decode)


def _own_options(max_tokens: int | None, options: SamplingOptions) -> dict[str, Any]:
    own = clean_options(cast("dict[str, Any]", options))
    return own if max_tokens is None else {**own, **clean_options({"max_tokens": max_tokens})}


def _checked_name(name: str | None) -> str | None:
    if name is not None and (not isinstance(name, str) or not name):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ProgramError(f"{name!r} is not a name for a variable", place="name")
    return name


def _as_json(value: Mapping[str, Any]) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise ProgramError(f"the schema is not JSON: {error}", place="json_schema") from error
