"""Why an output ended, in OpenAI's words.

Owns one correction: text in which a model may call tools is complete under its grammar at every place, so the engine calls it stopped also
where the token limit cut it. Here that is "length" again. Knows no shapes of answers.
"""

from __future__ import annotations

from dataclasses import dataclass

from ... import messages as m


@dataclass(frozen=True, slots=True)
class Limits:
    """What may have cut an output. `max_tokens` None: the context alone. `is_open_ended`: may it be free text among tools?"""

    is_open_ended: bool
    max_tokens: int | None
    context_length: int
    eos_token_ids: tuple[int, ...]


def was_cut(output: m.Output, num_prompt_tokens: int, limits: Limits) -> bool:
    """Did a limit end the output, rather than the model, a stop or its grammar?"""
    if output.finish_reason == "length":
        return True
    ids = output.token_ids
    if not limits.is_open_ended or output.matched_stop is not None:
        return False
    if ids and ids[-1] in limits.eos_token_ids:
        return False
    room = limits.context_length - num_prompt_tokens
    limit = room if limits.max_tokens is None else min(limits.max_tokens, room)
    return len(ids) >= limit


def finish_reason(*, is_cut: bool, has_calls: bool) -> str:
    """length, tool_calls or stop."""
    if is_cut:
        return "length"
    return "tool_calls" if has_calls else "stop"
