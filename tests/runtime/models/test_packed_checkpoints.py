"""AWQ and GPTQ checkpoints: every layout gives the values it stands for, a whole model the logits of its dequantized twin."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from packed_llamas import Recipe, packed_llama, quantize
from paged_steps import LogitsProbe, PagedSequence, plan_step
from safetensors.torch import load_file, save_file
from tiny_llamas import edit_config

from radixlm.errors import ModelError
from radixlm.kernels.cpu.backend import BACKEND
from radixlm.runtime.model_files import ModelFiles
from radixlm.runtime.model_runner import ModelRunner
from radixlm.runtime.models.packed_checkpoints import packed_format
from radixlm.runtime.models.registry import open_weights
from radixlm.runtime.models.round_weights import from_groups
from radixlm.runtime.models.weight_groups import Groups
from radixlm.runtime.native_runner import open_native_runner

HAS_NATIVE = BACKEND.unavailable_reason("cpu") is None
RECIPES = {
    "awq": Recipe("awq", 32),
    "awq, groups of 128": Recipe("awq", 128),
    "gptq": Recipe("gptq", 32),
    "gptq, groups of 64": Recipe("gptq", 64),
    "gptq, groups of 128, symmetric": Recipe("gptq", 128, is_symmetric=True),
    "gptq, one group": Recipe("gptq", -1, has_index=False),
    "gptq v2": Recipe("gptq", 32, checkpoint_format="gptq_v2"),
    "gptq of 8 bits": Recipe("gptq", 32, bits=8),
    "gptq of 8 bits, symmetric": Recipe("gptq", 64, bits=8, is_symmetric=True),
}
SHUFFLED = Recipe("gptq", 32, is_shuffled=True)


def matrix(num_out: int = 48, num_in: int = 256) -> np.ndarray:
    values = np.random.default_rng(2).normal(size=(num_out, num_in)).astype(np.float32)
    values[3] = np.abs(values[3])  # a row whose zeros are 0, which GPTQ stores as all ones
    return values


@pytest.mark.parametrize("name", RECIPES)
def test_unpacked_groups_are_the_values_that_were_packed(name: str) -> None:
    recipe = RECIPES[name]
    parts, exact = quantize(matrix(), recipe)
    layout = packed_format(recipe.config())
    assert layout is not None
    assert layout.shape(tuple(parts["qweight"].shape)) == exact.shape
    groups = layout.unpack("m", parts)
    assert isinstance(groups, Groups)
    assert groups.width == 32
    # code * scale + minimum rounds twice where scale * (code - zero) rounds once
    scale = groups.scales.abs().max()
    assert (groups.to_floats() - torch.from_numpy(exact)).abs().max() <= 256 * scale * 2.0**-23


@pytest.mark.parametrize("name", RECIPES)
def test_what_kernels_get_of_them_loses_at_most_the_rounding_of_minimums(name: str) -> None:
    recipe = RECIPES[name]
    parts, exact = quantize(matrix(), recipe)
    groups = packed_format(recipe.config()).unpack("m", parts)  # type: ignore[union-attr]
    weight = from_groups(groups)  # type: ignore[arg-type]
    assert weight is not None
    assert weight.codes.dtype == (torch.uint8 if recipe.bits == 4 else torch.int8)
    error = (weight.to_floats() - torch.from_numpy(exact)).abs()
    minimums = weight.minimums.float().abs().repeat_interleave(32, 1)  # type: ignore[union-attr]
    assert (error <= minimums * 2.0**-11 + 1e-6).all()
    if recipe.is_symmetric:
        assert (error <= 1e-6).all()


def test_groups_that_are_no_neighbours_come_as_floats() -> None:
    parts, exact = quantize(matrix(), SHUFFLED)
    values = packed_format(SHUFFLED.config()).unpack("m", parts)  # type: ignore[union-attr]
    assert isinstance(values, torch.Tensor)
    assert (values - torch.from_numpy(exact)).abs().max() < 1e-6


def test_a_last_group_that_is_cut_short_is_read() -> None:
    recipe = Recipe("gptq", 128, has_index=False)
    parts, exact = quantize(matrix(16, 160), recipe)
    groups = packed_format(recipe.config()).unpack("m", parts)  # type: ignore[union-attr]
    assert isinstance(groups, Groups)
    assert (groups.to_floats() - torch.from_numpy(exact)).abs().max() < 1e-6


def logits_of(folder: Path, quantization: str, native: bool, token_ids: list[int]) -> np.ndarray:
    """Of all positions of the prompt."""
    files, probe = ModelFiles(str(folder), "hf", folder), LogitsProbe()
    options = {"num_pages": 16, "page_size": 4, "kv_dtype": "float32", "threads": 1}
    options |= {"dtype": "float32", "quantization": quantization}
    if native:
        runner = open_native_runner(files, cache_dir=folder, sample=probe, **options)  # type: ignore[arg-type]
        assert runner is not None
    else:
        runner = ModelRunner(files, kernels="reference", sample=probe, **options)  # type: ignore[arg-type]
    sequence = PagedSequence(list(range(12)), token_ids)
    plan = plan_step([(sequence, len(token_ids))], 4, logits="all", greedy=True)
    runner.finish(runner.launch(plan), None)
    return np.array(probe.logits)


PROMPT = np.random.default_rng(4).integers(0, 97, 30).tolist()


@pytest.mark.parametrize("recipe", [*RECIPES.values(), SHUFFLED], ids=[*RECIPES, "shuffled"])
def test_a_whole_model_has_the_logits_of_its_dequantized_twin(
    recipe: Recipe, tmp_path: Path
) -> None:
    inner = {"hidden_size": 128, "head_dim": 32} if recipe.group_size == 128 else {}
    packed, twin = packed_llama(tmp_path, recipe, **inner)
    wanted = twin.logits(PROMPT)
    spread = wanted.std()
    assert np.abs(logits_of(packed, "none", False, PROMPT) - wanted).max() < 1e-3 * spread
    if not HAS_NATIVE:
        return
    # activations of 8 bits in a model 64 wide, and where zeros are not in the middle minimums in float16
    found = logits_of(packed, "file", True, PROMPT)
    assert _root_mean_square(found - wanted) < 0.045 * spread
    # "int8" leaves these matrices as they are, and the reference multiplies them as their definition says
    defined, found = (logits_of(packed, "int8", native, PROMPT) for native in (False, True))
    assert np.abs(found - defined).max(1).min() < 1e-4 * spread
    assert _root_mean_square(found - defined) < 0.02 * spread  # a code that falls the other way


def _root_mean_square(values: np.ndarray) -> float:
    return float(np.sqrt(np.square(values).mean()))


@pytest.mark.skipif(not HAS_NATIVE, reason="no native kernels")
def test_a_packed_model_takes_four_bits_a_weight(tmp_path: Path) -> None:
    packed, _ = packed_llama(tmp_path, RECIPES["awq"])
    with open_weights(ModelFiles("", "hf", packed), torch.float32, "file") as weights:
        kinds = {layer.qkv.weight.codes.dtype for layer in weights.layers}  # type: ignore[union-attr]
    assert kinds == {torch.uint8}


def test_older_folders_describe_their_quantization_in_a_file_of_its_own(tmp_path: Path) -> None:
    for recipe, name in ((RECIPES["awq"], "quant_config.json"), (RECIPES["gptq"], "quantize_config.json")):  # fmt: skip
        packed, twin = packed_llama(tmp_path / recipe.method, recipe)
        config = recipe.config()
        if recipe.method == "awq":
            config = {"w_bit": 4, "q_group_size": 32, "zero_point": True, "version": "GEMM"}
        (packed / name).write_text(json.dumps(config))
        edit_config(packed, quantization_config=None)
        found = logits_of(packed, "none", False, PROMPT)
        assert np.abs(found - twin.logits(PROMPT)).max() < 1e-3


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"quant_method": "bitsandbytes"}, "bitsandbytes"),
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": None}, "none"),
        ({"bits": 3}, "3 bits"),
        ({"quant_method": "awq", "bits": 8}, "8 bits"),
        ({"quant_method": "awq", "version": "gemv"}, "gemv"),
        ({"checkpoint_format": "marlin"}, "marlin"),
        ({"group_size": 0}, "groups of 0"),
        ({"group_size": None}, "groups of None"),
        ({"dynamic": {"+:.*": {"bits": 8}}}, "bits of their own"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name_with_a_hint(changes: dict, named: str) -> None:
    with pytest.raises(ModelError, match=named) as caught:
        packed_format(RECIPES["gptq"].config() | changes)
    assert str(caught.value.place).startswith("quantization_config.")
    assert "awq" in str(caught.value.hint)


@pytest.mark.parametrize("part", ["qzeros", "scales", "g_idx", "qweight"])
def test_parts_that_do_not_fit_together_are_named(part: str, tmp_path: Path) -> None:
    packed, _ = packed_llama(tmp_path, RECIPES["gptq"], num_hidden_layers=1)
    path, name = packed / "model.safetensors", f"model.layers.0.mlp.up_proj.{part}"
    tensors = load_file(path)
    tensors[name] = tensors[name][:-1].contiguous()
    save_file(tensors, path)
    with pytest.raises(ModelError, match=r"up_proj"):
        logits_of(packed, "none", False, PROMPT)
    del tensors[name]
    save_file(tensors, path)
    if part != "g_idx":
        with pytest.raises(ModelError, match=rf"up_proj\.({part}|weight)"):
            logits_of(packed, "none", False, PROMPT)


def test_an_index_beyond_the_groups_and_codes_of_another_type_are_refused() -> None:
    layout = packed_format(RECIPES["gptq"].config())
    assert layout is not None
    parts, _ = quantize(matrix(), RECIPES["gptq"])
    with pytest.raises(ModelError, match=r"m\.g_idx"):
        layout.unpack("m", parts | {"g_idx": torch.full((256,), 9)})
    with pytest.raises(ModelError, match=r"m\.qweight.*int64"):
        layout.unpack("m", parts | {"qweight": parts["qweight"].long()})
