"""AWQ and GPTQ checkpoints for tests: packers written word by word from the formats' descriptions, and tiny Llamas stored so.

Each model comes with its twin: the same weights, dequantized, as a plain folder that transformers and every loader read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tiny_llamas import TinyLlama, edit_config, tiny_llama

AWQ_COLUMNS = (0, 2, 4, 6, 1, 3, 5, 7)  # which of eight outputs lies at each nibble, lowest first


@dataclass(frozen=True)
class Recipe:
    """How a checkpoint is quantized and packed."""

    method: str  # awq or gptq
    group_size: int = 32
    bits: int = 4
    is_symmetric: bool = False
    checkpoint_format: str = "gptq"
    is_shuffled: bool = False  # desc_act: inputs of a group are no neighbours
    has_index: bool = True

    def config(self) -> dict:
        """quantization_config."""
        shared = {"quant_method": self.method, "bits": self.bits, "group_size": self.group_size}
        if self.method == "awq":
            return shared | {"zero_point": True, "version": "gemm", "modules_to_not_convert": None}
        return shared | {
            "sym": self.is_symmetric,
            "desc_act": self.is_shuffled,
            "checkpoint_format": self.checkpoint_format,
        }


def quantize(weight: np.ndarray, recipe: Recipe, seed: int = 0) -> tuple[dict, np.ndarray]:
    """[out, in] -> the tensors of a checkpoint, and the exact values float32 [out, in] that they stand for."""
    num_out, num_in = weight.shape
    most = 2**recipe.bits - 1
    size = num_in if recipe.group_size == -1 else recipe.group_size
    group_of = np.arange(num_in) // size
    if recipe.is_shuffled:
        group_of = np.random.default_rng(seed).permutation(group_of)
    codes = np.zeros((num_in, num_out), np.int64)
    num_groups = group_of.max() + 1
    scales = np.zeros((num_groups, num_out), np.float16)
    zeros = np.zeros((num_groups, num_out), np.int64)
    for group in range(num_groups):
        values = weight[:, group_of == group].T
        low, high = np.minimum(values.min(0), 0), np.maximum(values.max(0), 0)
        if recipe.is_symmetric:
            high = np.abs(values).max(0)
            low = -high
        scale = np.maximum((high - low) / most, 1e-5).astype(np.float16)
        zero = np.full(num_out, (most + 1) // 2)
        if not recipe.is_symmetric:
            zero = np.clip(np.round(-low / scale.astype(np.float32)), 0, most).astype(np.int64)
        scaled = np.round(values / scale.astype(np.float32)) + zero
        codes[group_of == group] = np.clip(scaled, 0, most).astype(np.int64)
        scales[group], zeros[group] = scale, zero
    exact = (codes - zeros[group_of]) * scales[group_of].astype(np.float32)
    parts = {"scales": torch.from_numpy(scales)}
    if recipe.method == "awq":
        parts["qweight"] = _words(codes, 4, AWQ_COLUMNS)
        parts["qzeros"] = _words(zeros, 4, AWQ_COLUMNS)
    else:
        order = tuple(range(32 // recipe.bits))
        stored = zeros - 1 if recipe.checkpoint_format == "gptq" else zeros
        parts["qweight"] = _words(codes.T, recipe.bits, order).T.contiguous()
        parts["qzeros"] = _words(stored & most, recipe.bits, order)
        if recipe.has_index:
            parts["g_idx"] = torch.from_numpy(group_of.astype(np.int32))
    return parts, exact.T.astype(np.float32)


def _words(codes: np.ndarray, bits: int, order: tuple[int, ...]) -> torch.Tensor:
    """[rows, n] -> int32 [rows, n / len(order)]; nibble i of a word is the code at order[i]."""
    rows, count = codes.shape
    words = np.zeros((rows, count // len(order)), np.uint32)
    for word in range(words.shape[1]):
        for place, column in enumerate(order):
            code = codes[:, word * len(order) + column].astype(np.uint32)
            words[:, word] |= code << np.uint32(bits * place)
    return torch.from_numpy(words.view(np.int32))


def packed_llama(folder: Path, recipe: Recipe, **overrides: object) -> tuple[Path, TinyLlama]:
    """The checkpoint's folder, and its dequantized twin (a plain Llama with transformers' instance of it)."""
    shape = {"hidden_size": 64, "intermediate_size": 128} | overrides
    twin = tiny_llama(folder / "twin", **shape)  # type: ignore[arg-type]
    packed = folder / "packed"
    packed.mkdir()
    config = json.loads((twin.files.path / "config.json").read_text())
    (packed / "config.json").write_text(json.dumps(config))
    edit_config(packed, quantization_config=recipe.config())
    tensors = load_file(twin.files.path / "model.safetensors")
    stored: dict[str, torch.Tensor] = {}
    state = twin.oracle.state_dict()
    for seed, (name, values) in enumerate(tensors.items()):
        if not name.endswith("_proj.weight"):
            stored[name] = values
            continue
        parts, exact = quantize(values.numpy(), recipe, seed)
        base = name.removesuffix(".weight")
        stored |= {f"{base}.{part}": tensor for part, tensor in parts.items()}
        tensors[name] = torch.from_numpy(np.ascontiguousarray(exact))
        state[name].copy_(tensors[name])
    save_file(stored, packed / "model.safetensors")
    save_file(tensors, twin.files.path / "model.safetensors", {"format": "pt"})
    return packed, twin
