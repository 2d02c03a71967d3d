"""The native library, loaded by ctypes: structs field by field as in `src/abi.h`, and the nine functions of `src/library.cpp`.

Owns the mirror of the C border and nothing else. ctypes releases the GIL around every call; a step is one call.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_char, c_char_p, c_float, c_int, c_int32, c_int64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ABI_VERSION = 5
PATH = Path(__file__).with_name("_native.so")

KINDS = {"f32": 0, "bf16": 1, "q4": 2, "q8": 3, "f16": 4, "q4 halves": 5, "q8 halves": 6}
FLOAT_KINDS = frozenset(KINDS[name] for name in ("f32", "bf16", "f16"))


class LinearStruct(Structure):
    """struct Linear."""

    _fields_ = (
        ("kind", c_int32), ("num_out", c_int32), ("num_in", c_int32), ("reserved", c_int32),
        ("codes", c_void_p), ("scales", c_void_p), ("minimums", c_void_p), ("bias", c_void_p),
    )  # fmt: skip


class LayerStruct(Structure):
    """struct Layer."""

    _fields_ = (
        ("attention_norm", c_void_p), ("mlp_norm", c_void_p),
        ("qkv", LinearStruct), ("attention_out", LinearStruct),
        ("gate_up", LinearStruct), ("down", LinearStruct),
    )  # fmt: skip


class ShapeStruct(Structure):
    """struct Shape."""

    _fields_ = (
        ("num_layers", c_int32), ("hidden", c_int32), ("num_heads", c_int32), ("num_kv_heads", c_int32),
        ("head_dim", c_int32), ("inner", c_int32), ("vocab", c_int32), ("context", c_int32),
        ("num_rotary", c_int32), ("page_size", c_int32), ("kv_kind", c_int32), ("num_threads", c_int32),
        ("pins_threads", c_int32), ("reserved", c_int32),
        ("page_cells", c_int64), ("layer_cells", c_int64), ("side_cells", c_int64), ("ready_bytes", c_int64), ("epsilon", c_float),
    )  # fmt: skip


class WeightsStruct(Structure):
    """struct Weights."""

    _fields_ = (
        ("shape", ShapeStruct), ("layers", POINTER(LayerStruct)),
        ("embedding", LinearStruct), ("head", LinearStruct),
        ("final_norm", c_void_p), ("cosines", c_void_p), ("sines", c_void_p), ("kv", c_void_p), ("kv_scales", c_void_p),
    )  # fmt: skip


class StepStruct(Structure):
    """struct Step."""

    _fields_ = (
        ("num_tokens", c_int32), ("num_sequences", c_int32), ("num_rows", c_int32), ("page_stride", c_int32),
        ("num_groups", c_int32), ("reserved", c_int32),
        ("token_ids", c_void_p), ("positions", c_void_p), ("slot_ids", c_void_p), ("query_starts", c_void_p),
        ("context_lens", c_void_p), ("page_tables", c_void_p), ("logit_rows", c_void_p),
        ("group_starts", c_void_p), ("group_members", c_void_p), ("group_pages", c_void_p), ("hidden", c_void_p),
    )  # fmt: skip


class SamplingStruct(Structure):
    """struct Sampling."""

    _fields_ = (
        ("num_rows", c_int32), ("num_scores", c_int32), ("vocab", c_int32), ("top_width", c_int32), ("score_width", c_int32),
        ("num_logits", c_int32), ("logits", c_void_p),
        ("rows", c_void_p), ("top_k", c_void_p), ("positions", c_void_p), ("choices", c_void_p), ("num_logprobs", c_void_p),
        ("temperature", c_void_p), ("top_p", c_void_p), ("min_p", c_void_p), ("typical_p", c_void_p), ("repetition", c_void_p),
        ("frequency", c_void_p), ("presence", c_void_p), ("seeds", c_void_p),
        ("count_starts", c_void_p), ("count_ids", c_void_p), ("count_output", c_void_p),
        ("bias_starts", c_void_p), ("bias_ids", c_void_p), ("bias_values", c_void_p),
        ("mask_of", c_void_p), ("masks", c_void_p),
        ("score_rows", c_void_p), ("score_ids", c_void_p), ("score_num", c_void_p),
        ("token_ids", c_void_p), ("reasons", c_void_p), ("chosen", c_void_p), ("top_ids", c_void_p), ("top_values", c_void_p),
        ("score_chosen", c_void_p), ("score_top_ids", c_void_p), ("score_top_values", c_void_p),
    )  # fmt: skip


def address_of(array: npt.NDArray[Any]) -> int:
    """Where the array's memory begins; a third of the time of `array.ctypes.data`."""
    try:
        return ctypes.addressof(c_char.from_buffer(array))
    except (TypeError, ValueError):  # read-only, or empty
        return array.ctypes.data


def gather(kind: type[np.generic], **parts: npt.NDArray[Any]) -> tuple[object, dict[str, int]]:
    """The parts one after the other in new memory of `kind`, and where each begins: one address asked for instead of many."""
    memory = np.concatenate(tuple(parts.values()), axis=None, dtype=kind, casting="same_kind")
    at, size = address_of(memory), memory.itemsize
    addresses: dict[str, int] = {}
    for name, part in parts.items():
        addresses[name] = at
        at += part.size * size
    return memory, addresses


def load(path: Path = PATH) -> ctypes.CDLL:
    """The library. OSError when the file is missing, of another machine or of another version."""
    library = ctypes.CDLL(str(path))
    if library.radix_abi_version() != ABI_VERSION:
        raise OSError(f"{path} is of another version; install radixlm again")
    library.radix_isa.argtypes = [c_int]
    library.radix_isa.restype = c_char_p
    library.radix_reads_halves.argtypes = [c_char_p]
    library.radix_open.argtypes = [POINTER(WeightsStruct), c_char_p]
    library.radix_open.restype = c_void_p
    library.radix_copies_whole_pages.argtypes = [c_void_p]
    library.radix_close.argtypes = [c_void_p]
    library.radix_close.restype = None
    library.radix_step.argtypes = [c_void_p, POINTER(StepStruct)]
    library.radix_logits.argtypes = [c_void_p, c_void_p, c_int, c_void_p, c_void_p]
    library.radix_sample.argtypes = [c_void_p, POINTER(SamplingStruct)]
    return library


def instruction_sets(library: ctypes.CDLL) -> list[str]:
    """Names of the instruction sets that serve on this machine, best first."""
    names: list[str] = []
    while (name := library.radix_isa(len(names))) is not None:
        names.append(name.decode())
    return names


def reads_halves(library: ctypes.CDLL, isa: str) -> bool:
    """Whether that instruction set reads quantized weights in words of one half; see `WeightKind` of `src/abi.h`."""
    return bool(library.radix_reads_halves(isa.encode()))


def packs_halves(isa: str = "") -> bool:
    """The same of `isa`, or of the best one here; False where the library is not there."""
    try:
        library = load()
    except OSError:
        return False
    return reads_halves(library, isa or instruction_sets(library)[0])
