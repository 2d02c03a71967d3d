"""Both samplers, torch and native: against a slow oracle row by row, against exact distributions, and at their edges."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from native_models import native_sampler
from sampling_oracle import NO_SCORES, Row, adjusted, build_batch, draw, kept_tokens, probabilities

from radixlm.runtime import sampler
from radixlm.runtime.plan import INFINITE, NOT_A_NUMBER, NOTHING_ALLOWED, ScoreRows, StepResult

chosen = [sampler.sample]


@pytest.fixture(autouse=True, scope="module", params=["torch", "native"])
def _which(request: pytest.FixtureRequest) -> None:
    """The sampler under test."""
    chosen[0] = sampler.sample if request.param == "torch" else native_sampler()


def sample(logits: torch.Tensor, *rest) -> StepResult:
    return (
        chosen[0](logits, *rest)
        if chosen[0] is sampler.sample
        else chosen[0](logits.numpy(), *rest)
    )


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Small tensors on a busy machine: threads that wait for one another cost more than they save."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def run(logits: np.ndarray, rows: list[Row], **kwargs):
    batch, masks = build_batch(rows, logits.shape[1], **kwargs)
    return sample(torch.from_numpy(logits.astype(np.float32)), batch, masks, NO_SCORES)


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
    if chosen[0] is sampler.sample:
        torch.set_num_threads(2)
    else:
        chosen[0] = native_sampler(num_threads=1)
    two = run(logits, rows)
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


# -- single rules ---------------------------------------------------------------------------------------------------


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


# -- log-probabilities ----------------------------------------------------------------------------------------------


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
