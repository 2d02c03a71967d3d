"""Weights out of a Hugging Face folder: config.json, and one or several safetensors files, mapped into memory.

Owns the folder's layout (an index file when there are shards; where an AWQ or GPTQ checkpoint describes itself, and the tensors that stand for
one matrix). Knows nothing of families. Pickled weights are never read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ...errors import ModelError
from ...kernels.ops import QuantizedWeight
from .packed_checkpoints import packed_format
from .round_weights import by_rows, from_groups, to_8_bits_with_minimums
from .weight_groups import Groups

_FLOATS = frozenset({"F64", "F32", "F16", "BF16"})


class SafetensorsWeights:
    """A WeightSource over a folder; `dtype` is the type of the tensors it returns, `quantization` as in `open_weights`. A context manager."""

    kind: Literal["gguf", "hf"] = "hf"

    def __init__(self, folder: Path, dtype: torch.dtype, quantization: str = "none") -> None:
        self._dtype = dtype
        self._keeps_quantized = quantization != "none"
        self._keeps_floats = quantization == "file" and dtype == torch.float32
        self._settings = _read_json(folder / "config.json")
        self._format = packed_format(_quantization_of(folder, self._settings))
        self._files: dict[str, Any] = {}  # tensor name -> open file
        self._open = ExitStack()
        for path in _shards(folder):
            try:
                file = self._open.enter_context(safe_open(path, framework="pt"))
            except (SafetensorError, OSError) as error:
                raise ModelError(
                    f"{path} cannot be read: {error}", hint="Download the file again"
                ) from error
            self._files.update(dict.fromkeys(file.keys(), file))

    def __enter__(self) -> SafetensorsWeights:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def settings(self) -> Mapping[str, Any]:
        """config.json."""
        return self._settings

    def shape_of(self, name: str) -> tuple[int, ...] | None:
        """See WeightSource."""
        shape = self._stored_shape(name)
        base = self._packed_base(name)
        if shape is not None or base is None or self._format is None:
            return shape
        return self._format.shape(self._stored_shape(f"{base}.qweight") or ())

    def _stored_shape(self, name: str) -> tuple[int, ...] | None:
        file = self._files.get(name)
        return None if file is None else tuple(file.get_slice(name).get_shape())

    def read_weight(self, name: str) -> Tensor | QuantizedWeight:
        """See WeightSource."""
        base = self._packed_base(name)
        if base is None:
            return self._floats(name) if self._keeps_floats else self.read(name)
        found = self._unpacked(base)
        kept: QuantizedWeight | None = None
        if self._keeps_quantized and isinstance(found, Groups):
            kept = from_groups(found)
        elif self._keeps_quantized and isinstance(found, Tensor):
            kept = by_rows(found, to_8_bits_with_minimums)
        return self._plain(found) if kept is None else kept

    def read(self, name: str) -> Tensor:
        """See WeightSource."""
        base = self._packed_base(name)
        return self._floats(name).to(self._dtype) if base is None else self._plain(self._unpacked(base))  # fmt: skip

    def _plain(self, found: Groups | Tensor) -> Tensor:
        return (found.to_floats() if isinstance(found, Groups) else found).to(self._dtype)

    def _packed_base(self, name: str) -> str | None:
        """The name before `.qweight`, where several tensors stand for the matrix `name`."""
        base = name.removesuffix(".weight")
        is_packed = self._format is not None and f"{base}.qweight" in self._files
        return base if is_packed and base != name and name not in self._files else None

    def _unpacked(self, base: str) -> Groups | Tensor:
        assert self._format is not None  # `_packed_base` found one
        parts: dict[str, Tensor] = {}
        for part in ("qweight", "qzeros", "scales", "g_idx"):
            name = f"{base}.{part}"
            if name in self._files:
                parts[part] = self._files[name].get_tensor(name)
            elif part != "g_idx":
                raise ModelError(f"the model has no tensor {name!r}", place=name)
        return self._format.unpack(base, parts)

    def _floats(self, name: str) -> Tensor:
        """As stored; of 16 bits the native kernels read half the memory for the same products."""
        file = self._files.get(name)
        if file is None:
            raise ModelError(f"the model has no tensor {name!r}", place=name)
        stored = file.get_slice(name).get_dtype()
        if stored not in _FLOATS:
            raise ModelError(
                f"tensor {name!r} is stored as {stored}, which cannot be read",
                place=name,
                hint="Use float weights",
            )
        return file.get_tensor(name)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise ModelError(f"{path} is not a JSON object")
    return found


def _quantization_of(folder: Path, settings: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What describes the weights' quantization: in config.json, in older folders a file of its own."""
    for name, method in (("quantize_config.json", "gptq"), ("quant_config.json", "awq")):
        if "quantization_config" not in settings and (folder / name).is_file():
            return {"quant_method": method, **_read_json(folder / name)}
    found = settings.get("quantization_config")
    if found is not None and not isinstance(found, dict):
        raise ModelError("quantization_config is not an object", place="quantization_config")
    return found


def _shards(folder: Path) -> list[Path]:
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return sorted(folder.glob("*.safetensors"))
    names = _read_json(index).get("weight_map")
    if not isinstance(names, dict):
        raise ModelError(f"{index} has no weight_map")
    paths = sorted({folder / str(name) for name in names.values()})
    for path in paths:
        if path.parent != folder or not path.is_file():
            raise ModelError(
                f"{index} names {path.name!r}, which is not in the folder",
                hint="Download the missing file",
            )
    return paths
