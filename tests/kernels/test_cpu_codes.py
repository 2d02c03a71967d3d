"""Attention over an int8 pool by products of codes: what lies in the pool, and what is computed from it, written out in torch."""

from __future__ import annotations

import math

import native_models
import numpy as np
import pytest
import torch
from native_models import ModelKind, Row, make_pool, make_weights, next_step
from torch import Tensor

from radixlm.kernels.composed import ComposedModel
from radixlm.kernels.cpu.backend import BACKEND
from radixlm.kernels.cpu.library import instruction_sets, load
from radixlm.kernels.cpu.model import NativeModel
from radixlm.kernels.ops import KvPool, PrefixGroup
from radixlm.kernels.reference import elementwise
from radixlm.kernels.reference.backend import ReferenceMeta, ReferenceOps

REASON = BACKEND.unavailable_reason("cpu")
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))
ISAS = [] if REASON else [isa for isa in instruction_sets(load()) if isa.startswith("avx512")]
if not ISAS and not REASON:
    pytestmark = pytest.mark.skip(reason="this machine has no AVX-512 VNNI")


class CodedOps(ReferenceOps):
    """Attention of one sequence that lies in the pool's first slots, with the two roundings of `attention_codes.inl`."""

    num_seen = 0  # tokens before the step's

    def attention(self, q: Tensor, layer: int, kv: KvPool, meta: ReferenceMeta) -> Tensor:
        assert kv.scales is not None
        num_rows, num_heads, head_dim = q.shape
        per_kv = num_heads // kv.storage.shape[3]
        scales = elementwise.key_scales(q)
        codes = elementwise.quantize_heads(q, scales).double()
        mixed = torch.zeros(q.shape, dtype=torch.float64)
        for row in range(num_rows):
            end = self.num_seen + row + 1
            for head in range(num_heads):
                keys, values = kv.storage[layer, :, :end, head // per_kv].double()
                of_keys, of_values = kv.scales[layer, :, :end, head // per_kv].double()
                factor = (
                    scales[row, head].double() / math.sqrt(head_dim) / math.log(2)
                )  # to powers of two
                scores = (keys @ codes[row, head]) * of_keys * factor + of_values.log2()
                mixed[row, head] = blocks_mixed(scores, values, of_values)
        return elementwise.spread(mixed.float()).flatten(1)


def blocks_mixed(scores: Tensor, values: Tensor, scales: Tensor) -> Tensor:
    """Mixed values [D] of scores [n], powers of two with the values' own exponents in them: weights are rounded to 255ths, block by block."""
    total, weighed = torch.zeros(()), torch.zeros(values.shape[1])
    for start in range(0, len(scores), 64):
        block = slice(start, start + 64)
        most = scores[block].max()
        weights = near_power(scores[block] - most)
        unit = near_power(most - most.ceil()) * torch.exp2(most.ceil() - scores.max())
        total = total + unit * (weights / scales[block]).sum()
        weighed = weighed + unit * ((weights * 255).round() / 255) @ values[block]
    return weighed / total


def near_power(x: Tensor) -> Tensor:
    """2^x as `two_to_below_one` has it: a cubic polynomial."""
    whole = x.round()
    rest, power = x - whole, torch.zeros_like(x)
    for coefficient in (5.5171669e-2, 2.4261112e-1, 6.9326099e-1, 9.9992807e-1):
        power = power * rest + coefficient
    return power * torch.exp2(whole)


def model_kind(num_heads: int, num_kv_heads: int, head_dim: int) -> ModelKind:
    return ModelKind("f32", num_heads=num_heads, num_kv_heads=num_kv_heads, head_dim=head_dim, rotary=head_dim, num_layers=1)  # fmt: skip


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    ("num_heads", "num_kv_heads", "head_dim"),
    [(4, 2, 64), (9, 3, 16), (2, 2, 48), (7, 1, 128), (4, 2, 80), (2, 1, 256)],
)
def test_attention_over_codes_is_what_its_roundings_make_of_it(
    num_heads: int, num_kv_heads: int, head_dim: int, isa: str
) -> None:
    weights = make_weights(model_kind(num_heads, num_kv_heads, head_dim))
    # queries that are long enough for weights to differ
    weights.layers[0].qkv.weight[: num_heads * head_dim] *= 6
    native = NativeModel(weights, make_pool(weights, dtype=torch.int8), 2, isa)
    ops = CodedOps()
    written_out = ComposedModel(ops, weights, make_pool(weights, dtype=torch.int8))
    ids = np.random.default_rng(1).integers(0, 83, 160).tolist()
    rows = [Row(list(range(10)), ids) for _ in range(2)]
    for count in (1, 2, 67, 1, 15, 64, 1):
        ops.num_seen = rows[0].done
        found, expected = (
            model.forward(next_step([(row, count)], wanted="all"))
            for model, row in zip((native, written_out), rows, strict=True)
        )
        error = (found - expected).abs()
        assert error.median() < 1e-6
        assert error.max() < 0.02  # a query or weight next to a tie may be rounded the other way


def unpacked(kv: KvPool, page: int) -> tuple[Tensor, Tensor]:
    """Codes [L, 2, N, Hk, D] and scales [L, 2, N, Hk] of a pool whose pages are in chunks."""
    assert kv.scales is not None
    layers, _, slots, num_heads, head_dim = kv.storage.shape
    pages = slots // page
    raw = kv.storage.reshape(layers, 2, pages, page * num_heads * head_dim)
    keys = raw[:, 0].reshape(layers, pages, num_heads, head_dim // 4, page, 4)
    keys = keys.permute(0, 1, 4, 2, 3, 5).reshape(layers, slots, num_heads, head_dim)
    values = raw[:, 1].reshape(layers, pages, num_heads, page // 4, head_dim, 4)
    values = values.permute(0, 1, 3, 5, 2, 4).reshape(layers, slots, num_heads, head_dim)
    scales = kv.scales.reshape(layers, 2, pages, num_heads, page).transpose(3, 4)
    return torch.stack((keys ^ -128, values), 1), scales.reshape(kv.scales.shape)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("page", [16, 32, 64])
def test_pages_in_chunks_hold_the_codes_and_scales_of_the_reference(
    page: int, isa: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_models, "PAGE", page)
    weights = make_weights(model_kind(6, 3, 32))
    pools = [make_pool(weights, 16, dtype=torch.int8) for _ in range(2)]
    models = NativeModel(weights, pools[0], 2, isa), ComposedModel(ReferenceOps(), weights, pools[1])  # fmt: skip
    for model in models:
        row = Row(list(range(6)), np.random.default_rng(2).integers(0, 83, 90).tolist())
        for count in (3, 60, 1, 22):
            model.forward(next_step([(row, count)]))
        model.copy_pages(np.array([[0, 6, 16]], np.int32))
    codes, scales = unpacked(pools[0], page)
    assert pools[1].scales is not None
    torch.testing.assert_close(scales[:, :, :86], pools[1].scales[:, :, :86])
    assert (codes[:, :, :86].short() - pools[1].storage[:, :, :86].short()).abs().max() <= 1
    for part in (codes, scales):
        copied = part[:, :, 6 * page : 6 * page + 16]
        assert torch.equal(copied, part[:, :, :16])
        assert copied.any()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("head_dim", [16, 80, 256])
def test_a_sequence_has_the_same_bits_with_pages_of_any_size(
    head_dim: int, isa: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = make_weights(model_kind(6, 2, head_dim))
    ids = np.random.default_rng(5).integers(0, 83, 200).tolist()
    outcomes = set()
    for page, num_threads, chunks in ((16, 1, (200,)), (32, 2, (77, 1, 120, 2)), (64, 3, (64, 136))):  # fmt: skip
        monkeypatch.setattr(native_models, "PAGE", page)
        model = NativeModel(weights, make_pool(weights, 16, torch.int8), num_threads, isa)
        row = Row(list(range(15, 0, -1)), ids)
        parts = [model.forward(next_step([(row, count)], wanted="all")) for count in chunks]
        outcomes.add(torch.cat(parts).numpy().tobytes())
    assert len(outcomes) == 1


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("size", [1e-12, 1.0, 1e15])
def test_tokens_without_values_keep_their_share_beside_values_of_any_size(
    size: float, isa: str
) -> None:
    weights = make_weights(model_kind(2, 1, 32))
    assert isinstance(weights.embedding, Tensor)
    layer = weights.layers[0]
    # tokens below 40 live in the first half of the dimensions, which the values do not see
    weights.embedding[:40, 32:] = 0
    values = layer.qkv.weight[-32:]
    values[:, :32] = 0
    values.mul_(size)
    layer.attention_out.weight.mul_(1 / size)
    ids = np.random.default_rng(3).integers(0, 83, 90).tolist()
    found = []
    for dtype in (torch.int8, torch.float32):
        pool = make_pool(weights, dtype=dtype)
        model = NativeModel(weights, pool, 1, isa)
        found.append(model.forward(next_step([(Row(list(range(6)), ids), 90)], wanted="all")))
        if dtype == torch.int8:
            scales = unpacked(pool, 16)[1][0, 1, :90]
            assert (scales == elementwise.SMALLEST_SCALE).any()
            assert (scales > elementwise.SMALLEST_SCALE).any()
    assert (found[0] - found[1]).abs().max() < 0.15


@pytest.mark.parametrize("isa", ISAS)
def test_a_page_that_was_never_written_or_holds_anything_reaches_no_row(isa: str) -> None:
    weights = make_weights(model_kind(4, 2, 32))
    ids = np.random.default_rng(4).integers(0, 83, 90).tolist()
    outcomes = set()
    for filling in (0, 127, -1):
        pool = make_pool(weights, dtype=torch.int8)
        assert pool.scales is not None
        pool.storage.fill_(filling)
        pool.scales.fill_({0: 0.0, 127: torch.inf, -1: torch.nan}[filling])
        model = NativeModel(weights, pool, 2, isa)
        row = Row(list(range(6)), ids)
        parts = [model.forward(next_step([(row, n)], wanted="all")) for n in (5, 60, 1, 1, 7)]
        again = Row(list(range(6)), ids, 73)
        group = PrefixGroup(np.array([0, 1], np.int32), 4)
        other = Row([*range(4), 7, 8], ids, 73)
        parts.append(model.forward(next_step([(again, 1), (other, 1)], (group,)))[:1])
        outcomes.add(torch.cat(parts).numpy().tobytes())
    assert len(outcomes) == 1
