"""From a model's weights as torch tensors to a `PackedModel`. The only torch of the native path, needed once per model file.

Owns what each struct of a model holds; `packing.py` packs single matrices. Layers are read one at a time.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..ops import DecoderWeights, LayerWeights, Linear
from .library import LayerStruct, LinearStruct, ShapeStruct, WeightsStruct
from .packed import Block, PackedModel, Tree, tree_of
from .packing import pack


def pack_model(weights: DecoderWeights, in_halves: bool) -> PackedModel:
    """All of a model, packed for instruction sets of which `library.reads_halves` says so."""
    return _Packer(in_halves).pack(weights)


class _Packer:
    def __init__(self, in_halves: bool) -> None:
        self._in_halves = in_halves
        self._blocks: list[Block] = []
        self._numbers: dict[int, int] = {}  # address -> place among the blocks

    def pack(self, weights: DecoderWeights) -> PackedModel:
        """See pack_model."""
        shape = weights.shape
        layers = [self._layer(layer) for layer in weights.layers]
        head = self._linear(weights.head)
        embedding = (
            head
            if weights.embedding is weights.head.weight
            else self._linear(Linear(weights.embedding))
        )
        rotary = weights.rope.inverse_frequencies
        angles = torch.arange(shape.context_length).float()[:, None] * rotary.float()
        struct = WeightsStruct(
            shape=ShapeStruct(
                num_layers=shape.num_layers,
                hidden=shape.hidden_size,
                num_heads=shape.num_heads,
                num_kv_heads=shape.num_kv_heads,
                head_dim=shape.head_dim,
                inner=shape.intermediate_size,
                vocab=shape.vocab_size,
                context=shape.context_length,
                num_rotary=2 * len(rotary),
                epsilon=shape.rms_epsilon,
            ),
            embedding=embedding,
            head=head,
            final_norm=self._keep(weights.final_norm.float()),
            cosines=self._keep(angles.cos() * weights.rope.scale),
            sines=self._keep(angles.sin() * weights.rope.scale),
        )
        return PackedModel(shape, self._tree(struct), layers, self._blocks)

    def _layer(self, layer: LayerWeights) -> Tree:
        return self._tree(
            LayerStruct(
                attention_norm=self._keep(layer.attention_norm.float()),
                mlp_norm=self._keep(layer.mlp_norm.float()),
                qkv=self._linear(layer.qkv),
                attention_out=self._linear(layer.attention_out),
                gate_up=self._linear(layer.gate_up),
                down=self._linear(layer.down),
            )
        )

    def _tree(self, struct: LayerStruct | WeightsStruct) -> Tree:
        return tree_of(struct, self._numbers.__getitem__)

    def _linear(self, linear: Linear) -> LinearStruct:
        packed = pack(linear, self._in_halves)
        for memory in packed.memory:
            if isinstance(memory, Tensor):
                self._keep(memory)
        return packed.struct

    def _keep(self, values: Tensor) -> int:
        """The address of the values, whose memory becomes a block."""
        block: Block = values.contiguous().reshape(-1).view(torch.uint8).numpy()
        address = block.ctypes.data
        if address not in self._numbers:
            self._numbers[address] = len(self._blocks)
            self._blocks.append(block)
        return address
