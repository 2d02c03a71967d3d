"""Each small reference op against its formula written out element by element, on random shapes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from attention_cases import attention_case, decoder_shape
from hypothesis import given, settings
from hypothesis import strategies as st

from radixlm.kernels.ops import KvPool, Linear, Rope
from radixlm.kernels.reference import elementwise, linear
from radixlm.kernels.reference.backend import ReferenceOps

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 17)


def normal(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@settings(max_examples=20, deadline=None)
@given(seed=seeds, rows=sizes, width=sizes)
def test_rms_norm_divides_by_the_root_mean_square(seed: int, rows: int, width: int) -> None:
    x, residual, weight = (
        normal(seed, rows, width),
        normal(seed + 1, rows, width),
        normal(seed + 2, width),
    )
    normed, summed = elementwise.add_rms_norm(x.clone(), residual.clone(), weight, 1e-5)
    for row in range(rows):
        total = [float(x[row, i]) + float(residual[row, i]) for i in range(width)]
        root = math.sqrt(sum(value * value for value in total) / width + 1e-5)
        expected = [value / root * float(weight[i]) for i, value in enumerate(total)]
        np.testing.assert_allclose(normed[row].numpy(), expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(summed[row].numpy(), total, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(
        elementwise.rms_norm(summed, weight, 1e-5).numpy(), normed.numpy()
    )


@settings(max_examples=20, deadline=None)
@given(seed=seeds, rows=sizes, width=sizes)
def test_silu_mul_gates_the_second_half(seed: int, rows: int, width: int) -> None:
    gate_up = normal(seed, rows, 2 * width)
    found = elementwise.silu_mul(gate_up)
    for row in range(rows):
        for i in range(width):
            gate, up = float(gate_up[row, i]), float(gate_up[row, width + i])
            assert float(found[row, i]) == pytest.approx(
                gate / (1 + math.exp(-gate)) * up, abs=1e-5
            )


@settings(max_examples=20, deadline=None)
@given(
    seed=seeds,
    rows=st.integers(1, 6),
    heads=st.integers(1, 4),
    kv_heads=st.integers(1, 3),
    pairs=st.integers(1, 5),
)
def test_rotation_turns_adjacent_pairs_and_writes_keys_and_values(
    seed, rows, heads, kv_heads, pairs
) -> None:
    head_dim = 2 * pairs + 2  # the last pair is beyond the rotary dimensions
    qkv = normal(seed, rows, (heads + 2 * kv_heads) * head_dim)
    random = np.random.default_rng(seed)
    positions, slots = random.integers(0, 500, rows), random.permutation(40)[:rows]
    frequencies = torch.from_numpy(random.uniform(0.001, 1, pairs).astype(np.float32))
    factors = elementwise.rotations(torch.from_numpy(positions), frequencies, 1.5)
    kv = KvPool(torch.zeros(2, 2, 40, kv_heads, head_dim), 8)
    q = elementwise.rotate_and_store(qkv, heads, kv, 1, factors, torch.from_numpy(slots))
    keys, values = kv.keys[1], kv.values[1]
    assert not kv.storage[0].any()
    stored = qkv.view(rows, -1, head_dim)
    for row in range(rows):
        for head in range(heads + kv_heads):
            before = stored[row, head]
            after = q[row, head] if head < heads else keys[slots[row], head - heads]
            for pair in range(pairs):
                angle = float(np.float32(positions[row]) * frequencies[pair].numpy())
                turned = (
                    complex(before[2 * pair], before[2 * pair + 1])
                    * 1.5
                    * complex(math.cos(angle), math.sin(angle))
                )
                assert complex(after[2 * pair], after[2 * pair + 1]) == pytest.approx(
                    turned, abs=1e-4
                )
            assert torch.equal(after[2 * pairs :], before[2 * pairs :])
        assert torch.equal(values[slots[row]], stored[row, heads + kv_heads :])
    untouched = np.setdiff1d(np.arange(40), slots)
    assert not keys[untouched].any()
    assert not values[untouched].any()


@settings(max_examples=20, deadline=None)
@given(
    seed=seeds, rows=sizes, inputs=sizes, outputs=sizes, biased=st.booleans(), packed=st.booleans()
)
def test_linear_multiplies_by_rows_of_the_weight(
    seed, rows, inputs, outputs, biased, packed
) -> None:
    x, weight = normal(seed, rows, inputs), normal(seed + 1, outputs, inputs)
    bias = normal(seed + 2, outputs) if biased else None
    ops = ReferenceOps(pack=packed and linear.can_pack())
    found = ops.linear(x, ops.prepare_linear(Linear(weight, bias)))
    for row in range(rows):
        for out in range(outputs):
            expected = sum(float(x[row, i]) * float(weight[out, i]) for i in range(inputs))
            expected += float(bias[out]) if bias is not None else 0.0
            assert float(found[row, out]) == pytest.approx(expected, abs=1e-4)


def test_this_torch_offers_packed_weights_and_they_multiply_alike_at_every_number_of_rows() -> None:
    assert linear.can_pack()
    weight = normal(0, 300, 200)
    packed = linear.pack(Linear(weight))
    for rows in (1, 2, 7, 64, 300):
        x = normal(rows, rows, 200)
        np.testing.assert_allclose(
            linear.apply(x, packed).numpy(), F.linear(x, weight).numpy(), atol=2e-4
        )


@settings(max_examples=20, deadline=None)
@given(seed=seeds, rows=st.integers(1, 6), heads=st.integers(1, 3), kv_heads=st.integers(1, 3))
def test_an_int8_pool_holds_each_head_of_a_token_by_its_own_scale(
    seed, rows, heads, kv_heads
) -> None:
    qkv = 3 * normal(seed, rows, (heads + 2 * kv_heads) * 8)
    qkv[0, -8:] = 0
    exact = KvPool(torch.zeros(1, 2, 16, kv_heads, 8), 8)
    rounded = KvPool(exact.storage.to(torch.int8), 8, torch.zeros(1, 2, 16, kv_heads))
    assert rounded.scales is not None
    factors = elementwise.rotations(torch.arange(rows), torch.ones(4), 1.0)
    slots = torch.randperm(16)[:rows]
    for kv in (exact, rounded):
        elementwise.rotate_and_store(qkv, heads, kv, 0, factors, slots)
    exact.storage[:] = elementwise.spread(exact.storage.flatten(0, 1)).view_as(exact.storage)
    share = rounded.scales * 127 / exact.storage.abs().amax(-1)
    assert torch.allclose(share[:, 0, slots], torch.ones(()))
    assert (share[:, 1, slots].nan_to_num(1.0) >= 1).all()
    assert (torch.frexp(rounded.scales[:, 1, slots])[0] == 0.5).all()
    shares = share[:, 1, slots][exact.storage[:, 1, slots].any(-1)]
    assert (shares < 2).all()
    error = (rounded.storage * rounded.scales[..., None] - exact.storage).abs()
    assert (error <= rounded.scales[..., None] * 0.501).all()


@settings(max_examples=20, deadline=None)
@given(seed=seeds, page_size=st.sampled_from([1, 4, 16]), count=st.integers(0, 4))
def test_page_copies_move_the_first_slots_of_every_layer_and_nothing_else(
    seed, page_size, count
) -> None:
    scales = normal(seed + 1, 3, 2, 10 * page_size, 2)
    kv = KvPool(normal(seed, 3, 2, 10 * page_size, 2, 4), page_size, scales)
    before, scales_before = kv.storage.clone(), scales.clone()
    random = np.random.default_rng(seed)
    pages = random.permutation(10)
    copies = np.array(
        [(pages[i], pages[9 - i], random.integers(1, page_size + 1)) for i in range(count)],
        np.int32,
    ).reshape(-1, 3)
    elementwise.copy_pages(kv, copies)
    for source, target, num_slots in copies:
        for slot in range(num_slots):
            for part in (before, scales_before):
                part[:, :, target * page_size + slot] = part[:, :, source * page_size + slot]
    assert torch.equal(kv.storage, before)
    assert torch.equal(scales, scales_before)


def test_embedding_takes_rows_of_the_table_and_the_step_knows_its_rows() -> None:
    shape = decoder_shape(2, 1, 4)
    case = attention_case(0, [(3, 1), (2, 2)], shape=shape)
    ops = ReferenceOps()
    case.batch.token_ids[:] = [4, 0, 2]
    meta = ops.begin_step(case.batch, shape, Rope(torch.ones(2)), case.kv)
    table = normal(0, 5, 8)
    assert torch.equal(ops.embed(meta, table), table[[4, 0, 2]])
    assert meta.logit_rows is not None
    assert meta.logit_rows.tolist() == [0, 2]
    half = Linear(table.bfloat16())
    assert ops.logits(table[:2].bfloat16(), ops.prepare_linear(half)).dtype == torch.float32
