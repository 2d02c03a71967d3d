"""`gen`: continue the text by sampling, free or constrained.

Owns the Gen node and what its arguments mean together; constraints are `constraints.py`'s, numbers and strings `typed_gen.py`'s. Must not
know branches' inner life.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ...errors import ProgramError
from ..constraints import check_choices, complete_text, only_constraint, text_of, text_spec
from ..ir import Node
from ..sglang_names import clean_program_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Unpack

    from ...grammar.spec import AfterReasoning, Gbnf, JsonSchema, Lark, Spec
    from ...runtime.messages import Output
    from ..beside import Beside
    from ..constraints import ValueKind
    from ..ir import BranchOps
    from ..reasking import Check, ReaskPrompt
    from ..sglang_names import ProgramOptions
    from ..tools.toolbox import Answer, ToolChoice
    from .select import ChoicesMethod, Select

    Decode = Callable[[Output], object]


@dataclass(frozen=True)
class Gen(Node):
    """Sampled text. `options` are its own sampling arguments; `decode` makes a value of an output; `beside` says how it is asked beside the branch, if it is.

    `value` names what `decode` does, so that it can be written down; None if no name says it.
    """

    name: str | None
    options: Mapping[str, Any]
    constraint: Spec | None
    decode: Callable[[Output], object] = field(repr=False)
    beside: Callable[[], Beside] | None = field(default=None, repr=False)
    value: ValueKind | None = None

    def submit(self, branch: BranchOps) -> None:
        """Ask the branch to generate."""
        beside = None if self.beside is None else self.beside()
        branch.generate(self.name, self.options, self.constraint, self.decode, beside)


def gen(
    name: str | None = None,
    max_tokens: int | None = None,
    *,
    regex: str | None = None,
    choices: Sequence[str] | None = None,
    json_schema: str | Mapping[str, Any] | JsonSchema | None = None,
    schema: Any = None,
    grammar: str | Lark | Gbnf | AfterReasoning | None = None,
    dtype: type | str | None = None,
    tools: Sequence[Any] | None = None,
    tool_choice: ToolChoice = "auto",
    parallel_tool_calls: bool = True,
    max_reasks: int | None = None,
    check: Check | None = None,
    reask_prompt: ReaskPrompt | None = None,
    choices_method: ChoicesMethod | None = None,
    **options: Unpack[ProgramOptions],
) -> Gen:
    """Continue the text by sampling, and keep the result in `s[name]` (a list if n > 1; the program goes on with the first).

    At most one constraint: `regex` (whole output, Python syntax), `choices` (exactly one of them; OutputError if cut), `json_schema` (JSON text, dict,
    or a `JsonSchema` of `radixlm.grammar.spec`; the value stays text), `schema` (a pydantic model, dataclass, TypedDict, Enum, Literal, int,
    list[...]; the value is of that type), `grammar` (a context-free grammar in Lark's notation, or in GBNF if its rules are written
    `name ::= ...`; or a `Lark`, `Gbnf` or `AfterReasoning` of `radixlm.grammar.spec`), `dtype` (int, float, bool, str), or `stop_regex`
    (free text that ends with the first match, which is kept).
    To pick a choice by likelihood instead of sampling, use `select`, or give a `choices_method`.

    With `tools`, Python functions with annotations, the output may call them and the value is a `ToolReply`: `for call in s["x"]: call()`.
    `tool_choice` is "auto", "required", "none" or one of the functions; `parallel_tool_calls=False` allows one call. A constraint then
    holds for an answer without calls. `lang.tools.describe_tools(tools)` tells the model of them.

    With `max_reasks` or `check` a refused value is asked for again, at most `max_reasks` times, with the error in the prompt: see
    `reasking`. Such a gen takes its value as soon as the program waits for something, and is not streamed piece by piece.

    Without a name it is called gen_0, gen_1, ... by its number on the branch. A name used twice holds the latest result. Options not
    given come from the run. Raises GrammarError, ProgramError, SamplingError.
    """
    asked = dict(locals())
    options_of_gen = asked.pop("options")
    own = own_options(max_tokens, options_of_gen, asked)
    constraint, decode, value = _constraint(asked, own)
    if choices_method is not None:
        return cast("Gen", _select(asked, own))
    if tools is not None:
        constraint, decode = _with_tools(
            tools, tool_choice, parallel_tool_calls, constraint, decode
        )
        value = None
    beside: Callable[[], Beside] | None = None
    if max_reasks is not None or check is not None:
        from ..reasking import Reasking, default_prompt

        beside = Reasking(max_reasks or 0, check, reask_prompt or default_prompt, decode)
    return Gen(checked_name(name), own, constraint, decode, beside, value)


def _constraint(
    asked: Mapping[str, Any], own: Mapping[str, Any]
) -> tuple[Spec | None, Decode, ValueKind]:
    """The spec of a gen's one constraint, and the way from an output to its value, with its name."""
    found = only_constraint(asked, "a gen")
    others = [
        *([found[0]] if found else ()),
        *(["dtype"] if asked["dtype"] is not None else ()),
        *(["stop_regex"] if "stop_regex" in own else ()),
        *(["tools"] if "stop_regex" in own and asked["tools"] is not None else ()),
    ]
    if len(others) > 1:
        message = f"a gen takes one constraint, not {' and '.join(others)}"
        raise ProgramError(message, place=others[1])
    if asked["dtype"] is not None:
        from .typed_gen import plain_type

        return plain_type(asked["dtype"])
    if found is None:
        return None, text_of, "text"
    if found[0] == "schema":
        from ..schema import typed_schema

        typed = typed_schema(found[1])
        return typed.spec, typed.decode, "json"
    spec = text_spec(*found)
    if found[0] == "choices":
        return spec, partial(choice_of, check_choices(found[1])), "choice"
    return spec, text_of, "text"


def _select(asked: Mapping[str, Any], own: Mapping[str, Any]) -> Select:
    """`gen(choices=, choices_method=)` is a select."""
    from .select import select

    if asked["choices"] is None:
        raise ProgramError("choices_method needs choices", place="choices_method")
    wrong = [*own.keys() - {"temperature"}]
    wrong += [each for each in ("tools", "max_reasks", "check") if asked[each] is not None]
    if wrong:
        raise ProgramError(
            f"a choice by likelihood takes no {wrong[0]}",
            place=wrong[0],
            hint="Leave choices_method out to have the choice sampled",
        )
    temperature = own.get("temperature", 0.0)
    return select(asked["name"], asked["choices"], temperature, asked["choices_method"])


def _with_tools(
    tools: Sequence[Any],
    tool_choice: ToolChoice,
    is_parallel: bool,
    answer: Spec | None,
    decode: Decode,
) -> tuple[Spec, Decode]:
    """The constraint of an output that may call tools or be an answer, and its value."""
    from ...grammar.spec import AfterReasoning
    from ..tools.toolbox import Toolbox

    if isinstance(answer, AfterReasoning):
        raise ProgramError(
            "tools= and a grammar for a text after reasoning do not go together", place="tools"
        )
    toolbox = Toolbox(tools)
    spec = toolbox.constraint(tool_choice, parallel=is_parallel, answer=cast("Answer", answer))
    return spec, partial(toolbox.decode, answer=decode)


def choice_of(choices: tuple[str, ...], output: Output) -> object:
    """The value of an output that is to be one of `choices`."""
    return output.text if output.text in choices else complete_text(output)


def own_options(
    max_tokens: int | None, options: ProgramOptions, others: Iterable[str] = ()
) -> dict[str, Any]:
    """The sampling arguments of one gen, checked. SamplingError for what is none, with the nearest name of these and `others`."""
    given = cast("dict[str, Any]", options)
    named = given if max_tokens is None else {**given, "max_tokens": max_tokens}
    return clean_program_options(named, others)


def checked_name(name: str | None) -> str | None:
    """The name of a variable, or None. ProgramError for what is none."""
    if name is not None and (not isinstance(name, str) or not name):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ProgramError(f"{name!r} is not a name for a variable", place="name")
    return name
