"""What is known of a result as a dict in SGLang's form, for programs that read it so: `s.get_meta_info(name)`.

Owns the form. Log-probabilities are triples (log-probability, token id, text); a prompt's first token has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..runtime.messages import Output, TokenLogprob
    from .variable import Meta

    Spell = Callable[[Sequence[int]], Sequence[str]]


def meta_info(meta: Meta, request: str, spell: Spell | None) -> dict[str, Any]:
    """Of a gen (its first output) or a select. `spell` gives the texts of token ids; without it they are None."""
    info: dict[str, Any] = {
        "id": request,
        "finish_reason": {"type": meta.finish_reason},
        "prompt_tokens": meta.usage.prompt_tokens,
        "cached_tokens": meta.usage.cached_tokens,
        "completion_tokens": meta.usage.completion_tokens,
    }
    if meta.matched_stop is not None:
        info["finish_reason"]["matched"] = meta.matched_stop
    if meta.scores:
        info["normalized_prompt_logprobs"] = list(meta.scores.values())
    if meta.prompt_logprobs is not None:
        _add(info, "input", meta.prompt_logprobs, spell)
    if meta.logprobs is not None:
        _add(info, "output", meta.logprobs, spell)
    return info


def output_info(meta: Meta, output: Output, request: str, spell: Spell | None) -> dict[str, Any]:
    """Of one of several outputs."""
    info = meta_info(meta, request, spell)
    matched = {} if output.matched_stop is None else {"matched": output.matched_stop}
    info["finish_reason"] = {"type": output.finish_reason, **matched}
    info["completion_tokens"] = len(output.token_ids)
    if output.logprobs is not None:
        _add(info, "output", output.logprobs, spell)
    return info


def _add(
    info: dict[str, Any], side: str, logprobs: Sequence[TokenLogprob | None], spell: Spell | None
) -> None:
    known = [each for each in logprobs if each is not None]
    ids = sorted({i for each in known for i in (each.token_id, *(top for top, _ in each.top))})
    texts = dict(zip(ids, spell(ids), strict=True)) if spell is not None else {}
    info[f"{side}_token_logprobs"] = [
        (each.logprob, each.token_id, texts.get(each.token_id)) for each in known
    ]
    if any(each.top for each in known):
        info[f"{side}_top_logprobs"] = [
            [(value, token_id, texts.get(token_id)) for token_id, value in each.top]
            for each in known
        ]
