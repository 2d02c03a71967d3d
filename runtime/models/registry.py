"""Finds model families: every module beside this file with a `FAMILY`. Opens a model's files and hands them to the family they name.

Owns the choice of family and of file format. Knows nothing of layers or names of weights. Adding a family is adding its file.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ...errors import ModelError
from ...kernels.ops import DecoderWeights
from ..model_files import ModelFiles
from .source import WeightSource
from .weight_bits import at_most
from .weights_gguf import GgufWeights
from .weights_safetensors import SafetensorsWeights


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of model. The names are what files call it; `load` maps one open model to weights (layers are read when iterated)."""

    name: str
    gguf_architectures: frozenset[str]  # general.architecture
    hf_architectures: frozenset[str]  # config.json's architectures
    load: Callable[[WeightSource], DecoderWeights]


def families() -> list[Family]:
    """All families of the package."""
    modules = (
        importlib.import_module(f".{module.name}", __package__)
        for module in pkgutil.iter_modules([str(Path(__file__).parent)])
    )
    return [module.FAMILY for module in modules if hasattr(module, "FAMILY")]


@contextmanager
def open_weights(
    files: ModelFiles, dtype: torch.dtype, quantization: str = "none"
) -> Iterator[DecoderWeights]:
    """The weights of a model on disk, valid inside the block: `layers` reads the files. ModelError for what cannot be run.

    `quantization` as in EngineConfig: with "none" all are floats of type `dtype`, else quantized matrices come as QuantizedWeight.
    """
    if files.kind == "gguf":
        source = GgufWeights(files.path, dtype, quantization)
        yield at_most(family_of(source).load(source), quantization)
    else:
        with SafetensorsWeights(files.path, dtype, quantization) as folder:
            yield at_most(family_of(folder).load(folder), quantization)


def family_of(source: WeightSource) -> Family:
    """The family that the file names. ModelError with the known ones."""
    named = _named_architectures(source)
    for family in families():
        known = family.gguf_architectures if source.kind == "gguf" else family.hf_architectures
        if known.intersection(named):
            return family
    known_names = sorted(
        {
            name
            for family in families()
            for name in family.hf_architectures | family.gguf_architectures
        }
    )
    raise ModelError(
        f"the model's architecture {' '.join(named) or '(none named)'} is not supported",
        hint=f"Supported: {', '.join(known_names)}",
    )


def _named_architectures(source: WeightSource) -> list[str]:
    key = "general.architecture" if source.kind == "gguf" else "architectures"
    value: Any = source.settings.get(key) or ()
    return [value] if isinstance(value, str) else [str(name) for name in value]
