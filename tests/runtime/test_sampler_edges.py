"""Single rules of both samplers: ties, penalties, masks, rows that fail, rows in any order."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from both_samplers import SAMPLERS, run, sample, using
from sampling_oracle import NO_SCORES, Row, build_batch, draw

from radixlm.runtime.plan import INFINITE, NOT_A_NUMBER, NOTHING_ALLOWED


@pytest.fixture(autouse=True, scope="module", params=SAMPLERS)
def _which(request: pytest.FixtureRequest) -> Iterator[None]:
    """The sampler under test."""
    with using(request.param):
        yield


def test_greedy_takes_the_lowest_id_of_a_tie() -> None:
    logits = np.array([[0.0, 3.0, 1.0, 3.0], [5.0, 5.0, 5.0, 5.0]], np.float32)
    assert run(logits, [Row(), Row()]).token_ids.tolist() == [1, 0]
    assert run(logits, [Row(bias={0: 3.0}), Row(allowed={2, 3})]).token_ids.tolist() == [0, 2]


def test_top_k_of_a_tie_keeps_the_lowest_ids() -> None:
    logits = np.tile(np.array([1.0, 2.0, 2.0, 2.0, 0.0], np.float32), (300, 1))
    rows = [Row(temperature=1.0, top_k=2, position=i) for i in range(300)]
    assert set(run(logits, rows).token_ids.tolist()) == {1, 2}
    rows = [Row(temperature=1.0, top_k=1, position=i) for i in range(300)]
    assert set(run(logits, rows).token_ids.tolist()) == {1}


def test_top_p_that_is_reached_exactly_keeps_no_further_token() -> None:
    rows = [Row(temperature=1.0, top_p=0.5, position=i) for i in range(300)]
    assert set(run(np.zeros((300, 4), np.float32), rows).token_ids.tolist()) == {0, 1}


def test_a_tiny_temperature_is_greedy_and_not_an_overflow() -> None:
    logits = np.random.default_rng(1).normal(size=(4, 50)).astype(np.float32)
    rows = [Row(temperature=t, seed=3) for t in (1e-30, 1e-8, 1e-4, 1e-40)]
    result = run(logits, rows)
    assert (result.token_ids == logits.argmax(axis=1)).all()
    assert result.errors == ()


def test_penalties_follow_their_formulas() -> None:
    logits = np.array([[3.0, 2.9, -1.0, -1.2]], np.float32)
    plain = Row(repetition=1.5, prompt_ids={0})
    assert run(logits, [plain]).token_ids.tolist() == [1]  # 3 / 1.5 < 2.9
    assert run(-logits, [Row(repetition=2.0, output_counts={3: 1})]).token_ids.tolist() == [2]
    assert run(logits, [Row(frequency=0.06, output_counts={0: 2})]).token_ids.tolist() == [1]
    assert run(logits, [Row(frequency=0.04, output_counts={0: 2})]).token_ids.tolist() == [0]
    assert run(logits, [Row(presence=0.11, output_counts={0: 9})]).token_ids.tolist() == [1]
    assert run(logits, [Row(presence=0.11, frequency=9.0, prompt_ids={0})]).token_ids.tolist() == [
        0
    ]


@pytest.mark.parametrize(
    "options",
    [{"top_k": 1}, {"top_p": 0.1}, {"min_p": 0.9}, {"top_k": 40, "top_p": 0.9, "min_p": 0.1}],
)
def test_a_mask_that_excludes_the_likely_tokens_leaves_others_to_draw(options: dict) -> None:
    logits = np.sort(np.random.default_rng(2).normal(size=(1, 500)).astype(np.float32))[:, ::-1] * 8
    allowed = {60, 77, 450}
    for temperature in (0.0, 1.0):
        row = Row(temperature=temperature, allowed=allowed, **options)
        result = run(
            np.repeat(logits, 20, axis=0), [Row(**{**vars(row), "position": i}) for i in range(20)]
        )
        assert set(result.token_ids.tolist()) <= allowed
        assert result.errors == ()


def test_failing_rows_are_named_and_their_neighbours_unharmed() -> None:
    rng = np.random.default_rng(5)
    logits = rng.normal(size=(7, 40)).astype(np.float32)
    logits[1, 7] = np.nan
    logits[2] = -np.inf
    logits[4, 3] = np.inf
    rows = [
        Row(temperature=1.0, num_logprobs=1),
        Row(temperature=1.0, num_logprobs=1),
        Row(),
        Row(allowed=set()),
        Row(temperature=0.5),
        Row(allowed={5}, bias={5: -math.inf}, temperature=1.0),
        Row(temperature=1.0, num_logprobs=1, allowed={9, 11}),
    ]
    result = run(logits, rows)
    assert dict(result.errors) == {
        1: NOT_A_NUMBER,
        2: NOTHING_ALLOWED,
        3: NOTHING_ALLOWED,
        4: INFINITE,
        5: NOTHING_ALLOWED,
    }
    assert result.token_ids[[1, 2, 3, 4, 5]].tolist() == [-1] * 5
    assert int(result.token_ids[0]) == draw(logits[0], rows[0])[0]
    assert int(result.token_ids[6]) in (9, 11)
    assert result.logprobs is not None
    assert np.isfinite(result.logprobs.chosen[[0, 6]]).all()


def test_the_logits_stay_as_they_were() -> None:
    logits = torch.randn(3, 50, generator=torch.Generator().manual_seed(0))
    before = logits.clone()
    rows = [Row(temperature=1.0, top_p=0.5), Row(bias={1: 5.0}), Row(allowed={3})]
    batch, masks = build_batch(rows, 50)
    sample(logits, batch, masks, NO_SCORES)
    assert torch.equal(logits, before)


def test_rows_may_be_any_rows_of_the_logits() -> None:
    logits = np.random.default_rng(4).normal(size=(5, 33)).astype(np.float32)
    result = run(logits, [Row(), Row(allowed={32})], logit_rows=[3, 1])
    assert result.token_ids.tolist() == [int(logits[3].argmax()), 32]


def test_an_empty_batch_gives_an_empty_result() -> None:
    batch, masks = build_batch([], 10)
    result = sample(torch.empty(0, 10), batch, masks, NO_SCORES)
    assert result.token_ids.size == 0
    assert result.logprobs is None
    assert result.scores is None
    assert result.errors == ()


def test_more_rows_than_a_block_sample_as_they_would_alone() -> None:
    logits = np.random.default_rng(5).normal(size=(150, 40)).astype(np.float32)
    mask = frozenset(range(0, 40, 3))
    rows = [
        Row(temperature=float(k % 2), seed=k, position=k, allowed=mask if k % 5 == 0 else None)
        for k in range(150)
    ]
    logits[140] = np.nan
    whole = run(logits, rows)
    assert [k for k, _ in whole.errors] == [140]
    for k in (0, 1, 63, 64, 65, 127, 128, 149):
        assert run(logits[k : k + 1], rows[k : k + 1]).token_ids[0] == whole.token_ids[k]
