"""`gen`: continue the text by sampling, free or constrained; gen_int and gen_string.

Owns the Gen node and how outputs become values; constraints are `constraints.py`'s. Must not know branches' inner life.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ...errors import OutputError, ProgramError
from ..constraints import (
    check_choices,
    complete_text,
    only_constraint,
    schema_text,
    text_of,
    text_spec,
)
from ..ir import Node
from ..sampling import clean_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Unpack

    from ...grammar.spec import AfterReasoning, Gbnf, JsonSchema, Lark, Spec
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
    json_schema: str | Mapping[str, Any] | JsonSchema | None = None,
    schema: Any = None,
    grammar: str | Lark | Gbnf | AfterReasoning | None = None,
    **options: Unpack[SamplingOptions],
) -> Gen:
    """Continue the text by sampling, and keep the result in `s[name]` (a list if n > 1; the program goes on with the first).

    At most one constraint: `regex` (whole output, Python syntax), `choices` (exactly one of them; OutputError if cut), `json_schema` (JSON text, dict,
    or a `JsonSchema` of `radixlm.grammar.spec` with its options for order and white space; the value stays text), `schema` (a pydantic model, dataclass, TypedDict, Enum, Literal, int, list[...]; the value is of that type), or `grammar` (a
    context-free grammar in Lark's notation, or in GBNF if its rules are written `name ::= ...`; or a `Lark`, `Gbnf` or
    `AfterReasoning` of `radixlm.grammar.spec`).
    To pick a choice by likelihood instead of sampling, use `select`.

    Without a name it is called gen_0, gen_1, ... by its number on the branch. A name used twice holds the latest result. Options not
    given come from the run. Raises GrammarError, ProgramError, SamplingError.
    """
    options_of_constraint = {
        "regex": regex, "choices": choices, "json_schema": json_schema, "schema": schema,
        "grammar": grammar,
    }  # fmt: skip
    found = only_constraint(options_of_constraint, "a gen")
    constraint: Spec | None = None
    decode: Callable[[Output], object] = text_of
    if found is not None and found[0] == "schema":
        from ..schema import typed_schema

        typed = typed_schema(schema)
        constraint, decode = typed.spec, typed.decode
    elif found is not None:
        constraint = text_spec(*found)
        decode = partial(choice_of, check_choices(choices)) if choices is not None else text_of
    own = _own_options(max_tokens, options, options_of_constraint)
    return Gen(checked_name(name), own, constraint, decode)


def gen_int(
    name: str | None = None,
    max_tokens: int | None = None,
    *,
    minimum: int | None = None,
    maximum: int | None = None,
    **options: Unpack[SamplingOptions],
) -> Gen:
    """A whole number, read as int. Without bounds: up to 18 digits, perhaps negative."""
    _check_bounds(minimum=minimum, maximum=maximum)
    from ...grammar.spec import JsonSchema, Regex

    if minimum is None and maximum is None:
        spec: Spec = Regex(_INT_PATTERN)
    else:
        bounds = {"type": "integer", "minimum": minimum, "maximum": maximum}
        spec = JsonSchema(schema_text({k: v for k, v in bounds.items() if v is not None}))
    return _typed(name, max_tokens, options, spec, int)


def gen_string(
    name: str | None = None,
    max_tokens: int | None = None,
    *,
    max_length: int | None = None,
    **options: Unpack[SamplingOptions],
) -> Gen:
    """A string, written in the text as a JSON string (quoted, escaped), read as its content."""
    from ...grammar.spec import JsonSchema

    _check_bounds(max_length=max_length)
    shape: dict[str, Any] = {"type": "string"}
    if max_length is not None:
        shape["maxLength"] = max_length
    spec = JsonSchema(schema_text(shape))
    return _typed(name, max_tokens, options, spec, json.loads)


def choice_of(choices: tuple[str, ...], output: Output) -> object:
    """The value of an output that is to be one of `choices`."""
    return output.text if output.text in choices else complete_text(output)


def _typed(
    name: str | None,
    max_tokens: int | None,
    options: SamplingOptions,
    spec: Spec,
    parse: Callable[[str], object],
) -> Gen:
    def decode(output: Output) -> object:
        try:
            return parse(complete_text(output))
        except ValueError as error:
            raise OutputError(f"the output {output.text!r} cannot be read: {error}") from error

    return Gen(checked_name(name), _own_options(max_tokens, options), spec, decode)


def _check_bounds(**bounds: object) -> None:
    for name, value in bounds.items():
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise ProgramError(f"{name}={value!r:.80} is not a whole number", place=name)


def _own_options(
    max_tokens: int | None, options: SamplingOptions, others: Iterable[str] = ()
) -> dict[str, Any]:
    own = clean_options(cast("dict[str, Any]", options), others)
    return own if max_tokens is None else {**own, **clean_options({"max_tokens": max_tokens})}


def checked_name(name: str | None) -> str | None:
    """The name of a variable, or None. ProgramError for what is none."""
    if name is not None and (not isinstance(name, str) or not name):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ProgramError(f"{name!r} is not a name for a variable", place="name")
    return name
