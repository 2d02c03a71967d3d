"""A model's weights as the native kernels take them: from the file that keeps them, or packed now and kept.

Owns where such files lie and what identifies them: beside the model, else in the cache folder; by names, sizes and times of the model's
files, so that a changed model is packed again. torch is imported only to pack. Knows nothing of steps.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..kernels.cpu import packed_file
from ..kernels.cpu.library import packs_halves
from ..kernels.cpu.packed import PackedModel
from .model_files import ModelFiles

log = logging.getLogger(__name__)

PACKING = 2
"""Raised when the same file is packed to other values or kinds than before, so that files of older versions are packed again."""

WEIGHT_DTYPES = ("float32", "bfloat16")
"""What float weights are kept as."""


@dataclass(frozen=True, slots=True)
class PackedWeights:
    """The packed form of one model: `dtype` of float weights (float32 or bfloat16), the rest as in EngineConfig."""

    files: ModelFiles
    dtype: str
    quantization: str
    cache_dir: Path
    instruction_set: str = ""

    @property
    def in_halves(self) -> bool:
        """Whether quantized weights are packed in words of one half, as the instruction set wants it."""
        return packs_halves(self.instruction_set)

    def paths(self) -> Sequence[Path]:
        """Where the file may lie, best first."""
        path = self.files.path
        words = "-halves" if self.in_halves else ""
        kind = f"cpu-{self.dtype}-{self.quantization}{words}.packed"
        beside = path / f"radixlm-{kind}" if self.files.kind == "hf" else Path(f"{path}.{kind}")
        digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
        return beside, self.cache_dir / "packed" / f"{path.name}-{digest}.{kind}"

    def find(self) -> tuple[Path, PackedModel] | None:
        """The file and what is in it, if it is there and of this model."""
        key = self._key()
        for path in self.paths():
            model = packed_file.read(path, key)
            if model is not None:
                return path, model
        return None

    def can_be_kept(self) -> bool:
        """Whether some folder would take the file, or could be made."""
        for path in self.paths():
            folder = next(each for each in path.parents if each.exists())
            if os.access(folder, os.W_OK):
                return True
        return False

    def load(self) -> PackedModel | None:
        """From the file, or packed and stored. None when the kernels do not take the model's shape; ModelError for damaged files."""
        found = self.find()
        if found is not None:
            return found[1]
        from .models.native import pack_files

        key = self._key()  # of the files as they are before they are read
        packed = pack_files(self.files, self.dtype, self.quantization, self.in_halves)
        if packed is None:
            return None
        path = self._store(packed, key)
        mapped = None if path is None else packed_file.read(path, key)
        return mapped or packed

    def _store(self, packed: PackedModel, key: packed_file.Key) -> Path | None:
        problem = ""
        for path in self.paths():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                packed_file.write(path, key, packed)
            except OSError as error:
                problem = problem or f"{path}: {error.strerror or error}"
            else:
                return path
        log.warning("the packed weights are not kept, each start packs them again (%s)", problem)
        return None

    def _key(self) -> packed_file.Key:
        path = self.files.path
        parts = [path]
        if self.files.kind == "hf":
            parts = sorted([*path.glob("*.json"), *path.glob("*.safetensors")])
        stats = [(part.name, part.stat()) for part in parts]
        return {
            "in_halves": self.in_halves,
            "files": [[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats],
            "packing": PACKING,
            "dtype": self.dtype,
            "quantization": self.quantization,
        }
