"""One frozen config: unknown names and wrong values are errors that name the option."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from radixlm.errors import ConfigError
from radixlm.runtime.config import FIELDS, EngineConfig, child_environment, default_cache_dir
from radixlm.runtime.cores import usable_cores


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FIELDS:
        monkeypatch.delenv(f"RADIXLM_{name.upper()}", raising=False)


def test_a_config_is_complete_checked_and_frozen() -> None:
    config = EngineConfig.create()
    assert config.threads >= 1
    assert Path(config.cache_dir).is_absolute()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.threads = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("options", "place", "words"),
    [
        ({"thread": 2}, "thread", "Did you mean 'threads'"),
        ({"threads": -1}, "threads", "not within"),
        ({"threads": "two"}, "threads", "whole number"),
        ({"threads": 1.5}, "threads", "whole number"),
        ({"threads": True}, "threads", "whole number"),
        ({"lease_s": float("nan")}, "lease_s", "not within"),
        ({"text_memory": "maybe"}, "text_memory", "neither true nor false"),
        ({"model": ""}, "model", "smollm2-135m"),
        ({"model": 5}, "model", "not a text"),
        ({"page_size": 24}, "page_size", "divide 64"),
        ({"dtype": "int3"}, "dtype", "float32"),
        ({"kv_dtype": "int4"}, "kv_dtype", "int8"),
        ({"quantization": "int3"}, "quantization", "file, none, int8, int4"),
        ({"on_engine_death": "ignore"}, "on_engine_death", "restart"),
        ({"max_running": 600}, "max_running", "max_step_tokens"),
    ],
)
def test_a_wrong_option_is_named(options: dict, place: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        EngineConfig.create(**options)
    assert caught.value.place == place
    assert words in str(caught.value)


def test_the_caller_beats_the_environment_and_that_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RADIXLM_THREADS", "3")
    monkeypatch.setenv("RADIXLM_TEXT_MEMORY", "off")
    monkeypatch.setenv("RADIXLM_SOMETHING_ELSE_ALTOGETHER", "1")
    assert EngineConfig.create().threads == 3
    assert EngineConfig.create().text_memory is False
    assert EngineConfig.create(threads=5).threads == 5
    assert EngineConfig.create_for({"threads": 4, "max_running": 7}).threads == 3
    assert EngineConfig.create_for({"threads": 4, "max_running": 7}).max_running == 7
    assert EngineConfig.create_for({"threads": 4}, threads=5).threads == 5


def test_a_wrong_value_of_a_variable_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADIXLM_KV_DTYPE", "int4")
    monkeypatch.setenv("RADIXLM_THREADS", "many")
    with pytest.raises(ConfigError) as caught:
        EngineConfig.create(kv_dtype="int8")
    assert caught.value.place == "RADIXLM_THREADS"
    with pytest.raises(ConfigError) as caught:
        EngineConfig.create(threads=1)
    assert caught.value.place == "RADIXLM_KV_DTYPE"
    with pytest.raises(ConfigError) as caught:
        EngineConfig.create(threads=1, kv_dtype="int3")
    assert caught.value.place == "kv_dtype"


def test_a_misspelt_variable_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADIXLM_THREDS", "3")
    with pytest.raises(ConfigError, match="RADIXLM_THREDS"):
        EngineConfig.create()


def test_a_child_gets_the_same_config_through_json() -> None:
    config = EngineConfig.create(threads=2, lease_s=0.5, model="x.gguf")
    assert EngineConfig.from_json(config.to_json()) == config


def test_the_cache_folder_follows_the_xdg_rules(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_dir() == tmp_path / "radixlm"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_cache_dir() == Path.home() / ".cache" / "radixlm"
    monkeypatch.setenv("RADIXLM_CACHE_DIR", str(tmp_path / "own"))
    assert default_cache_dir() == tmp_path / "own"


def test_every_option_has_a_text_and_children_get_their_thread_count() -> None:
    assert all(spec.metadata["text"] for spec in FIELDS.values())
    assert child_environment(3)["OMP_NUM_THREADS"] == "3"
    assert usable_cores() >= 1
