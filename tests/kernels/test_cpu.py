"""The native kernels: equal to the reference on random models, and the same bits for every way of computing a sequence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from native_models import ModelKind, Row, make_pool, make_weights, next_step

from radixlm.kernels.composed import ComposedModel
from radixlm.kernels.cpu.backend import BACKEND
from radixlm.kernels.cpu.library import instruction_sets, load
from radixlm.kernels.cpu.model import NativeModel
from radixlm.kernels.ops import KvPool, PrefixGroup
from radixlm.kernels.reference.backend import ReferenceOps

REASON = BACKEND.unavailable_reason("cpu")
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))
ISAS = [] if REASON else instruction_sets(load())

KINDS = {
    "float32": ModelKind("f32"),
    "bfloat16": ModelKind("bf16"),
    "4 bits": ModelKind("q4"),
    "8 bits": ModelKind("q8"),
    "odd sizes and biases": ModelKind(
        "f32", hidden=40, inner=72, num_heads=6, num_kv_heads=3, head_dim=24, has_bias=True, rotary=16
    ),
    "4 bits with biases": ModelKind("q4", num_heads=3, num_kv_heads=1, head_dim=64, rotary=64, has_bias=True),
}  # fmt: skip


def ids_of(seed: int, count: int, vocab: int = 83) -> list[int]:
    return np.random.default_rng(seed).integers(0, vocab, count).tolist()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", KINDS)
def test_steps_equal_the_reference_on_every_instruction_set(name: str, isa: str) -> None:
    weights = make_weights(KINDS[name])
    native = NativeModel(weights, make_pool(weights), 2, isa)
    twin = (
        make_weights(replace(KINDS[name], stored="bf16 as f32")) if name == "bfloat16" else weights
    )
    reference = ComposedModel(ReferenceOps(), twin, make_pool(weights))
    for seed, (chunk, wanted) in enumerate([(70, "all"), (1, "last"), (3, "last"), (9, "none")]):
        outcomes = []
        for model in (native, reference):
            rows = [
                Row(list(range(9, 0, -1)), ids_of(1, 140), seed and 70 + seed),
                Row(list(range(20, 29)), ids_of(2, 140), seed and 70 + seed),
            ]
            hidden = model.forward(next_step([(row, chunk) for row in rows], wanted=wanted))
            outcomes.append(model.logits(hidden))
        assert outcomes[0].shape == outcomes[1].shape
        if wanted != "none":
            difference = (outcomes[0] - outcomes[1]).abs()
            # an activation next to a rounding tie may go the other way, and then its row's later layers differ a little
            assert difference.max() < (0.3 if "bits" in name else 1e-3)
            assert difference.median() < (0.04 if "bits" in name else 1e-4)


def logits_of(model: NativeModel, row: Row, chunks: list[int], beside: list[Row]) -> list[bytes]:
    """Bits of the last row's logits after each chunk, with `beside` computed in the same steps."""
    found = []
    for chunk in chunks:
        work = [(row, chunk), *((other, 1) for other in beside)]
        found.append(model.logits(model.forward(next_step(work)))[0].numpy().tobytes())
    return found


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("stored", ["f32", "bf16", "q4", "q8"])
def test_a_sequence_has_the_same_bits_in_any_batch_chunking_and_thread_count(
    stored: str, isa: str
) -> None:
    weights = make_weights(ModelKind(stored))
    ids = ids_of(3, 150)
    outcomes = set()
    ways = [(1, [149, 1], 0), (2, [149, 1], 0), (2, [64, 64, 21, 1], 3), (1, [5] * 29 + [4, 1], 1), (3, [100, 49, 1], 40)]  # fmt: skip
    for num_threads, chunks, num_beside in ways:
        model = NativeModel(weights, make_pool(weights, 512), num_threads, isa)
        beside = [
            Row(list(range(20 + 8 * i, 28 + 8 * i)), ids_of(9 + i, 100), i % 50)
            for i in range(num_beside)
        ]
        outcomes.add(tuple(logits_of(model, Row(list(range(10)), ids), chunks, beside)[-2:]))
    assert len(outcomes) == 1


@pytest.mark.parametrize("isa", ISAS)
def test_a_shared_prefix_read_once_gives_the_same_bits_as_read_by_each(isa: str) -> None:
    weights = make_weights(ModelKind("q4"))
    model = NativeModel(weights, make_pool(weights, 512), 2, isa)
    prefix = ids_of(4, 128)
    shared = list(range(8))
    first = Row(shared, prefix)
    model.forward(next_step([(first, 128)]))

    def branches() -> list[tuple[Row, int]]:
        own = [[8 + 2 * i, 9 + 2 * i] for i in range(40)]
        return [(Row(shared + pages, prefix + ids_of(i, 20), 128), 1 + i % 3) for i, pages in enumerate(own)]  # fmt: skip

    alone = model.forward(next_step(branches()))
    everyone = np.arange(40, dtype=np.int32)
    nested = (PrefixGroup(everyone, 5), PrefixGroup(everyone[:20], 8))
    for groups in ((PrefixGroup(everyone, 8),), nested, (PrefixGroup(everyone, 3),)):
        assert torch.equal(model.forward(next_step(branches(), groups)), alone)


def test_keys_and_values_are_written_where_the_reference_writes_them() -> None:
    weights = make_weights(ModelKind("f32"))
    pools = make_pool(weights), make_pool(weights)
    models = NativeModel(weights, pools[0], 2), ComposedModel(ReferenceOps(), weights, pools[1])
    for model in models:
        model.forward(next_step([(Row([7, 3], ids_of(5, 20)), 20)]))
        model.copy_pages(np.array([[3, 11, 2]], np.int32))
    torch.testing.assert_close(pools[0].storage, pools[1].storage, atol=1e-5, rtol=0)


def test_a_pool_of_bfloat16_costs_no_more_than_its_rounding() -> None:
    weights = make_weights(ModelKind("f32"))
    exact = NativeModel(weights, make_pool(weights), 2)
    half_pool = KvPool(make_pool(weights).storage.bfloat16(), 16)
    rounded = NativeModel(weights, half_pool, 2)
    found = [
        model.logits(model.forward(next_step([(Row(list(range(8)), ids_of(6, 100)), 100)])))
        for model in (exact, rounded)
    ]
    assert 0 < (found[0] - found[1]).abs().max() < 0.1


def test_what_the_kernels_do_not_take_is_refused_by_name() -> None:
    shape = make_weights(ModelKind("f32")).shape
    assert BACKEND.refusal(shape, torch.float32) is None
    assert "float16" in str(BACKEND.refusal(shape, torch.float16))
    narrow = replace(shape, head_dim=12)
    assert "heads of a multiple of 8" in str(BACKEND.refusal(narrow, torch.float32))
    assert "CPU" in str(BACKEND.unavailable_reason("cuda"))
