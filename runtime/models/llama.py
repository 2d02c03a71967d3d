"""The Llama family: names of its weights in both formats, its configuration, and how they become `DecoderWeights`.

Owns what is particular to Llama files. Covers grouped-query attention, tied and untied embeddings, attention and MLP biases, an explicit
head size, and the rotary kinds of `rope`. Knows nothing of kernels beyond the weights they take.

Rotary layout: kernels turn adjacent pairs (2i, 2i+1). Hugging Face files pair dimension i with i + D/2, so query and key rows are
reordered here; GGUF files of this family are written in adjacent order already and stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...errors import ModelError
from ...kernels.ops import (
    DecoderShape,
    DecoderWeights,
    LayerWeights,
    Linear,
    QuantizedWeight,
    Rope,
)
from .registry import Family
from .rope import make_rope
from .round_weights import stack
from .source import WeightSource, check_shape, read_checked, setting


@dataclass(frozen=True, slots=True)
class _Names:
    """What a format calls each tensor; `layer` is the prefix of layer i."""

    layer: str
    embedding: str
    final_norm: str
    head: str
    attention_norm: str
    q: str
    k: str
    v: str
    attention_out: str
    mlp_norm: str
    gate: str
    up: str
    down: str


_GGUF = _Names(
    layer="blk.{}.",
    embedding="token_embd.weight",
    final_norm="output_norm.weight",
    head="output.weight",
    attention_norm="attn_norm.weight",
    q="attn_q",
    k="attn_k",
    v="attn_v",
    attention_out="attn_output",
    mlp_norm="ffn_norm.weight",
    gate="ffn_gate",
    up="ffn_up",
    down="ffn_down",
)
_HF = _Names(
    layer="model.layers.{}.",
    embedding="model.embed_tokens.weight",
    final_norm="model.norm.weight",
    head="lm_head.weight",
    attention_norm="input_layernorm.weight",
    q="self_attn.q_proj",
    k="self_attn.k_proj",
    v="self_attn.v_proj",
    attention_out="self_attn.o_proj",
    mlp_norm="post_attention_layernorm.weight",
    gate="mlp.gate_proj",
    up="mlp.up_proj",
    down="mlp.down_proj",
)


@dataclass(frozen=True, slots=True)
class _Config:
    shape: DecoderShape
    rope: Rope
    tied: bool
    attention_bias: bool | None  # None: whatever biases the file has
    mlp_bias: bool | None


def load(source: WeightSource) -> DecoderWeights:
    """Read configuration, embeddings and head; layers follow when iterated. ModelError names what is missing or of a wrong shape."""
    names, config = (
        (_GGUF, _gguf_config(source)) if source.kind == "gguf" else (_HF, _hf_config(source))
    )
    shape = config.shape
    table = (shape.vocab_size, shape.hidden_size)
    embedding = _weight(source, names.embedding, table)
    return DecoderWeights(
        shape=shape,
        rope=config.rope,
        embedding=embedding,
        layers=_layers(source, names, config),
        final_norm=read_checked(source, names.final_norm, (shape.hidden_size,)),
        head=Linear(embedding if config.tied else _weight(source, names.head, table)),
    )


def _layers(source: WeightSource, names: _Names, config: _Config) -> Iterator[LayerWeights]:
    for index in range(config.shape.num_layers):
        yield _Layer(source, names, config, names.layer.format(index)).read()


class _Layer:
    """Reads the tensors of one layer."""

    def __init__(self, source: WeightSource, names: _Names, config: _Config, prefix: str) -> None:
        self._source = source
        self._names = names
        self._config = config
        self._prefix = prefix

    def read(self) -> LayerWeights:
        names, shape = self._names, self._config.shape
        attention_bias, mlp_bias = self._config.attention_bias, self._config.mlp_bias
        hidden, inner = shape.hidden_size, shape.intermediate_size
        num_query, num_kv = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
        q = self._linear(names.q, num_query, hidden, attention_bias)
        k = self._linear(names.k, num_kv, hidden, attention_bias)
        v = self._linear(names.v, num_kv, hidden, attention_bias)
        if self._source.kind == "hf":
            q, k = (_adjacent_pairs(x, shape.head_dim) for x in (q, k))
        return LayerWeights(
            attention_norm=self._norm(names.attention_norm),
            qkv=_stack(q, k, v),
            attention_out=self._linear(names.attention_out, hidden, num_query, attention_bias),
            mlp_norm=self._norm(names.mlp_norm),
            gate_up=_stack(
                self._linear(names.gate, inner, hidden, mlp_bias),
                self._linear(names.up, inner, hidden, mlp_bias),
            ),
            down=self._linear(names.down, hidden, inner, mlp_bias),
        )

    def _norm(self, name: str) -> Tensor:
        return read_checked(self._source, self._prefix + name, (self._config.shape.hidden_size,))

    def _linear(self, name: str, num_out: int, num_in: int, has_bias: bool | None) -> Linear:
        name = self._prefix + name
        if has_bias is None:
            has_bias = self._source.shape_of(name + ".bias") is not None
        bias = read_checked(self._source, name + ".bias", (num_out,)) if has_bias else None
        return Linear(_weight(self._source, name + ".weight", (num_out, num_in)), bias)


def _weight(
    source: WeightSource, name: str, shape: tuple[int, int]
) -> torch.Tensor | QuantizedWeight:
    check_shape(source, name, shape)
    return source.read_weight(name)


def _stack(*parts: Linear) -> Linear:
    """Linears over one input as a single one. A part without bias counts as zero when another has one."""
    weight = _stacked([part.weight for part in parts])
    if all(part.bias is None for part in parts):
        return Linear(weight)
    biases = [
        torch.zeros(part.weight.shape[0]) if part.bias is None else part.bias for part in parts
    ]
    return Linear(weight, torch.cat(biases))


def _stacked(weights: Sequence[Tensor | QuantizedWeight]) -> Tensor | QuantizedWeight:
    """Rows of all, quantized if all are."""
    kept = [weight for weight in weights if isinstance(weight, QuantizedWeight)]
    if len(kept) == len(weights):
        return stack(kept)
    floats = [w.to_floats() if isinstance(w, QuantizedWeight) else w for w in weights]
    return torch.cat(floats)


def _adjacent_pairs(linear: Linear, head_dim: int) -> Linear:
    """Reorder each head's rows from (0, 1, .. | D/2, D/2+1, ..) to (0, D/2, 1, D/2+1, ..)."""

    def reorder(x: Tensor) -> Tensor:
        return x.unflatten(0, (-1, 2, head_dim // 2)).transpose(1, 2).flatten(0, 2)

    weight = linear.weight
    if isinstance(weight, QuantizedWeight):
        minimums = None if weight.minimums is None else reorder(weight.minimums)
        turned = QuantizedWeight(reorder(weight.codes), reorder(weight.scales), minimums)
    else:
        turned = reorder(weight)
    return Linear(turned, None if linear.bias is None else reorder(linear.bias))


def _shape(**numbers: Any) -> DecoderShape:
    shape = DecoderShape(**numbers)
    wrong = [name for name in DecoderShape.__slots__ if getattr(shape, name) <= 0]
    if wrong:
        raise ModelError(
            f"the model's configuration has {wrong[0]} = {getattr(shape, wrong[0])}", place=wrong[0]
        )
    if shape.num_heads % shape.num_kv_heads:
        raise ModelError(
            f"{shape.num_heads} query heads cannot share {shape.num_kv_heads} key/value heads evenly"
        )
    if shape.head_dim % 2:
        raise ModelError(f"a head of {shape.head_dim} dimensions cannot be rotated in pairs")
    return shape


def _gguf_config(source: WeightSource) -> _Config:
    # keys are llama.* here, but a renamed architecture of the same family would bring its own prefix
    prefix = f"{source.settings['general.architecture']}."
    settings = {
        key.removeprefix(prefix): value
        for key, value in source.settings.items()
        if key.startswith(prefix)
    }
    if settings.get("expert_count"):
        raise ModelError("mixtures of experts are not supported", place=f"{prefix}expert_count")
    embedding = source.shape_of(_GGUF.embedding)
    if embedding is None or len(embedding) != 2:
        raise ModelError(f"the model has no tensor {_GGUF.embedding!r}", place=_GGUF.embedding)
    hidden_size = setting(settings, "embedding_length", int)
    num_heads = setting(settings, "attention.head_count", int)
    shape = _shape(
        num_layers=setting(settings, "block_count", int),
        hidden_size=hidden_size,
        num_heads=num_heads,
        num_kv_heads=setting(settings, "attention.head_count_kv", int, num_heads),
        head_dim=setting(settings, "attention.key_length", int, hidden_size // max(num_heads, 1)),
        intermediate_size=setting(settings, "feed_forward_length", int),
        vocab_size=embedding[0],
        context_length=setting(settings, "context_length", int),
        rms_epsilon=setting(settings, "attention.layer_norm_rms_epsilon", float),
    )
    for name in ("attention.value_length", "rope.dimension_count"):
        if setting(settings, name, int, shape.head_dim) != shape.head_dim:
            raise ModelError(
                f"{prefix}{name} = {settings[name]} differs from the head size {shape.head_dim}",
                place=name,
            )
    return _Config(
        shape, _gguf_rope(source, settings, shape), source.shape_of(_GGUF.head) is None, None, None
    )


def _gguf_rope(source: WeightSource, settings: Mapping[str, Any], shape: DecoderShape) -> Rope:
    parameters = {
        "rope_type": settings.get("rope.scaling.type"),
        "factor": settings.get("rope.scaling.factor"),
        "original_max_position_embeddings": settings.get("rope.scaling.original_context_length"),
        "attention_factor": settings.get("rope.scaling.attn_factor"),
    }
    base = setting(settings, "rope.freq_base", float, 10000.0)
    rope = make_rope(parameters, shape.head_dim, base, shape.context_length)
    if source.shape_of("rope_freqs.weight") is None:
        return rope
    # how GGUF stores the llama3 kind: one divisor for each pair
    divisors = read_checked(source, "rope_freqs.weight", (shape.head_dim // 2,))
    return Rope(rope.inverse_frequencies / divisors.float(), rope.scale)


def _hf_config(source: WeightSource) -> _Config:
    settings = source.settings
    for name, usual in (
        ("hidden_act", "silu"),
        ("sliding_window", None),
    ):
        if settings.get(name, usual) != usual:
            raise ModelError(f"{name} = {settings[name]!r} is not supported", place=name)
    hidden_size = setting(settings, "hidden_size", int)
    num_heads = setting(settings, "num_attention_heads", int)
    shape = _shape(
        num_layers=setting(settings, "num_hidden_layers", int),
        hidden_size=hidden_size,
        num_heads=num_heads,
        num_kv_heads=setting(settings, "num_key_value_heads", int, num_heads),
        head_dim=setting(settings, "head_dim", int, hidden_size // max(num_heads, 1)),
        intermediate_size=setting(settings, "intermediate_size", int),
        vocab_size=setting(settings, "vocab_size", int),
        context_length=setting(settings, "max_position_embeddings", int, 2048),
        rms_epsilon=setting(settings, "rms_norm_eps", float, 1e-6),
    )
    # one dictionary in newer files, a base and a scaling dictionary in older ones
    parameters = settings.get("rope_parameters") or settings.get("rope_scaling") or {}
    if parameters.get("partial_rotary_factor", 1.0) != 1.0:
        raise ModelError(
            "partial rotary embeddings are not supported", place="partial_rotary_factor"
        )
    base = setting(settings, "rope_theta", float, setting(parameters, "rope_theta", float, 10000.0))
    return _Config(
        shape=shape,
        rope=make_rope(parameters, shape.head_dim, base, shape.context_length),
        tied=bool(settings.get("tie_word_embeddings", False)),
        attention_bias=bool(settings.get("attention_bias", False)),
        mlp_bias=bool(settings.get("mlp_bias", False)),
    )


FAMILY = Family(
    name="llama",
    gguf_architectures=frozenset({"llama"}),
    hf_architectures=frozenset({"LlamaForCausalLM", "MistralForCausalLM"}),
    load=load,
)
