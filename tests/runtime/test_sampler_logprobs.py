"""Log-probabilities of both samplers: the model's own, their order, and tokens that are only scored."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from both_samplers import SAMPLERS, run, sample, using
from sampling_oracle import Row, build_batch, probabilities

from radixlm.runtime.plan import ScoreRows


@pytest.fixture(autouse=True, scope="module", params=SAMPLERS)
def _which(request: pytest.FixtureRequest) -> Iterator[None]:
    """The sampler under test."""
    with using(request.param):
        yield


def log_softmax(logits: np.ndarray) -> np.ndarray:
    return np.log(probabilities(logits.astype(np.float64)))


def test_logprobs_are_the_models_own() -> None:
    logits = np.random.default_rng(6).normal(size=(4, 90)).astype(np.float32)
    rows = [
        Row(num_logprobs=3, allowed={40}, temperature=0.2),
        Row(num_logprobs=0, bias={7: 100.0}),
        Row(),
        Row(num_logprobs=2, repetition=2.0, output_counts={1: 5}),
    ]
    found = run(logits, rows).logprobs
    assert found is not None
    assert found.top_ids.shape == (4, 3)
    for k, token_id in ((0, 40), (1, 7)):
        assert found.chosen[k] == pytest.approx(log_softmax(logits[k])[token_id], abs=1e-5)
    best = np.argsort(-logits[0])[:3]
    assert found.top_ids[0].tolist() == best.tolist()
    assert found.top_values[0] == pytest.approx(log_softmax(logits[0])[best], abs=1e-5)
    assert found.top_ids[1].tolist() == [-1, -1, -1]
    assert found.top_ids[3, 2] == -1
    assert found.top_values[3, 2] == -np.inf


def test_equal_alternatives_come_in_order_of_their_ids() -> None:
    logits = np.zeros((1, 300), np.float32)
    logits[0, 250] = 1.0
    found = run(logits, [Row(num_logprobs=4)]).logprobs
    assert found is not None
    assert found.top_ids.tolist() == [[250, 0, 1, 2]]


def test_more_alternatives_than_tokens_are_padded() -> None:
    found = run(np.zeros((1, 3), np.float32), [Row(num_logprobs=5)]).logprobs
    assert found is not None
    assert found.top_ids.tolist() == [[0, 1, 2, -1, -1]]


def test_given_tokens_are_scored_beside_sampling() -> None:
    logits = np.random.default_rng(8).normal(size=(150, 64)).astype(np.float32)
    scores = ScoreRows(
        rows=np.arange(149, dtype=np.int32),
        token_ids=(np.arange(149) % 64).astype(np.int32),
        num_logprobs=(np.arange(149) % 3).astype(np.int32),
    )
    batch, masks = build_batch([Row()], 64, [149])
    result = sample(torch.from_numpy(logits), batch, masks, scores)
    assert result.token_ids.tolist() == [int(logits[149].argmax())]
    assert result.scores is not None
    for q in range(149):
        expected = log_softmax(logits[q])
        assert result.scores.chosen[q] == pytest.approx(expected[q % 64], abs=1e-5)
        best = np.argsort(-logits[q])[: q % 3].tolist()
        assert result.scores.top_ids[q].tolist() == best + [-1] * (2 - len(best))
