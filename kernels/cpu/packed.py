"""A model's packed weights without torch: the structs of `src/abi.h` as trees of plain numbers, and the memory that they point into.

Owns the way from ctypes structs to trees (which a file can hold) and back. A pointer becomes the number of a block of memory; null
pointers, and what belongs to one process (the pool, the layers' own array), are left out. Knows no kind of weight and no field by name,
so a new field of a struct needs nothing here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import POINTER, Structure, c_void_p
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..step import DecoderShape
from .library import LayerStruct, WeightsStruct

Tree = dict[str, Any]
Block = npt.NDArray[np.uint8]
S = TypeVar("S", bound=Structure)


@dataclass(frozen=True, slots=True)
class PackedModel:
    """Weights ready to be bound: trees of `WeightsStruct` and of each `LayerStruct`, over blocks of memory."""

    shape: DecoderShape
    weights: Tree
    layers: Sequence[Tree]
    blocks: Sequence[Block]  # each at an address that is a multiple of 64

    def bind(self) -> tuple[WeightsStruct, Any]:
        """The structs, and the array of layers that the first points into; valid while `blocks` live."""
        addresses = [block.ctypes.data for block in self.blocks]
        layers = (LayerStruct * len(self.layers))(
            *(_struct(LayerStruct, tree, addresses) for tree in self.layers)
        )
        weights = _struct(WeightsStruct, self.weights, addresses)
        weights.layers = ctypes.cast(layers, POINTER(LayerStruct))
        return weights, layers

    def header(self) -> Tree:
        """All but the blocks, as JSON can hold it."""
        shape = {field.name: getattr(self.shape, field.name) for field in fields(self.shape)}
        return {"shape": shape, "weights": self.weights, "layers": list(self.layers)}

    @classmethod
    def from_header(cls, header: Tree, blocks: Sequence[Block]) -> PackedModel:
        """What `header` described, unchecked (`packed_check.is_sound` does that)."""
        return cls(DecoderShape(**header["shape"]), header["weights"], header["layers"], blocks)


def tree_of(struct: Structure, block_of: Callable[[int], int]) -> Tree:
    """The struct's fields; `block_of` numbers the memory at an address."""
    tree: Tree = {}
    for name, kind in _fields(struct):
        value = getattr(struct, name)
        if kind is c_void_p:
            if value:
                tree[name] = block_of(value)
        elif issubclass(kind, Structure):
            tree[name] = tree_of(value, block_of)
        elif isinstance(value, int | float):
            tree[name] = value
    return tree


def _struct(kind: type[S], tree: Tree, addresses: Sequence[int]) -> S:
    struct = kind()
    for name, part in _fields(struct):
        if name not in tree:
            continue
        value = tree[name]
        if part is c_void_p:
            value = addresses[value]
        elif issubclass(part, Structure):
            value = _struct(part, value, addresses)
        setattr(struct, name, value)
    return struct


def _fields(struct: Structure) -> list[tuple[str, Any]]:
    return [(field[0], field[1]) for field in struct._fields_]
