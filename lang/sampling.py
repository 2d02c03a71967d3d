"""Sampling arguments of gen and run: their names, their defaults, and their way into SamplingParams.

Owns the option names and the merge order (engine < run < gen). Must not know branches or requests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypedDict, cast

from ..errors import SamplingError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..runtime.messages import SamplingParams


class SamplingOptions(TypedDict, total=False):
    """The sampling arguments beside max_tokens, named and meant as in `SamplingParams`. What is not given comes from the run."""

    min_tokens: int
    n: int
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    typical_p: float
    repetition_penalty: float
    frequency_penalty: float
    presence_penalty: float
    logit_bias: Mapping[int, float]
    stop: str | Sequence[str]
    stop_token_ids: Sequence[int]
    include_stop: bool
    ignore_eos: bool
    seed: int | None
    logprobs: int | None
    prompt_logprobs: int | None
    prompt_logprobs_start: int
    jump_forward: bool


OPTION_NAMES = frozenset({"max_tokens", *SamplingOptions.__annotations__})
_FLAGS = frozenset({"include_stop", "ignore_eos", "jump_forward"})
_LISTS = frozenset({"stop", "stop_token_ids"})
_FLOATS = frozenset(
    name for name, kind in SamplingOptions.__annotations__.items() if "float" in str(kind)
) - {"logit_bias"}


def clean_options(options: Mapping[str, Any], others: Iterable[str] = ()) -> dict[str, Any]:
    """The options with lists as tuples. SamplingError names an unknown option or a value of the wrong type.

    `others`: what else the caller takes, for the hint.
    """
    clean: dict[str, Any] = {}
    for name, value in options.items():
        if name not in OPTION_NAMES:
            near = get_close_matches(name, {*OPTION_NAMES, *others}, n=1)
            hint = f"Did you mean {near[0]}?" if near else ""
            raise SamplingError(f"unknown option {name!r}", place=name, hint=hint)
        if name in _LISTS:
            value = _as_tuple(name, value)
        elif name == "logit_bias":
            value = _as_bias(value)
        elif value is not None:
            _check_type(name, value)
        clean[name] = value
    return clean


def build_params(
    defaults: Mapping[str, Any], own: Mapping[str, Any], seed: int | None
) -> SamplingParams:
    """SamplingParams of one gen: the run's `defaults`, then its `own` options; `seed` if neither names one. Values are checked."""
    from ..runtime.messages import SamplingParams

    merged = {**defaults, **own}
    if merged.get("seed") is None:
        merged["seed"] = seed
    params = SamplingParams(**merged)
    params.check()
    return params


def derive_seed(seed: int, path: Sequence[int], ordinal: int) -> int:
    """A seed for gen number `ordinal` of the branch at `path` of a run with `seed`: 0 .. 2**63-1, the same on every machine.

    `path` holds (fork number, child number) pairs from the root, so forks of one run draw differently.
    """
    key = ",".join(map(str, (seed, *path, "gen", ordinal))).encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big") >> 1


def _as_tuple(name: str, value: Any) -> tuple[Any, ...]:
    wanted = str if name == "stop" else int
    if value is None:
        return ()
    items: tuple[Any, ...] = (value,)
    if isinstance(value, Iterable) and not isinstance(value, str):
        items = tuple(cast("Iterable[Any]", value))
    for item in items:
        if not isinstance(item, wanted) or isinstance(item, bool):
            kind = "a text" if wanted is str else "a token id"
            raise SamplingError(f"{name} holds {item!r:.80}, not {kind}", place=name)
    return items


def _as_bias(value: Any) -> dict[int, float]:
    try:
        return {int(token_id): float(bias) for token_id, bias in dict(value or {}).items()}
    except (TypeError, ValueError) as error:
        raise SamplingError(
            f"logit_bias={value!r:.80} is not {{token id: number}}", place="logit_bias"
        ) from error


def _check_type(name: str, value: Any) -> None:
    if name in _FLAGS:
        fits, wanted = isinstance(value, bool), "True or False"
    elif name in _FLOATS:
        fits, wanted = isinstance(value, int | float) and not isinstance(value, bool), "a number"
    else:
        fits, wanted = isinstance(value, int) and not isinstance(value, bool), "a whole number"
    if not fits:
        raise SamplingError(f"{name}={value!r} is not {wanted}", place=name)
