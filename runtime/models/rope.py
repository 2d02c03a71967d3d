"""Rotary frequencies of the scaling kinds that configurations name: default, linear, dynamic, llama3, yarn.

Owns the formulas. Knows nothing of files. Sources: linear, Chen et al. 2023 (position interpolation); yarn, Peng et al. 2023; llama3, the
rule published with Llama 3.1; dynamic: NTK-aware scaling, which equals the default up to the trained length and changes all earlier keys
beyond it. A cache of keys cannot follow that, so a model of kind dynamic runs up to its trained length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ...errors import ModelError
from ...kernels.ops import Rope
from .source import setting


def make_rope(
    parameters: Mapping[str, Any], head_dim: int, base: float, context_length: int
) -> Rope:
    """The Rope of a Hugging Face style dictionary (`rope_type` or `type`, `factor`, ...). ModelError for a kind that is not known."""
    kind = parameters.get("rope_type") or parameters.get("type") or "default"
    if kind in ("default", "dynamic", "none"):
        return Rope(_default(head_dim, base))
    if kind == "linear":
        return Rope(_default(head_dim, base) / setting(parameters, "factor", float))
    if kind == "llama3":
        return Rope(_llama3(parameters, _default(head_dim, base), context_length))
    if kind == "yarn":
        return _yarn(parameters, head_dim, base, context_length)
    raise ModelError(
        f"rotary embedding of kind {kind!r} is not supported",
        place="rope_scaling",
        hint="Known kinds: default, linear, dynamic, llama3, yarn",
    )


def _default(head_dim: int, base: float) -> Tensor:
    return 1.0 / (base ** (torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim))


def _llama3(parameters: Mapping[str, Any], frequencies: Tensor, context_length: int) -> Tensor:
    """Long wavelengths are divided by the factor, short ones stay, those between are blended."""
    factor = setting(parameters, "factor", float)
    low = setting(parameters, "low_freq_factor", float)
    high = setting(parameters, "high_freq_factor", float)
    trained = setting(parameters, "original_max_position_embeddings", float, context_length)
    wavelengths = 2 * math.pi / frequencies
    blend = ((trained / wavelengths - low) / (high - low)).clamp(0.0, 1.0)
    return (1 - blend) * frequencies / factor + blend * frequencies


def _yarn(parameters: Mapping[str, Any], head_dim: int, base: float, context_length: int) -> Rope:
    """Pairs that turn often over the trained length stay, those that turn rarely are interpolated, with a ramp between."""
    trained = setting(parameters, "original_max_position_embeddings", float, context_length)
    factor = setting(parameters, "factor", float, context_length / trained)
    fast = setting(parameters, "beta_fast", float, 32.0)
    slow = setting(parameters, "beta_slow", float, 1.0)

    def pair_turning(num_turns: float) -> float:
        return head_dim * math.log(trained / (num_turns * 2 * math.pi)) / (2 * math.log(base))

    first, last = pair_turning(fast), pair_turning(slow)
    if parameters.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, head_dim - 1)
    width = last - first if last != first else 0.001  # an empty ramp is a step
    ramp = ((torch.arange(head_dim // 2, dtype=torch.float32) - first) / width).clamp(0.0, 1.0)
    frequencies = _default(head_dim, base)
    return Rope(
        frequencies / factor * ramp + frequencies * (1 - ramp), _yarn_scale(parameters, factor)
    )


def _yarn_scale(parameters: Mapping[str, Any], factor: float) -> float:
    """What cos and sin are multiplied by, so that attention keeps its temperature over the longer context."""
    if parameters.get("attention_factor") is not None:
        return setting(parameters, "attention_factor", float)

    def magnitude(weight: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0

    weight = setting(parameters, "mscale", float, 0.0)
    weight_all = setting(parameters, "mscale_all_dim", float, 0.0)
    return magnitude(weight) / magnitude(weight_all) if weight and weight_all else magnitude(1.0)
