"""Arguments that programs written for SGLang give to gen and run, in our terms.

Owns the translation and nothing else: a name here means what one or two of ours mean. Must not know gens, runs or requests.

    max_new_tokens            max_tokens
    return_logprob            logprobs (0 alternatives, or top_logprobs_num)
    top_logprobs_num          logprobs with so many alternatives; with logprob_start_len also prompt_logprobs
    logprob_start_len         prompt_logprobs from this position on; -1: none
    return_text_in_logprobs   nothing: `s.get_meta_info` always spells tokens where the backend can
    use_thread                nothing: no run needs a thread
    stop_regex                an option of its own: see `until_match`
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from ..errors import ProgramError, SamplingError
from .sampling import OPTION_NAMES, SamplingOptions, clean_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..grammar.spec import Regex


class ProgramOptions(SamplingOptions, total=False):
    """The sampling arguments of gen and run: our names, and SGLang's for the same."""

    stop_regex: str | Sequence[str]
    max_new_tokens: int
    return_logprob: bool
    logprob_start_len: int
    top_logprobs_num: int
    return_text_in_logprobs: bool
    use_thread: bool


PROGRAM_OPTION_NAMES = OPTION_NAMES | frozenset(ProgramOptions.__annotations__)
_FLAGS = ("return_logprob", "return_text_in_logprobs", "use_thread")
_NUMBERS = ("logprob_start_len", "top_logprobs_num")


def clean_program_options(options: Mapping[str, Any], others: Iterable[str] = ()) -> dict[str, Any]:
    """The options in our names, checked; `stop_regex`, if any, as one pattern. SamplingError, ProgramError name what is wrong."""
    rest = dict(options)
    stop_regex = rest.pop("stop_regex", None)
    if "max_new_tokens" in rest:
        number = rest.pop("max_new_tokens")
        if rest.setdefault("max_tokens", number) != number:
            raise SamplingError("max_tokens and max_new_tokens differ", place="max_new_tokens")
    rest.update(_logprobs(rest))
    clean = clean_options(rest, (*others, *ProgramOptions.__annotations__))
    if stop_regex:
        clean["stop_regex"] = _one_pattern(stop_regex)
    return clean


def until_match(pattern: str) -> Regex:
    """Any text up to and with the first match of `pattern`, or without a match.

    The engine runs it as an automaton, so no pattern takes more than linear time, and one that needs too many states is refused.
    """
    from ..grammar.spec import Regex

    return Regex(rf"(?!(?s:.*)(?:{pattern})(?s:.))(?s:.*)")


def _logprobs(rest: dict[str, Any]) -> dict[str, Any]:
    """Takes SGLang's names out of `rest`; what they mean."""
    for name in (*_FLAGS, *_NUMBERS):
        value = rest.get(name)
        wanted = bool if name in _FLAGS else int
        if value is not None and (not isinstance(value, wanted) or type(value) is not wanted):
            kind = "True or False" if wanted is bool else "a whole number"
            raise SamplingError(f"{name}={value!r} is not {kind}", place=name)
    values = {name: rest.pop(name, None) for name in (*_FLAGS, *_NUMBERS)}
    num_top, first = values["top_logprobs_num"] or 0, values["logprob_start_len"]
    if not values["return_logprob"]:
        return {}
    asked = {"logprobs": num_top}
    if first is not None and first >= 0:
        asked.update(prompt_logprobs=num_top, prompt_logprobs_start=first)
    return {name: value for name, value in asked.items() if rest.get(name) is None}


def _one_pattern(stop_regex: Any) -> str:
    patterns = [stop_regex]
    if isinstance(stop_regex, Iterable) and not isinstance(stop_regex, str):
        patterns = [*cast("Iterable[Any]", stop_regex)]
    for index, pattern in enumerate(patterns):
        if not isinstance(pattern, str) or not pattern:
            place = f"stop_regex[{index}]"
            raise ProgramError(f"stop_regex holds {pattern!r:.80}, not a pattern", place=place)
    return "|".join(f"(?:{pattern})" for pattern in patterns) if len(patterns) > 1 else patterns[0]
