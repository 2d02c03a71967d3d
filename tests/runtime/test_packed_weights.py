"""Where packed weights lie, when they are packed again, and that a start which finds them needs no torch."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_llamas import TinyLlama, tiny_llama, write_gguf

from radixlm.errors import ConfigError
from radixlm.kernels.cpu import packed_file
from radixlm.kernels.cpu.backend import BACKEND
from radixlm.runtime import packed_weights
from radixlm.runtime.model_files import ModelFiles
from radixlm.runtime.native_runner import open_native_runner
from radixlm.runtime.packed_weights import PackedWeights

REASON = BACKEND.unavailable_reason("cpu")
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))


@pytest.fixture
def model(tmp_path: Path) -> TinyLlama:
    (tmp_path / "model").mkdir()
    return tiny_llama(tmp_path / "model")


def weights_of(files: ModelFiles, tmp_path: Path, **options: str) -> PackedWeights:
    given = {"dtype": "float32", "quantization": "file"} | options
    return PackedWeights(files, cache_dir=tmp_path / "cache", **given)


def test_the_first_load_keeps_a_file_beside_the_model_and_the_next_one_finds_it(
    model: TinyLlama, tmp_path: Path
) -> None:
    gguf = write_gguf(model, tmp_path / "tiny.gguf")
    for files, folder in ((model.files, model.files.path), (gguf, tmp_path)):
        weights = weights_of(files, tmp_path)
        assert weights.find() is None
        assert weights.load() is not None
        found = weights.find()
        assert found is not None
        assert found[0].parent == folder
    assert not (tmp_path / "cache").exists()


def test_each_way_of_packing_has_its_own_file_and_a_changed_model_is_packed_again(
    model: TinyLlama, tmp_path: Path
) -> None:
    weights = weights_of(model.files, tmp_path)
    weights.load()
    for options in ({"dtype": "bfloat16"}, {"quantization": "none"}):
        assert weights_of(model.files, tmp_path, **options).find() is None
    path = next(model.files.path.glob("*.safetensors"))
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000))
    assert weights.find() is None
    assert weights.load() is not None
    assert weights.find() is not None


def test_whatever_says_how_the_weights_are_read_belongs_to_the_key(
    model: TinyLlama, tmp_path: Path
) -> None:
    settings = model.files.path / "quantize_config.json"
    settings.write_text('{"bits": 4, "group_size": 32}')
    weights = weights_of(model.files, tmp_path, quantization="none")
    if weights.load() is None:
        pytest.fail("it was not packed")
    assert weights.find() is not None
    settings.write_text('{"bits": 4, "group_size": 32, "checkpoint_format": "gptq_v2"}')
    assert weights.find() is None


def test_an_instruction_set_that_is_none_is_refused_before_anything_is_packed(
    model: TinyLlama, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="instruction_set='avx9'") as raised:
        open_native_runner(
            model.files,
            cache_dir=tmp_path,
            dtype="float32",
            quantization="file",
            instruction_set="avx9",
        )
    assert raised.value.place == "instruction_set"
    assert not list(model.files.path.glob("*.packed"))


def test_a_file_packed_by_other_rules_is_packed_again(
    model: TinyLlama, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = weights_of(model.files, tmp_path)
    weights.load()
    monkeypatch.setattr(packed_weights, "PACKING", packed_weights.PACKING + 1)
    assert weights.find() is None


def test_a_damaged_file_is_replaced(model: TinyLlama, tmp_path: Path) -> None:
    weights = weights_of(model.files, tmp_path)
    weights.load()
    path = weights.paths()[0]
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    assert weights.load() is not None
    assert path.read_bytes() == whole


def test_a_folder_that_cannot_be_written_sends_the_file_to_the_cache_and_else_memory_serves(
    model: TinyLlama, tmp_path: Path, monkeypatch, caplog: pytest.LogCaptureFixture
) -> None:
    weights = weights_of(model.files, tmp_path)
    write = packed_file.write
    refused = [weights.paths()[0]]

    def write_elsewhere(path: Path, *rest) -> None:
        if path in refused:
            raise OSError(30, "Read-only file system")
        write(path, *rest)

    monkeypatch.setattr(packed_file, "write", write_elsewhere)
    assert weights.load() is not None
    found = weights.find()
    assert found is not None
    assert found[0].parent == tmp_path / "cache" / "packed"
    found[0].unlink()
    refused.append(found[0])
    with caplog.at_level(logging.WARNING):
        assert weights.load() is not None
    assert "Read-only" in caplog.text
    assert weights.find() is None


def test_a_shape_that_the_kernels_do_not_take_is_not_packed(tmp_path: Path) -> None:
    assert weights_of(tiny_llama(tmp_path, head_dim=12).files, tmp_path).load() is None


PROGRAM = """
import sys
from pathlib import Path
from radixlm.runtime.config import EngineConfig
from radixlm.runtime.engine_process import build_engine
engine, ready, warm_up = build_engine(EngineConfig.create(model=sys.argv[1], num_pages=64, threads=1), 0)
warm_up()
print(*(name for name in ("torch", "transformers", "safetensors") if name in sys.modules))
"""


@pytest.mark.model
def test_an_engine_that_finds_packed_weights_never_loads_torch(smollm2_files: ModelFiles) -> None:
    from radixlm.runtime.config import default_cache_dir

    PackedWeights(smollm2_files, "float32", "file", default_cache_dir()).load()
    command = [sys.executable, "-c", PROGRAM, smollm2_files.name]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout.split() == []


def test_a_model_that_was_renamed_is_found_again_only_under_its_new_name(
    model: TinyLlama, tmp_path: Path
) -> None:
    files = write_gguf(model, tmp_path / "tiny.gguf")
    weights_of(files, tmp_path).load()
    moved = files.path.rename(tmp_path / "other.gguf")
    assert weights_of(replace(files, path=moved), tmp_path).find() is None


@pytest.mark.model
def test_a_first_start_packs_in_another_process_and_loads_no_torch_either(
    smollm2_files: ModelFiles, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.gguf"
    copy.symlink_to(smollm2_files.path.resolve())
    command = [sys.executable, "-c", PROGRAM, str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout.split() == []
    assert list(tmp_path.glob("copy.gguf.*.packed"))
