"""GGUF blocks for tests: random ones of every type, and plain encoders of the K-quants, which the `gguf` library only reads.

The encoders are written from the formats' layout, independently of the reader under test: they lay bit on bit where it unpacks whole arrays.
"""

from __future__ import annotations

import gguf
import numpy as np

BLOCK_BYTES = {kind.name: size for kind, (_, size) in gguf.GGML_QUANT_SIZES.items()}
_HALVES = {  # where float16 numbers lie in a block
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "IQ4_NL": (0,), "Q2_K": (80, 82), "Q3_K": (108,),
    "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "IQ4_XS": (0,),
}  # fmt: skip


def random_blocks(
    type_name: str, num_blocks: int, seed: int = 0, spread: float = 0.01
) -> np.ndarray:
    """uint8 [num_blocks, bytes]: any codes and scales of groups, the float16 numbers positive and near `spread`."""
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, 256, (num_blocks, BLOCK_BYTES[type_name]), dtype=np.uint8)
    for at in _HALVES[type_name]:
        numbers = (spread * rng.uniform(0.3, 1, (num_blocks, 1))).astype(np.float16)
        blocks[:, at : at + 2] = numbers.view(np.uint8)
    return blocks


def encode(values: np.ndarray, type_name: str) -> np.ndarray:
    """float32 [rows, n] as blocks uint8 [rows, bytes of a row]: rounded to nearest, without any search for better scales."""
    encoders = {"Q4_K": _q45_k, "Q5_K": _q45_k, "Q6_K": _q6_k}
    if type_name not in encoders:
        return gguf.quantize(values, gguf.GGMLQuantizationType[type_name])
    blocks = values.reshape(-1, 256)
    encoded = [encoders[type_name](block, type_name) for block in blocks]
    return np.array(encoded, np.uint8).reshape(len(values), -1)


def _half(value: float) -> list[int]:
    return list(np.float16(value).tobytes())


def _q45_k(block: np.ndarray, type_name: str) -> list[int]:
    """8 groups of 32: d, dmin, 6-bit scales and minimums, (fifth bits), nibbles."""
    most = 15 if type_name == "Q4_K" else 31
    groups = block.reshape(8, 32)
    lows = np.minimum(groups.min(1), 0)
    steps = (groups.max(1) - lows) / most
    d, dmin = np.float16(steps.max() / 63), np.float16(-lows.min() / 63)
    scales = [round(step / float(d)) if d else 0 for step in steps]
    minimums = [round(-low / float(dmin)) if dmin else 0 for low in lows]
    packed = [0] * 12
    for j in range(8):
        if j < 4:
            packed[j] |= scales[j] & 63
            packed[4 + j] |= minimums[j] & 63
        else:
            packed[4 + j] |= (scales[j] & 15) | ((minimums[j] & 15) << 4)
            packed[j - 4] |= (scales[j] >> 4) << 6
            packed[j] |= (minimums[j] >> 4) << 6
    low_bytes, high_bits = [0] * 128, [0] * 32
    for j in range(8):
        scale, minimum = float(d) * scales[j], float(dmin) * minimums[j]
        for i, value in enumerate(groups[j]):
            code = int(np.clip(round((value + minimum) / scale), 0, most)) if scale else 0
            low_bytes[j // 2 * 32 + i] |= (code & 15) << (4 * (j % 2))
            high_bits[i] |= (code >> 4) << j
    return [*_half(d), *_half(dmin), *packed, *(high_bits if most == 31 else []), *low_bytes]


def _q6_k(block: np.ndarray, _: str) -> list[int]:
    """16 groups of 16: low nibbles, high pairs, signed scales, d."""
    groups = block.reshape(16, 16)
    steps = np.abs(groups).max(1) / 31.5
    d = np.float16(steps.max() / 127)
    scales = [round(step / float(d)) if d else 0 for step in steps]
    low, high = [0] * 128, [0] * 64
    for i, value in enumerate(block):
        scale = float(d) * scales[i // 16]
        code = int(np.clip(round(value / scale), -32, 31)) + 32 if scale else 32
        half, place = divmod(i, 128)
        quarter, column = divmod(place, 32)
        low[half * 64 + 32 * (quarter % 2) + column] |= (code & 15) << (4 * (quarter // 2))
        high[half * 32 + column] |= (code >> 4) << (2 * quarter)
    return [*low, *high, *(scale & 255 for scale in scales), *_half(d)]
