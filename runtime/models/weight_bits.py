"""A model's matrices in no more bits than asked: what `--quantization int8` and `int4` do to weights as they are loaded.

Owns which matrices are rounded. Embedding and head keep 8 bits in any case: every token's value passes them, and 4 bits there cost more
of the model's quality than they save of its memory. What a file stores in as few bits stays as it is. Knows nothing of files or families.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ...kernels.ops import DecoderWeights, LayerWeights, Linear, QuantizedWeight
from .round_weights import Rounding, by_rows, to_4_bits, to_8_bits

Weight = Tensor | QuantizedWeight


def at_most(weights: DecoderWeights, quantization: str) -> DecoderWeights:
    """`weights` rounded as `quantization` says ("int8", "int4"; other values change nothing). Layers are rounded when they are read."""
    if quantization not in ("int8", "int4"):
        return weights
    rounding = to_4_bits if quantization == "int4" else to_8_bits
    head = weights.head
    rounded = replace(head, weight=_rounded(head.weight, to_8_bits))
    is_tied = weights.embedding is head.weight
    embedding = rounded.weight if is_tied else _rounded(weights.embedding, to_8_bits)
    layers = _layers(weights.layers, rounding)
    return replace(weights, embedding=embedding, head=rounded, layers=layers)


def _layers(layers: Iterable[LayerWeights], rounding: Rounding) -> Iterator[LayerWeights]:
    def linear(old: Linear) -> Linear:
        return replace(old, weight=_rounded(old.weight, rounding))

    for layer in layers:
        yield replace(
            layer,
            qkv=linear(layer.qkv),
            attention_out=linear(layer.attention_out),
            gate_up=linear(layer.gate_up),
            down=linear(layer.down),
        )


def _rounded(weight: Weight, rounding: Rounding) -> Weight:
    """As it is where it has as few bits, or where its rows are no whole groups."""
    if isinstance(weight, QuantizedWeight):
        if rounding is to_8_bits or weight.codes.dtype == torch.uint8:
            return weight
        weight = weight.to_floats()
    found = by_rows(weight, rounding)
    return weight if found is None else found
