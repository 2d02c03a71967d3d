"""A GGUF model written again as a folder of floats, or as an AWQ or GPTQ checkpoint, so that quality on those can be measured on a real model.

Checkpoints are rounded to nearest by `packed_llamas.quantize`, without any calibration: as a model such a copy is worse than a published one.
The floats get noise of a twentieth of their groups' size, because they would lie on the 4-bit grid of the file they come from. (Rounded to 4
bits they would find that grid again, so int4 is not measured so.) What is measured is what the kernels lose, against the exact values of the same
copy.
"""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import torch
from packed_llamas import Recipe, quantize
from safetensors.torch import save_file

from radixlm.runtime.gguf_file import open_gguf
from radixlm.runtime.model_files import ModelFiles
from radixlm.runtime.models.dequantize import dequantize


def checkpoint_of(files: ModelFiles, recipe: Recipe | None, folder: Path) -> ModelFiles:
    """The model as a Hugging Face folder of that recipe; without one, of noisy floats."""
    noise = np.random.default_rng(0)
    file = open_gguf(files.path)
    about = {key.removeprefix("llama."): value for key, value in file.metadata.items()}
    heads = (about["attention.head_count"], about["attention.head_count_kv"])
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, about["block_count"])
    tensors: dict[str, torch.Tensor] = {}
    for name, (base, suffix) in _hf_names(names, about["block_count"]).items():
        if name not in file.tensors:
            continue
        values = dequantize(file.tensors[name]).numpy()
        if base.endswith(("q_proj", "k_proj")):
            values = _halves(values, heads[0] if base.endswith("q_proj") else heads[1])
        if recipe is None and values.ndim == 2:
            size = np.sqrt(np.square(values.reshape(len(values), -1, 32)).mean(-1)).repeat(32, 1)
            values = values + 0.05 * size * noise.standard_normal(values.shape, np.float32)
        if recipe is not None and base.endswith("_proj"):
            parts, _ = quantize(values, recipe)
            tensors |= {f"{base}.{part}": tensor for part, tensor in parts.items()}
        else:
            tensors[f"{base}.{suffix}"] = torch.from_numpy(np.ascontiguousarray(values))
    folder.mkdir(parents=True)
    save_file(tensors, folder / "model.safetensors")
    config = {
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": about["embedding_length"],
        "intermediate_size": about["feed_forward_length"],
        "num_hidden_layers": about["block_count"],
        "num_attention_heads": heads[0],
        "num_key_value_heads": heads[1],
        "vocab_size": file.tensors["token_embd.weight"].shape[0],
        "max_position_embeddings": about["context_length"],
        "rms_norm_eps": about["attention.layer_norm_rms_epsilon"],
        "rope_theta": about["rope.freq_base"],
        "tie_word_embeddings": "output.weight" not in file.tensors,
    }
    if recipe is not None:
        config["quantization_config"] = recipe.config()
    (folder / "config.json").write_text(json.dumps(config))
    return ModelFiles(folder.name, "hf", folder)


def _hf_names(names: gguf.TensorNameMap, num_layers: int) -> dict[str, tuple[str, str]]:
    """GGUF name -> Hugging Face name and suffix."""
    layer = ("input_layernorm", "post_attention_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
             "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")  # fmt: skip
    bases = ["model.embed_tokens", "model.norm", "lm_head"]
    bases += [f"model.layers.{index}.{part}" for index in range(num_layers) for part in layer]
    return {f"{names.get_name(base)}.weight": (base, "weight") for base in bases}


def _halves(values: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a head from adjacent pairs to two halves, the order of Hugging Face folders."""
    pairs = values.reshape(heads, -1, 2, values.shape[1])
    return np.ascontiguousarray(pairs.swapaxes(1, 2).reshape(values.shape))
