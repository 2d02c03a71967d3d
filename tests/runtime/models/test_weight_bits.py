"""What `--quantization` makes of a model: which matrices are rounded, in both kinds of files, and that the results stay those of the model."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from k_quants import encode
from paged_steps import LogitsProbe, PagedSequence, plan_step
from tiny_llamas import TinyLlama, tiny_llama, write_gguf

from radixlm.kernels.cpu.backend import BACKEND
from radixlm.kernels.ops import DecoderWeights, QuantizedWeight
from radixlm.runtime.model_files import ModelFiles
from radixlm.runtime.model_runner import ModelRunner
from radixlm.runtime.models.registry import open_weights
from radixlm.runtime.native_runner import open_native_runner

HAS_NATIVE = BACKEND.unavailable_reason("cpu") is None
PROMPT = np.random.default_rng(4).integers(0, 97, 30).tolist()
MIXED = {"attn_v": "Q6_K", "ffn_down": "Q6_K", "token_embd": "Q6_K", "attn_output": "Q5_K", "ffn_up": "Q8_0", "ffn_gate": "F16"}  # fmt: skip
"""As real Q4_K_M files are, and more mixed; the rest is Q4_K."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TinyLlama:
    folder = tmp_path_factory.mktemp("wide")
    return tiny_llama(
        folder, hidden_size=256, head_dim=64, intermediate_size=512, initializer_range=0.08
    )


@pytest.fixture(scope="module")
def mixed(model: TinyLlama, tmp_path_factory: pytest.TempPathFactory) -> ModelFiles:
    def type_of(name: str) -> str:
        if "norm" in name:
            return "F32"
        return next((kind for part, kind in MIXED.items() if part in name), "Q4_K")

    path = tmp_path_factory.mktemp("mixed") / "mixed.gguf"
    return write_gguf(model, path, store=lambda name, values: (encode(values, type_of(name)), type_of(name)))  # fmt: skip


def load(files: ModelFiles, quantization: str) -> tuple[DecoderWeights, list]:
    with open_weights(files, torch.float32, quantization) as weights:
        return weights, list(weights.layers)


def kind_of(weight: torch.Tensor | QuantizedWeight) -> str:
    if isinstance(weight, QuantizedWeight):
        return "q8" if weight.codes.dtype == torch.int8 else "q4"
    return str(weight.dtype).removeprefix("torch.")


def kinds(files: ModelFiles, quantization: str) -> dict[str, str]:
    weights, layers = load(files, quantization)
    names = ("qkv", "attention_out", "gate_up", "down")
    found = {name: kind_of(getattr(layers[0], name).weight) for name in names}
    return found | {"embedding": kind_of(weights.embedding), "head": kind_of(weights.head.weight)}


def test_each_value_says_what_the_matrices_of_a_folder_become(model: TinyLlama) -> None:
    tables, layers = ("embedding", "head"), ("qkv", "attention_out", "gate_up", "down")
    for quantization, table, layer in (
        ("none", "float32", "float32"),
        ("file", "float32", "float32"),
        ("int8", "q8", "q8"),
        ("int4", "q8", "q4"),
    ):
        expected = dict.fromkeys(tables, table) | dict.fromkeys(layers, layer)
        assert kinds(model.files, quantization) == expected


def test_a_mixed_file_keeps_its_types_and_is_rounded_only_where_it_has_more_bits(
    mixed: ModelFiles,
) -> None:
    kept = {"qkv": "q8", "attention_out": "q8", "gate_up": "float32", "down": "q8", "embedding": "q8", "head": "q8"}  # fmt: skip
    assert kinds(mixed, "file") == kept  # 4 and 8 bits stacked: 8; 8 bits and halves: floats
    assert kinds(mixed, "int8") == kept | {"gate_up": "q8"}
    four = dict.fromkeys(("qkv", "attention_out", "gate_up", "down"), "q4")
    assert kinds(mixed, "int4") == kept | four
    assert set(kinds(mixed, "none").values()) == {"float32"}


def test_what_has_as_few_bits_is_not_rounded_again(mixed: ModelFiles) -> None:
    kept, rounded = (
        load(mixed, quantization)[1][0].down.weight for quantization in ("file", "int8")
    )
    assert torch.equal(kept.codes, rounded.codes)
    assert torch.equal(kept.scales, rounded.scales)


def test_a_tied_table_is_rounded_once(model: TinyLlama) -> None:
    weights, _ = load(model.files, "int8")
    assert weights.embedding is weights.head.weight


def test_weights_of_16_bits_stay_so_for_kernels_that_take_them(tmp_path: Path) -> None:
    model = tiny_llama(tmp_path / "model")
    for dtype, kept in ((torch.bfloat16, "bfloat16"), (torch.float16, "float16")):
        model.oracle.to(dtype).save_pretrained(tmp_path / kept)
        files = ModelFiles(kept, "hf", tmp_path / kept)
        assert kinds(files, "file")["qkv"] == kept
        assert kinds(files, "none")["qkv"] == "float32"
        name = {"bfloat16": "BF16", "float16": "F16"}[kept]
        path = tmp_path / f"{name}.gguf"
        model.oracle.float()
        blocks = write_gguf(model, path, store=lambda _, values, name=name: (encode(values, name), name))  # fmt: skip
        assert kinds(blocks, "file")["qkv"] == kept
        assert kinds(blocks, "none")["qkv"] == "float32"
        exact, stored = load(files, "none")[1], load(files, "file")[1]
        for one, other in zip(exact, stored, strict=True):
            assert torch.equal(one.down.weight, other.down.weight.float())


def logits_of(files: ModelFiles, quantization: str, kernels: str, cache: Path) -> np.ndarray:
    probe = LogitsProbe()
    options = {"num_pages": 16, "page_size": 4, "kv_dtype": "float32", "threads": 1}
    options |= {"dtype": "float32", "quantization": quantization, "sample": probe}
    if kernels == "native":
        runner = open_native_runner(files, cache_dir=cache, **options)  # type: ignore[arg-type]
        assert runner is not None
    else:
        runner = ModelRunner(files, kernels=kernels, **options)  # type: ignore[arg-type]
    plan = plan_step([(PagedSequence(list(range(12)), PROMPT), 30)], 4, logits="all", greedy=True)
    runner.finish(runner.launch(plan), None)
    return np.array(probe.logits)


@pytest.mark.parametrize(("quantization", "share"), [("file", 0.05), ("int8", 0.05), ("int4", 0.4)])
def test_a_mixed_model_answers_as_its_exact_floats_do(
    mixed: ModelFiles, quantization: str, share: float, tmp_path: Path
) -> None:
    exact = logits_of(mixed, "none", "reference", tmp_path)
    for kernels in ["reference", *(["native"] if HAS_NATIVE else [])]:
        found = logits_of(mixed, quantization, kernels, tmp_path)
        assert np.sqrt(np.square(found - exact).mean()) < share * exact.std(), kernels


@pytest.mark.skipif(not HAS_NATIVE, reason="no native kernels")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_native_products_of_stored_halves_have_the_bits_of_those_of_floats(
    dtype: torch.dtype, tmp_path: Path
) -> None:
    model = tiny_llama(tmp_path / "model")
    model.oracle.to(dtype).save_pretrained(tmp_path / "halves")
    files = ModelFiles("halves", "hf", tmp_path / "halves")
    outcomes = [logits_of(files, how, "native", tmp_path) for how in ("none", "file")]
    np.testing.assert_array_equal(outcomes[0], outcomes[1])


def test_the_types_of_the_mixed_file_are_what_it_says(mixed: ModelFiles) -> None:
    tensors = gguf.GGUFReader(str(mixed.path)).tensors
    assert {tensor.tensor_type.name for tensor in tensors} == {"F32", "Q4_K", *MIXED.values()}
