"""Which native kernels an engine takes, and what it says where it must do without them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_llamas import tiny_llama

from radixlm.errors import ConfigError
from radixlm.kernels.cpu.library import instruction_sets, load
from radixlm.runtime import native_runner
from radixlm.runtime.config import EngineConfig
from radixlm.runtime.engine_process import build_runner
from radixlm.runtime.model_files import ModelFiles

REASON = native_runner.missing_library()
needs_native = pytest.mark.skipif(REASON is not None, reason=str(REASON))


@pytest.fixture
def files(tmp_path: Path) -> ModelFiles:
    return tiny_llama(tmp_path / "model").files


def config_of(files: ModelFiles, **options: str) -> EngineConfig:
    return EngineConfig.create(model=str(files.path), num_pages=8, threads=1, **options)


def test_an_engine_that_must_do_without_the_native_library_says_so(
    files: ModelFiles, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def gone() -> None:
        raise OSError("_native.so: no such file")

    monkeypatch.setattr(native_runner, "load", gone)
    assert build_runner(config_of(files), files).facts.vocab_size == 97
    assert "the native kernels cannot serve, slower ones do (_native.so: no such" in caplog.text


def test_an_engine_that_was_told_to_use_others_says_nothing_of_it(
    files: ModelFiles, caplog: pytest.LogCaptureFixture
) -> None:
    assert build_runner(config_of(files, kernels="reference"), files).facts.kernels == "reference"
    assert "native" not in caplog.text


@needs_native
def test_every_instruction_set_of_the_machine_can_be_asked_for(files: ModelFiles) -> None:
    usable = instruction_sets(load())
    assert usable[-1] == "portable"
    for name in usable:
        runner = build_runner(config_of(files, instruction_set=name), files)
        assert isinstance(runner, native_runner.NativeRunner)
        assert runner._decoder.instruction_set == name
    best = build_runner(config_of(files), files)
    assert isinstance(best, native_runner.NativeRunner)
    assert best._decoder.instruction_set == usable[0]


@needs_native
def test_one_that_it_lacks_is_refused_with_those_it_has(files: ModelFiles) -> None:
    with pytest.raises(ConfigError, match=r"instruction_set='sse9'.*portable") as caught:
        build_runner(config_of(files, instruction_set="sse9"), files)
    assert caught.value.place == "instruction_set"


@needs_native
@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, "bfloat16"),
        ({"quantization": "int8"}, "int8"),
        ({"quantization": "int8", "kv_dtype": "bfloat16"}, "bfloat16"),
        ({"kv_dtype": "int8"}, "int8"),
        ({"kv_dtype": "float32"}, "float32"),
    ],
)
def test_keys_and_values_are_int8_beside_quantized_weights_unless_another_type_is_asked_for(
    files: ModelFiles, options: dict[str, str], wanted: str
) -> None:
    assert build_runner(config_of(files, **options), files).facts.kv_dtype == wanted
