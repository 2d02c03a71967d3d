from __future__ import annotations

from pathlib import Path

import pytest

from radixlm.errors import ModelError
from radixlm.runtime import model_files
from radixlm.runtime.model_files import ALIASES, cached_path, resolve_model

ALIAS = "smollm2-135m"


def test_an_alias_that_was_not_pulled_says_how_to_pull_it(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="radixlm pull smollm2-135m"):
        resolve_model(ALIAS, tmp_path)


def test_a_cached_alias_of_the_right_size_resolves_and_a_cut_one_does_not(tmp_path: Path) -> None:
    model = ALIASES[ALIAS]
    path = cached_path(model, tmp_path)
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(model.num_bytes)
    assert resolve_model(ALIAS, tmp_path) == model_files.ModelFiles(ALIAS, "gguf", path)
    with path.open("r+b") as file:
        file.truncate(model.num_bytes - 1)
    with pytest.raises(ModelError, match="is damaged: 98362431 bytes"):
        resolve_model(ALIAS, tmp_path)


def test_a_gguf_file_resolves_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "some.gguf"
    path.write_bytes(b"GGUF....")
    assert resolve_model(str(path)).kind == "gguf"
    assert resolve_model(str(tmp_path)).path == path, (
        "a folder with one GGUF file and no config.json is that file"
    )


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "no config.json"),
        ({"config.json": b"{}"}, "no .safetensors"),
        ({"config.json": b"{}", "model.safetensors": b""}, "no tokenizer.json"),
        ({"config.json": b"{}", "pytorch_model.bin": b""}, "no .safetensors"),
    ],
)
def test_a_folder_that_lacks_a_part_is_refused_with_the_part(
    files: dict[str, bytes], says: str, tmp_path: Path
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelError, match=says):
        resolve_model(str(tmp_path))
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    (tmp_path / "config.json").write_bytes(b"{}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    assert resolve_model(str(tmp_path)).kind == "hf"


def test_what_is_no_model_is_refused_with_the_known_aliases(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"PK\x03\x04")
    for name in ("", "smollm3", str(tmp_path / "model.bin")):
        with pytest.raises(ModelError) as refused:
            resolve_model(name)
        assert ALIAS in refused.value.hint or "GGUF" in refused.value.message


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("smollm2-135", "Did you mean smollm2-135m?"),
        ("HuggingFaceTB/SmolLM2-135M", "Did you mean smollm2-135m?"),
        ("meta/Other-3B", "download the folder first"),
        ("models/other.gguf", "Is the path right?"),
    ],
)
def test_a_name_that_is_nearly_right_gets_a_hint(name: str, hint: str) -> None:
    with pytest.raises(ModelError) as refused:
        resolve_model(name)
    assert hint in refused.value.hint
    assert ALIAS in refused.value.hint
