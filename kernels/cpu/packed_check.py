"""Whether packed weights from a file are what their numbers say: every matrix of the shape's size, in a block that holds all of it.

The native kernels read by these numbers without looking, so nothing of a file reaches them before it was checked here. Pure; numpy only.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..step import DecoderShape
from .library import KINDS
from .packed import PackedModel, Tree

_BLOCK = 16  # output rows
_GROUP = 32  # inputs that share a scale
_CODE_BYTES = {
    "f32": _GROUP * _BLOCK * 4,
    "bf16": _GROUP * _BLOCK * 2,
    "f16": _GROUP * _BLOCK * 2,
    "q4": 256,
    "q8": 512,
    "q4 halves": 256,
    "q8 halves": 512,
}
"""Of one group of one block of rows."""


def is_sound(model: PackedModel) -> bool:
    """True when no field of `model` lets a kernel read outside its blocks. KeyError, TypeError, IndexError for fields that are not there."""
    shape, sizes = model.shape, [block.size for block in model.blocks]
    heads = shape.num_heads * shape.head_dim
    qkv = heads + 2 * shape.num_kv_heads * shape.head_dim
    hidden, inner = shape.hidden_size, shape.intermediate_size
    weights = model.weights
    numbers = weights["shape"]
    angles = shape.context_length * (numbers["num_rotary"] // 2)
    return (
        _agree(shape, numbers)
        and len(model.layers) == shape.num_layers
        and _holds(sizes, weights["final_norm"], 4 * hidden)
        and _holds(sizes, weights["cosines"], 4 * angles)
        and _holds(sizes, weights["sines"], 4 * angles)
        and all(_is_linear(sizes, weights[n], shape.vocab_size, hidden) for n in ("embedding", "head"))
        and all(
            _holds(sizes, layer["attention_norm"], 4 * hidden)
            and _holds(sizes, layer["mlp_norm"], 4 * hidden)
            and _is_linear(sizes, layer["qkv"], qkv, hidden)
            and _is_linear(sizes, layer["attention_out"], hidden, heads)
            and _is_linear(sizes, layer["gate_up"], 2 * inner, hidden)
            and _is_linear(sizes, layer["down"], hidden, inner)
            for layer in model.layers
        )
    )  # fmt: skip


def _agree(shape: DecoderShape, numbers: Tree) -> bool:
    """The shape that Python knows is the one that the kernels read."""
    pairs = (
        ("num_layers", shape.num_layers), ("hidden", shape.hidden_size), ("num_heads", shape.num_heads),
        ("num_kv_heads", shape.num_kv_heads), ("head_dim", shape.head_dim), ("inner", shape.intermediate_size),
        ("vocab", shape.vocab_size), ("context", shape.context_length),
    )  # fmt: skip
    is_same = all(numbers[name] == value and value > 0 for name, value in pairs)
    rotary = numbers["num_rotary"]
    return is_same and rotary % 2 == 0 and 0 <= rotary <= shape.head_dim


def _is_linear(sizes: Sequence[int], tree: Tree, num_out: int, num_in: int) -> bool:
    names = {number: name for name, number in KINDS.items()}
    kind = names.get(tree["kind"])
    if kind is None or (tree["num_out"], tree["num_in"]) != (num_out, num_in):
        return False
    rows = -(-num_out // _BLOCK)
    bias_fits = "bias" not in tree or _holds(sizes, tree["bias"], 4 * num_out)
    if kind in ("f32", "bf16", "f16"):
        num_bytes = rows * _CODE_BYTES[kind] * num_in // _GROUP
        return bias_fits and _holds(sizes, tree["codes"], num_bytes)
    groups = rows * (num_in // _GROUP)
    scale_bytes = 2 * _BLOCK * groups
    return (
        bias_fits
        and num_in % _GROUP == 0
        and _holds(sizes, tree["codes"], groups * _CODE_BYTES[kind])
        and _holds(sizes, tree["scales"], scale_bytes)
        and (
            _holds(sizes, tree["minimums"], scale_bytes)
            if kind.startswith("q4") or "minimums" in tree
            else True
        )
    )


def _holds(sizes: Sequence[int], number: int, num_bytes: int) -> bool:
    return 0 <= number < len(sizes) and sizes[number] >= num_bytes
