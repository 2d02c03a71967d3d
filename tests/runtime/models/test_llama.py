"""Loading Llama files: what is missing, misshapen or of an unsupported kind is a ModelError that names it."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_llamas import TinyLlama, edit_config, tiny_llama, write_gguf

from radixlm.errors import ModelError
from radixlm.kernels.ops import DecoderWeights
from radixlm.runtime.model_files import ModelFiles
from radixlm.runtime.models.registry import families, open_weights


def load_all(files: ModelFiles) -> DecoderWeights:
    with open_weights(files, torch.float32) as weights:
        list(weights.layers)
        return weights


@pytest.fixture
def model(tmp_path) -> TinyLlama:
    return tiny_llama(tmp_path / "tiny", num_hidden_layers=1, tie_word_embeddings=False)


def change_tensors(model: TinyLlama, change) -> None:
    path = model.files.path / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)


def test_a_missing_tensor_is_named(model: TinyLlama) -> None:
    name = "model.layers.0.mlp.up_proj.weight"
    change_tensors(model, lambda tensors: tensors.pop(name))
    with pytest.raises(ModelError, match=name):
        load_all(model.files)


def test_a_tensor_of_the_wrong_shape_is_named_with_both_shapes(model: TinyLlama) -> None:
    name = "model.layers.0.self_attn.k_proj.weight"
    change_tensors(model, lambda tensors: tensors.update({name: torch.zeros(8, 48)}))
    with pytest.raises(ModelError, match=rf"{name}.*\[8, 48\].*\[32, 48\]"):
        load_all(model.files)


def test_an_integer_tensor_is_refused(model: TinyLlama) -> None:
    name = "model.norm.weight"
    change_tensors(
        model, lambda tensors: tensors.update({name: torch.zeros(48, dtype=torch.int32)})
    )
    with pytest.raises(ModelError, match=name):
        load_all(model.files)


def test_an_untied_model_without_its_head_is_refused(model: TinyLlama) -> None:
    change_tensors(model, lambda tensors: tensors.pop("lm_head.weight"))
    with pytest.raises(ModelError, match=r"lm_head\.weight"):
        load_all(model.files)


def test_a_missing_tensor_of_a_gguf_file_is_named(model: TinyLlama, tmp_path) -> None:
    files = write_gguf(model, tmp_path / "cut.gguf", skip="blk.0.ffn_norm.weight")
    with pytest.raises(ModelError, match=r"blk\.0\.ffn_norm\.weight"):
        load_all(files)


def test_a_cut_safetensors_file_is_a_model_error(model: TinyLlama) -> None:
    path = model.files.path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelError, match=r"model\.safetensors"):
        load_all(model.files)


def test_a_shard_that_the_index_names_must_exist_in_the_folder(model: TinyLlama) -> None:
    index = model.files.path / "model.safetensors.index.json"
    index.write_text(
        json.dumps({"weight_map": {"a": "model.safetensors", "b": "../other.safetensors"}})
    )
    with pytest.raises(ModelError, match=r"other\.safetensors"):
        load_all(model.files)


def test_shards_are_read_together(model: TinyLlama) -> None:
    folder = model.files.path
    whole = load_all(model.files)
    tensors = load_file(folder / "model.safetensors")
    names = sorted(tensors)
    shards = {"one.safetensors": names[::2], "two.safetensors": names[1::2]}
    for file_name, members in shards.items():
        save_file({name: tensors[name] for name in members}, folder / file_name)
    (folder / "model.safetensors").unlink()
    weight_map = {name: file_name for file_name, members in shards.items() for name in members}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    assert torch.equal(load_all(model.files).head.weight, whole.head.weight)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"architectures": ["GPT2LMHeadModel"]}, "GPT2LMHeadModel"),
        ({"architectures": None}, "none named"),
        ({"hidden_act": "gelu"}, "hidden_act"),
        ({"sliding_window": 128}, "sliding_window"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantization_config"),
        ({"num_hidden_layers": None}, "num_hidden_layers"),
        ({"num_hidden_layers": "two"}, "num_hidden_layers"),
        ({"num_key_value_heads": 3}, "3 key/value heads"),
        ({"intermediate_size": 0}, "intermediate_size"),
        ({"rope_parameters": {"rope_type": "longrope", "rope_theta": 1e4}}, "longrope"),
        ({"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4}}, "factor"),
    ],
)
def test_a_configuration_that_cannot_be_run_names_the_key(
    model: TinyLlama, changes, named: str
) -> None:
    edit_config(model.files.path, **changes)
    with pytest.raises(ModelError, match=named):
        load_all(model.files)


def test_an_old_configuration_with_rope_scaling_and_rope_theta_means_the_same(tmp_path) -> None:
    parameters = {"rope_type": "linear", "factor": 4.0, "rope_theta": 5000.0}
    model = tiny_llama(tmp_path, rope_parameters=parameters)
    new = load_all(model.files).rope
    edit_config(
        tmp_path,
        rope_parameters=None,
        rope_theta=5000.0,
        rope_scaling={"type": "linear", "factor": 4.0},
    )
    assert torch.equal(load_all(model.files).rope.inverse_frequencies, new.inverse_frequencies)


def test_every_family_has_its_own_name_and_architectures() -> None:
    found = families()
    assert len({family.name for family in found}) == len(found) >= 1
    names = [name for family in found for name in family.hf_architectures]
    assert len(names) == len(set(names))
