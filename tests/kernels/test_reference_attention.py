"""Reference attention against dot products written out, on random steps; groups, routes and neighbours change nothing."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from attention_cases import AttentionCase, attention_case, decoder_shape, naive_attention
from hypothesis import given, settings
from hypothesis import strategies as st

from radixlm.kernels.ops import Rope
from radixlm.kernels.reference.attention import attend_flash, attend_plain
from radixlm.kernels.reference.attention_plan import PlanBuilder, SharedItem
from radixlm.kernels.reference.backend import ReferenceOps

SHAPE = decoder_shape(num_heads=6, num_kv_heads=2, head_dim=8)
ROUTES = {"plain": ReferenceOps(attend=attend_plain), "flash": ReferenceOps(attend=attend_flash)}


def run(case: AttentionCase, ops: ReferenceOps) -> torch.Tensor:
    meta = ops.begin_step(
        case.batch, case.shape, Rope(torch.ones(case.shape.head_dim // 2)), case.kv
    )
    return ops.attention(case.q, 0, case.kv, meta)


sequence_sizes = st.lists(
    st.tuples(st.integers(0, 40), st.one_of(st.just(1), st.integers(1, 6), st.integers(30, 45))),
    min_size=1,
    max_size=5,
)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=sequence_sizes,
    consecutive=st.booleans(),
    route=st.sampled_from(sorted(ROUTES)),
)
def test_mixed_steps_equal_attention_written_out(
    seed: int, sizes, consecutive: bool, route: str
) -> None:
    case = attention_case(seed, sizes, shape=SHAPE, consecutive=consecutive)
    np.testing.assert_allclose(
        run(case, ROUTES[route]).numpy(), naive_attention(case).numpy(), atol=2e-5
    )


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    news=st.lists(st.sampled_from([1, 1, 1, 4, 35]), min_size=4, max_size=6),
    inner_pages=st.integers(0, 30),
    consecutive=st.booleans(),
)
def test_shared_groups_change_nothing(
    seed: int, news: list[int], inner_pages: int, consecutive: bool
) -> None:
    outer_pages = 70
    tails = np.random.default_rng(seed).integers(0, 30, len(news))
    sizes = [
        (4 * (outer_pages + inner_pages) + int(tail), new)
        for tail, new in zip(tails, news, strict=True)
    ]
    shared = [(list(range(len(news))), outer_pages), ([1, 2], outer_pages + inner_pages)]
    case = attention_case(seed, sizes, shape=SHAPE, shared_pages=shared, consecutive=consecutive)
    alone = dataclasses.replace(case, batch=dataclasses.replace(case.batch, groups=()))
    np.testing.assert_allclose(
        run(case, ROUTES["flash"]).numpy(), run(alone, ROUTES["plain"]).numpy(), atol=2e-5
    )


def test_a_groups_prefix_is_read_once() -> None:
    case = attention_case(0, [(410, 1)] * 8, shape=SHAPE, shared_pages=[(list(range(8)), 100)])
    plan = PlanBuilder(case.batch, 4, 3, torch.device("cpu")).build()
    shared = [item for item in plan.items if isinstance(item, SharedItem)]
    assert [(item.rows.length, item.keys.length) for item in shared] == [(8, 400)]
    assert sum(item.keys.length for item in plan.items) == 400 + 8 * 11


def test_a_group_that_reaches_into_new_tokens_is_not_used_for_that_member() -> None:
    # a scheduler never plans this; a wrong answer would be silent, so the plan does not trust it
    sizes = [(400, 1), (400, 1), (396, 5)]
    case = attention_case(1, sizes, shape=SHAPE, shared_pages=[([0, 1, 2], 100)])
    np.testing.assert_allclose(
        run(case, ROUTES["flash"]).numpy(), naive_attention(case).numpy(), atol=2e-5
    )


def test_one_decoding_sequence_on_consecutive_pages_gathers_nothing() -> None:
    case = attention_case(0, [(100, 1)], shape=SHAPE, consecutive=True)
    plan = PlanBuilder(case.batch, 4, 3, torch.device("cpu")).build()
    assert plan.whole
    assert plan.items[0].keys.index is None
    assert plan.items[0].keys.length == 101


def test_a_nan_of_one_sequence_stays_in_its_rows() -> None:
    case = attention_case(2, [(30, 1), (25, 1), (28, 2)], shape=SHAPE)
    case.kv.storage[0, :, int(case.batch.slot_ids[1])] = torch.nan
    found = run(case, ROUTES["flash"])
    assert found[1].isnan().all()
    assert not found[[0, 2, 3]].isnan().any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_rounds_only_at_the_end(dtype: torch.dtype) -> None:
    case = attention_case(3, [(90, 1), (70, 40), (80, 3)], shape=SHAPE)
    half = dataclasses.replace(
        case, q=case.q.to(dtype), kv=dataclasses.replace(case.kv, storage=case.kv.storage.to(dtype))
    )
    exact = dataclasses.replace(
        case, q=half.q.float(), kv=dataclasses.replace(case.kv, storage=half.kv.storage.float())
    )
    for ops in ROUTES.values():
        found = run(half, ops)
        assert found.dtype == dtype
        np.testing.assert_allclose(found.float().numpy(), run(exact, ops).numpy(), atol=2e-2)
