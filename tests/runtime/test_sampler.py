"""Both samplers, torch and native: against a slow oracle row by row, and against exact distributions."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from both_samplers import SAMPLERS, run, sample, use_threads, using
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling_oracle import NO_SCORES, Row, adjusted, build_batch, draw, kept_tokens, probabilities

from radixlm.runtime.plan import NOTHING_ALLOWED


@pytest.fixture(autouse=True, scope="module", params=SAMPLERS)
def _which(request: pytest.FixtureRequest) -> Iterator[None]:
    """The sampler under test."""
    with using(request.param):
        yield


# -- against the oracle ---------------------------------------------------------------------------------------------

VOCAB = 70


def token_maps(values: st.SearchStrategy) -> st.SearchStrategy:
    return st.dictionaries(st.integers(0, VOCAB - 1), values, max_size=6)


ROWS = st.builds(
    Row,
    temperature=st.sampled_from([0.0, 0.3, 1.0, 2.5]),
    top_k=st.sampled_from([0, 0, 1, 2, 5, 40, 69, 70, 1_000]),
    top_p=st.sampled_from([1.0, 1.0, 0.0, 0.1, 0.5, 0.9, 0.999]),
    min_p=st.sampled_from([0.0, 0.0, 0.02, 0.3, 1.0]),
    typical_p=st.sampled_from([1.0, 1.0, 0.2, 0.7, 0.95]),
    seed=st.integers(0, 2**64 - 1),
    position=st.integers(0, 2**31 - 1),
    choice=st.integers(0, 7),
    repetition=st.sampled_from([1.0, 1.3, 0.8]),
    frequency=st.sampled_from([0.0, 0.5, -0.4]),
    presence=st.sampled_from([0.0, 0.7]),
    output_counts=token_maps(st.integers(1, 4)),
    prompt_ids=st.sets(st.integers(0, VOCAB - 1), max_size=5),
    bias=token_maps(st.sampled_from([-math.inf, -3.0, 2.0, 50.0])),
    allowed=st.none() | st.sets(st.integers(0, VOCAB - 1), min_size=1, max_size=40),
)


@settings(max_examples=80, deadline=None, report_multiple_bugs=False)
@given(
    rows=st.lists(ROWS, min_size=1, max_size=6),
    seed=st.integers(0, 2**32 - 1),
    spread=st.sampled_from([0.0, 0.5, 3.0, 12.0]),
    levels=st.sampled_from([0, 4]),
)
def test_every_row_equals_the_slow_oracle(
    rows: list[Row], seed: int, spread: float, levels: int
) -> None:
    logits = (np.random.default_rng(seed).normal(size=(len(rows), VOCAB)) * spread).astype(
        np.float32
    )
    if levels:  # few distinct values: ties everywhere
        logits = np.round(logits / max(spread, 1) * levels) / levels
    result = run(logits, rows)
    alone = [run(logits[k : k + 1], [row]) for k, row in enumerate(rows)]
    reasons = dict(result.errors)
    for k, row in enumerate(rows):
        assert int(result.token_ids[k]) == int(alone[k].token_ids[0])
        if not np.isfinite(adjusted(logits[k], row)).any():
            assert reasons[k] == NOTHING_ALLOWED
            continue
        expected, is_close = draw(logits[k], row)
        if not is_close:
            assert int(result.token_ids[k]) == expected
        assert k not in reasons


def test_a_batch_of_many_kinds_gives_each_row_what_it_gets_alone() -> None:
    rng = np.random.default_rng(3)
    rows = [
        Row(
            temperature=float(rng.choice([0, 0.5, 1])),
            top_k=int(rng.choice([0, 3, 500])),
            top_p=float(rng.choice([1, 0.8])),
            typical_p=float(rng.choice([1, 0.6])),
            min_p=float(rng.choice([0, 0.1])),
            seed=int(rng.integers(2**63)),
            position=int(rng.integers(9_999)),
            num_logprobs=2,
        )
        for _ in range(40)
    ]
    logits = (rng.normal(size=(40, 3_001)) * 4).astype(np.float32)
    together = run(logits, rows)
    order = rng.permutation(40)
    shuffled = run(logits[order], [rows[k] for k in order])
    assert (together.token_ids[order] == shuffled.token_ids).all()
    for k, row in enumerate(rows):
        alone = run(logits[k : k + 1], [row])
        assert int(alone.token_ids[0]) == int(together.token_ids[k])
    assert together.logprobs is not None


# -- distributions --------------------------------------------------------------------------------------------------


def check_distribution(
    logits: np.ndarray, row: Row, expected: np.ndarray, num_draws: int = 20_000
) -> None:
    """Draw at many positions (independent by construction) and compare by chi-square at the 0.1 % level."""
    counts = np.zeros(logits.size)
    per_call = 2_000
    table = torch.from_numpy(np.tile(logits, (per_call, 1)))
    batch, masks = build_batch([row] * per_call, logits.size)
    for start in range(0, num_draws, per_call):
        positions = np.arange(start, start + per_call, dtype=np.int32)
        result = sample(table, dataclasses.replace(batch, positions=positions), masks, NO_SCORES)
        counts += np.bincount(result.token_ids, minlength=logits.size)
    assert counts[expected == 0].sum() == 0
    wanted = expected * num_draws
    is_large = wanted >= 5
    observed = np.append(counts[is_large], counts[~is_large].sum())
    wanted = np.append(wanted[is_large], wanted[~is_large].sum())
    used = wanted > 0
    statistic = float(((observed[used] - wanted[used]) ** 2 / wanted[used]).sum())
    freedom = int(used.sum()) - 1
    # Wilson and Hilferty's approximation of the chi-square quantile; 3.09 is the normal one at 0.1 %
    limit = freedom * (1 - 2 / (9 * freedom) + 3.09 * math.sqrt(2 / (9 * freedom))) ** 3
    assert statistic < limit


LOGITS = np.array([2.0, 1.5, 1.0, 0.5, 0.0, -0.5, -1.0, -2.0, -4.0, 1.5, 0.1, -0.3], np.float32)


@pytest.mark.parametrize(
    "row",
    [
        Row(temperature=1.0, seed=1),
        Row(temperature=0.6, seed=2),
        Row(temperature=1.7, seed=3, choice=2),
        Row(temperature=1.0, top_k=4, seed=4),
        Row(temperature=1.0, top_p=0.8, seed=5),
        Row(temperature=1.0, min_p=0.2, seed=6),
        Row(temperature=1.0, typical_p=0.7, seed=7),
        Row(temperature=0.8, top_k=9, typical_p=0.95, top_p=0.9, min_p=0.05, seed=8),
        Row(temperature=1.0, allowed={2, 4, 7, 8}, seed=9),
        Row(temperature=1.0, allowed={2, 4, 7, 8, 10}, top_k=3, seed=10),
        Row(temperature=1.0, repetition=1.5, frequency=0.3, presence=0.2, output_counts={0: 3, 5: 1}, prompt_ids={1}, seed=11),
        Row(temperature=1.0, bias={0: -1.0, 8: 3.0, 2: -math.inf}, seed=12),
    ],
)  # fmt: skip
def test_draws_follow_the_distribution(row: Row) -> None:
    scores = adjusted(LOGITS, row)
    scores = (scores - scores.max()) / row.temperature
    kept, is_close = kept_tokens(scores, row)
    assert not is_close
    expected = np.zeros(LOGITS.size)
    expected[sorted(kept)] = probabilities(scores[sorted(kept)])
    check_distribution(LOGITS, row, expected)


def test_draws_over_a_larger_vocabulary_follow_the_distribution() -> None:
    logits = np.random.default_rng(0).normal(size=1_000).astype(np.float32) * 2
    check_distribution(logits, Row(temperature=1.0, seed=77), probabilities(logits), 12_000)


def test_threads_change_nothing() -> None:
    logits = np.random.default_rng(10).normal(size=(3, 40_000)).astype(np.float32) * 3
    rows = [
        Row(temperature=1.0, seed=1),
        Row(temperature=1.0, seed=2, top_p=0.9, num_logprobs=3),
        Row(temperature=1.0, seed=3, min_p=0.1),
    ]
    one = run(logits, rows)
    use_threads(3)
    two = run(logits, rows)
    use_threads(1)
    assert (one.token_ids == two.token_ids).all()


def test_relative_probabilities_of_allowed_tokens_are_kept() -> None:
    allowed = {1, 3, 8}
    expected = np.zeros(LOGITS.size)
    model = probabilities(LOGITS)
    for token_id in allowed:
        expected[token_id] = model[token_id] / sum(model[t] for t in allowed)
    check_distribution(LOGITS, Row(temperature=1.0, seed=20, allowed=allowed), expected)


def test_choices_of_one_seed_differ_and_are_reproducible() -> None:
    rows = [Row(temperature=1.0, seed=7, position=5, choice=choice) for choice in range(64)]
    table = np.tile(LOGITS, (64, 1))
    first, second = run(table, rows).token_ids, run(table, rows).token_ids
    assert (first == second).all()
    assert len(set(first.tolist())) > 3
