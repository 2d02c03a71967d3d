"""Tiny random Llamas for tests: a Hugging Face folder made by transformers (the oracle), and the same weights as GGUF."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from radixlm.runtime.model_files import ModelFiles

Store = Callable[[str, np.ndarray], tuple[np.ndarray, str]]


@dataclasses.dataclass(frozen=True)
class TinyLlama:
    """A model on disk and transformers' own instance of it."""

    files: ModelFiles
    oracle: LlamaForCausalLM

    def logits(self, token_ids: list[int]) -> np.ndarray:
        """transformers' logits [n, vocab] of the whole prompt."""
        with torch.inference_mode():
            return self.oracle(torch.tensor([token_ids])).logits[0].numpy()


def tiny_llama(folder: Path, seed: int = 0, **overrides: Any) -> TinyLlama:
    """Save a random Llama of two layers into `folder`; `overrides` are LlamaConfig arguments."""
    torch.manual_seed(seed)
    settings = {
        "vocab_size": 97,
        "hidden_size": 48,
        "intermediate_size": 80,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,  # which every kernel backend takes
        "max_position_embeddings": 512,
        "initializer_range": 0.15,  # large enough that a wrong position or head shows in the logits
        "tie_word_embeddings": True,
    }
    oracle = LlamaForCausalLM(LlamaConfig(**(settings | overrides))).eval()
    with torch.no_grad():  # biases and norms start as 0 and 1, which would hide a missing one
        for name, parameter in oracle.named_parameters():
            if name.endswith("bias") or "norm" in name:
                parameter.add_(torch.randn_like(parameter) * 0.2)
    folder.mkdir(parents=True, exist_ok=True)
    oracle.save_pretrained(folder)
    return TinyLlama(ModelFiles(str(folder), "hf", folder), oracle)


def edit_config(folder: Path, **changes: Any) -> None:
    """Change keys of a saved config.json; None removes one."""
    path = folder / "config.json"
    settings = json.loads(path.read_text()) | changes
    path.write_text(
        json.dumps({key: value for key, value in settings.items() if value is not None})
    )


def write_gguf(
    model: TinyLlama, path: Path, skip: str = "", store: Store | None = None
) -> ModelFiles:
    """The same weights as a GGUF file of float32 tensors, query and key rows in the order that format has.

    `skip` names a GGUF tensor to leave out. `store` gives the blocks of a matrix and the name of their type.
    """
    config = model.oracle.config
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_key_length(config.head_dim)
    _add_rope(writer, config)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, tensor in model.oracle.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        base, suffix = name.rsplit(".", 1)
        values = tensor.numpy()
        if ".q_proj" in name or ".k_proj" in name:
            values = _adjacent(values, config.head_dim)
        name = f"{names.get_name(base)}.{suffix}"
        values = np.ascontiguousarray(values)
        if name != skip and store is not None and values.ndim == 2:
            blocks, type_name = store(name, values)
            kind = gguf.GGMLQuantizationType[type_name]
            writer.add_tensor(name, blocks, raw_dtype=kind)
        elif name != skip:
            writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return ModelFiles(str(path), "gguf", path)


def _add_rope(writer: gguf.GGUFWriter, config: LlamaConfig) -> None:
    rope = config.rope_parameters
    if rope["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    elif rope["rope_type"] == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    elif rope["rope_type"] == "llama3":  # one divisor a pair, as a tensor
        plain = rope["rope_theta"] ** -(np.arange(0, config.head_dim, 2) / config.head_dim)
        scaled = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")[0].numpy()
        writer.add_tensor("rope_freqs.weight", (plain / scaled).astype(np.float32))


def _adjacent(values: np.ndarray, head_dim: int) -> np.ndarray:
    paired = values.reshape(-1, 2, head_dim // 2, *values.shape[1:])
    return paired.swapaxes(1, 2).reshape(values.shape)
