"""Weights out of a Hugging Face folder: config.json, and one or several safetensors files, mapped into memory.

Owns the folder's layout (an index file when there are shards). Knows nothing of families. Pickled weights are never read.
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

_FLOATS = frozenset({"F64", "F32", "F16", "BF16"})


class SafetensorsWeights:
    """A WeightSource over a folder; `dtype` is the type of the tensors it returns. Use as a context manager."""

    kind: Literal["gguf", "hf"] = "hf"

    def __init__(self, folder: Path, dtype: torch.dtype) -> None:
        self._dtype = dtype
        self._settings = _read_json(folder / "config.json")
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
        file = self._files.get(name)
        return None if file is None else tuple(file.get_slice(name).get_shape())

    def read_weight(self, name: str) -> Tensor:
        """See WeightSource: there are no quantized tensors in these files."""
        return self.read(name)

    def read(self, name: str) -> Tensor:
        """See WeightSource."""
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
        return file.get_tensor(name).to(self._dtype)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise ModelError(f"{path} is not a JSON object")
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
