"""Errors of gateway and engine told in terms of the body: which of its fields is wrong.

    sampling    the engine's name of an argument -> the body's: `logprobs` of a chat is `top_logprobs`, `n` of a completion may be `best_of`
    constraint  a place in a schema -> the field that holds the schema, then the place: `response_format.json_schema.schema#/properties/a`
    prompt      no place, or ids -> `messages`, `prompt` or `prompt[2]`

Owns the naming only; what is wrong was found elsewhere.
"""

from __future__ import annotations

from ....errors import GrammarError, PromptError, RadixError, SamplingError
from .bodies import ChatBody, GenerationBody
from .constraints import ANSWER_PLACE, Constraint


def in_terms_of_body(
    error: RadixError,
    body: GenerationBody,
    constraint: Constraint | None = None,
    prompt_place: str = "",
) -> RadixError:
    """`error` with its place as `body` names it; the same object where nothing is to be renamed."""
    match error:
        case SamplingError():
            return _in_terms_of_sampling(error, body)
        case GrammarError():
            return _in_terms_of_constraint(error, constraint)
        case PromptError() if error.place in ("", "token_ids") and prompt_place:
            return type(error)(error.message, place=prompt_place, hint=error.hint)
        case _:
            return error


def _in_terms_of_sampling(error: SamplingError, body: GenerationBody) -> SamplingError:
    place = error.place
    if isinstance(body, ChatBody):
        if place == "max_tokens" and body.max_completion_tokens is not None:
            place = "max_completion_tokens"
        elif place == "logprobs":
            place = "top_logprobs"
    elif place == "n" and body.best_of is not None:
        place = "best_of"
    elif place == "prompt_logprobs":
        place = "logprobs"
    if place == error.place:
        return error
    message = error.message.replace(f"{error.place}=", f"{place}=", 1)
    return SamplingError(message, place=place, hint=error.hint)


def _in_terms_of_constraint(error: GrammarError, constraint: Constraint | None) -> GrammarError:
    """Errors of a tool's arguments name their place in the body by themselves; a line and column behind it are no part of a path."""
    if error.place.startswith("tools"):
        place, _, inside = error.place.partition(" ")
        if not inside:
            return error
        message = f"{error.message} ({inside})"
        return GrammarError(message, place=place, hint=error.hint, keyword=error.keyword)
    if constraint is None:
        return error
    place = error.place.removeprefix(ANSWER_PLACE)
    message = error.message
    if place[:1] not in ("", "#", "/"):  # a pattern's column is no path
        message, place = f"{message} ({place})", ""
    place = f"{constraint.field}{place}".removesuffix("#")
    return GrammarError(message, place=place, hint=error.hint, keyword=error.keyword)
