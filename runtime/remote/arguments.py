"""Sampling arguments as fields of a body: under the server's names, or refused by name before anything is sent.

Owns the rule: an argument at its default says nothing and is not sent; one that the server does not know is a SamplingError whose place is
its name. Knows no server; `known` tells what one understands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...errors import SamplingError
from .. import messages as m

_DEFAULTS = m.SamplingParams()
# what an adapter decides itself, and what only our own engine could do differently with equal results
_HANDLED = frozenset({"max_tokens", "n", "stop", "include_stop", "temperature", "jump_forward"})
_HINTS = {
    "seed": "Results cannot be repeated there",
    "logprobs": "radixlm.RuntimeEndpoint and vLLM tell them by token id",
    "prompt_logprobs": "radixlm.RuntimeEndpoint tells them",
}


def fields_of(
    sampling: m.SamplingParams, known: Mapping[str, str], server: str, handled: Iterable[str] = ()
) -> dict[str, Any]:
    """The arguments that are given, under the names of `known`. SamplingError for one that is neither known nor `handled`."""
    fields: dict[str, Any] = {}
    done = _HANDLED | set(handled)
    for name in m.SamplingParams.__struct_fields__:
        value = getattr(sampling, name)
        if name in done or value == getattr(_DEFAULTS, name):
            continue
        if name not in known:
            if name == "prompt_logprobs_start":
                continue  # of prompt_logprobs, which is refused by its own name
            raise SamplingError(
                f"{server} does not take {name}", place=name, hint=_HINTS.get(name, "")
            )
        fields[known[name]] = _plain(value)
    return fields


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, dict):
        return {str(key): item for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value
