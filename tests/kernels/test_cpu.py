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
from radixlm.kernels.ops import PrefixGroup
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
    "4 bits, a product of whole spans": ModelKind("q4", hidden=96, inner=384, has_bias=True),
}  # fmt: skip

KV = {"float32": torch.float32, "bfloat16": torch.bfloat16, "int8": torch.int8}


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
@pytest.mark.parametrize(
    ("stored", "kv"),
    [
        ("f32", "float32"),
        ("bf16", "bfloat16"),
        ("f16", "float32"),
        ("q4", "int8"),
        ("q8", "bfloat16"),
    ],
)
def test_a_sequence_has_the_same_bits_in_any_batch_chunking_and_thread_count(
    stored: str, kv: str, isa: str
) -> None:
    weights = make_weights(ModelKind(stored))
    ids = ids_of(3, 150)
    outcomes = set()
    ways = [(1, [149, 1], 0), (2, [149, 1], 0), (2, [64, 64, 21, 1], 3), (1, [5] * 29 + [4, 1], 1), (3, [100, 49, 1], 40)]  # fmt: skip
    for num_threads, chunks, num_beside in ways:
        model = NativeModel(weights, make_pool(weights, 512, KV[kv]), num_threads, isa)
        beside = [
            Row(list(range(20 + 8 * i, 28 + 8 * i)), ids_of(9 + i, 100), i % 50)
            for i in range(num_beside)
        ]
        outcomes.add(tuple(logits_of(model, Row(list(range(10)), ids), chunks, beside)[-2:]))
    assert len(outcomes) == 1


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("stored", ["q4", "q8"])
def test_a_product_that_is_quantized_where_it_is_made_has_the_same_bits_on_any_threads(
    stored: str, isa: str
) -> None:
    weights = make_weights(ModelKind(stored, hidden=96, inner=384, has_bias=True))
    ids, outcomes = ids_of(3, 150), set()
    for num_threads, chunks in ((1, [149, 1]), (2, [146, 4]), (7, [70, 72, 7, 1])):
        model = NativeModel(weights, make_pool(weights), num_threads, isa)
        row = Row(list(range(10)), ids)
        parts = [model.forward(next_step([(row, n)], wanted="all")) for n in chunks]
        outcomes.add(torch.cat(parts).numpy().tobytes())
    assert len(outcomes) == 1


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kv", KV)
@pytest.mark.parametrize(("num_heads", "head_dim"), [(4, 40), (14, 40), (4, 32), (14, 32)])
def test_long_rows_split_among_threads_have_the_bits_of_one_thread(
    num_heads: int, head_dim: int, kv: str, isa: str
) -> None:
    weights = make_weights(ModelKind("f32", num_heads=num_heads, num_kv_heads=2, head_dim=head_dim, rotary=head_dim, num_layers=1))  # fmt: skip
    weights = replace(weights, shape=replace(weights.shape, context_length=1400))
    prefix, outcomes = ids_of(8, 1350), set()
    for num_threads in (1, 2, 5):
        model = NativeModel(weights, make_pool(weights, 128, KV[kv]), num_threads, isa)
        row = Row(list(range(88)), prefix)
        outcomes.add(tuple(logits_of(model, row, [1340, 1, 1, 1, 3, 1], [])[1:]))
        assert row.done == 1347
        other = Row([*range(80), *range(88, 96)], prefix[:1280] + ids_of(9, 20), 1280)
        again = Row(list(range(88)), prefix, 1346)
        work = [(again, 1), (other, 1)]
        group = PrefixGroup(np.array([0, 1], np.int32), 80)
        shared = model.logits(model.forward(next_step(work, (group,))))
        assert shared[0].numpy().tobytes() == next(iter(outcomes))[-1]
    assert len(outcomes) == 1


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kv", KV)
def test_a_shared_prefix_read_once_gives_the_same_bits_as_read_by_each(kv: str, isa: str) -> None:
    weights = make_weights(ModelKind("q4"))
    model = NativeModel(weights, make_pool(weights, 512, KV[kv]), 2, isa)
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


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kv", ["bfloat16", "int8"])
def test_rounded_keys_and_values_are_those_of_the_reference(kv: str, isa: str) -> None:
    kind = ModelKind("f32", hidden=48, num_heads=6, num_kv_heads=3, head_dim=24, rotary=16)
    weights = make_weights(kind)
    pools = [make_pool(weights, dtype=KV[kv]) for _ in range(2)]
    models = NativeModel(weights, pools[0], 2, isa), ComposedModel(ReferenceOps(), weights, pools[1])  # fmt: skip
    for chunk in (70, 1, 5, 1):
        found = []
        for model in models:
            rows = [Row(list(range(9)), ids_of(1, 140)), Row(list(range(20, 29)), ids_of(2, 140))]
            for row in rows:
                row.done = 0 if chunk == 70 else 70
            found.append(model.forward(next_step([(row, chunk) for row in rows], wanted="all")))
        # a value next to a rounding tie may go the other way
        assert (found[0] - found[1]).abs().max() < 0.05
        assert (found[0] - found[1]).abs().median() < 1e-5
    for model in models:
        model.copy_pages(np.array([[3, 11, 2], [2, 12, 16]], np.int32))
    steps = (pools[0].storage.float() - pools[1].storage.float()).abs()
    assert steps.max() <= (1 if kv == "int8" else 0.05)
    assert (steps > 0).float().mean() < 0.01
    if kv == "int8":
        ours, theirs = pools[0].scales, pools[1].scales
        assert ours is not None
        assert theirs is not None
        torch.testing.assert_close(ours, theirs, atol=1e-3, rtol=0)
        assert ours[:, :, 11 * 16 : 11 * 16 + 2].min() > 0
        assert ours[:, :, 11 * 16 + 2].max() == 0


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("stored", ["f32", "q4"])
def test_a_masked_head_has_the_bits_of_the_whole_where_the_mask_allows(
    stored: str, isa: str
) -> None:
    random = np.random.default_rng(7)
    weights = make_weights(ModelKind(stored, vocab=1003))
    hidden = torch.from_numpy(random.standard_normal((12, 64)).astype(np.float32))
    for num_threads in (1, 3):
        model = NativeModel(weights, make_pool(weights), num_threads, isa)
        whole = model.logits(hidden).numpy()
        for num_allowed in (0, 1, 5, 400, 1003):
            masks = [None if i % 5 == 3 else random.permutation(1003)[:num_allowed] for i in range(12)]  # fmt: skip
            packed = [None if ids is None else pack_mask(ids, 1003) for ids in masks]
            found = model.logits(hidden, packed).numpy()
            for row, ids in enumerate(masks):
                kept = np.arange(1003) if ids is None else ids
                assert np.array_equal(found[row, kept], whole[row, kept])
                if ids is None or num_allowed > 5:
                    assert np.array_equal(found[row], whole[row])
                else:
                    blocks = np.isin(np.arange(1003) // 16, ids // 16)
                    assert np.array_equal(found[row, blocks], whole[row, blocks])
                    assert (found[row, ~blocks] == -np.inf).all()


def pack_mask(ids: np.ndarray, vocab: int) -> np.ndarray:
    bits = np.zeros(-(-vocab // 32) * 32, np.uint8)
    bits[ids] = 1
    return np.packbits(bits, bitorder="little").view(np.uint32)


def test_keys_and_values_are_written_where_the_reference_writes_them() -> None:
    weights = make_weights(ModelKind("f32"))
    pools = make_pool(weights), make_pool(weights)
    models = NativeModel(weights, pools[0], 2), ComposedModel(ReferenceOps(), weights, pools[1])
    for model in models:
        model.forward(next_step([(Row([7, 3], ids_of(5, 20)), 20)]))
        model.copy_pages(np.array([[3, 11, 2]], np.int32))
    torch.testing.assert_close(pools[0].storage, pools[1].storage, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kv", ["bfloat16", "int8"])
def test_a_narrower_pool_costs_no_more_than_its_rounding(kv: str) -> None:
    weights = make_weights(ModelKind("f32"))
    found = []
    for dtype in (torch.float32, KV[kv]):
        model = NativeModel(weights, make_pool(weights, dtype=dtype), 2)
        found.append(model.logits(model.forward(next_step([(Row(list(range(8)), ids_of(6, 100)), 100)]))))  # fmt: skip
    assert 0 < (found[0] - found[1]).abs().max() < 0.1


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kv", KV)
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_token_that_is_not_a_number_spoils_no_token_before_it_or_beside_it(
    bad: float, kv: str, isa: str
) -> None:
    weights = make_weights(ModelKind("f32", num_heads=6, num_kv_heads=2, vocab=84))
    assert isinstance(weights.embedding, torch.Tensor)
    weights.embedding[83, 3] = bad
    ids = ids_of(7, 90)
    model = NativeModel(weights, make_pool(weights, dtype=KV[kv]), 2, isa)
    clean = model.forward(next_step([(Row(list(range(6)), ids), 90)], wanted="all"))
    for place in (1, 16, 33, 62, 63, 64, 75):  # in one step with it, and most in one tile
        spoiled = Row(list(range(6, 12)), [*ids[:place], 83, *ids[place + 1 :]])
        beside = Row(list(range(12, 18)), ids)
        found = model.forward(next_step([(spoiled, 90), (beside, 90)], wanted="all"))
        assert torch.equal(found[:place], clean[:place])
        assert found[place:90].isnan().all()
        assert torch.equal(found[90:], clean)


def test_a_key_that_is_not_a_number_stays_one_in_int8() -> None:
    weights = make_weights(ModelKind("f32"))
    model = NativeModel(weights, make_pool(weights, dtype=torch.int8), 1)
    assert isinstance(weights.embedding, torch.Tensor)
    weights.embedding[5, 3] = torch.nan
    broken = NativeModel(weights, make_pool(weights, dtype=torch.int8), 1)
    for each, is_broken in ((model, False), (broken, True)):
        hidden = each.forward(next_step([(Row([0], [5, 6]), 2)]))
        assert bool(hidden.isnan().any()) == is_broken


def test_what_the_kernels_do_not_take_is_refused_by_name() -> None:
    shape = make_weights(ModelKind("f32")).shape
    assert BACKEND.refusal(shape, torch.int8) is None
    assert "float16" in str(BACKEND.refusal(shape, torch.float16))
    narrow = replace(shape, head_dim=12)
    assert "heads of a multiple of 8" in str(BACKEND.refusal(narrow, torch.float32))
    assert "CPU" in str(BACKEND.unavailable_reason("cuda"))
