"""Sampling arguments become arrays, row by row, with their sparse parts."""

from __future__ import annotations

import numpy as np
from bare_requests import bare_request

from radixlm.runtime.bans import Bans
from radixlm.runtime.plan import SamplingBatch
from radixlm.runtime.sampling_batch import SampleRow, SamplingTable
from radixlm.runtime.token_counts import TokenCounts


def build(requests):
    table = SamplingTable(len(requests), Bans(64, (0, 33)))
    for slot, request in enumerate(requests):
        request.slot = slot
    return table.build([SampleRow(r, r.choice, row) for row, r in enumerate(requests)])


def test_every_argument_reaches_its_row():
    a = bare_request(
        (5, 6), temperature=0.5, top_k=3, top_p=0.9, min_p=0.1, typical_p=0.8, seed=9, logprobs=2
    )
    b = bare_request((5,), repetition_penalty=1.5, frequency_penalty=0.25, presence_penalty=-0.5)
    batch = build([a, b])
    assert batch.temperature.tolist() == [0.5, 0.0]
    assert batch.top_k.tolist() == [3, 0]
    assert np.allclose(batch.top_p, [0.9, 1.0])
    assert np.allclose(batch.min_p, [0.1, 0.0])
    assert np.allclose(batch.typical_p, [0.8, 1.0])
    assert np.allclose(batch.repetition_penalty, [1.0, 1.5])
    assert batch.frequency_penalty.tolist() == [0.0, 0.25]
    assert batch.presence_penalty.tolist() == [0.0, -0.5]
    assert batch.seeds.tolist() == [a.submission.seed, b.submission.seed]
    assert batch.positions.tolist() == [2, 1]  # of the token to come
    assert batch.num_logprobs.tolist() == [2, -1]
    assert batch.mask_rows.size == batch.count_rows.size == batch.bias_rows.size == 0


def test_large_seeds_survive():
    request = bare_request()
    request.submission.seed = 2**63 - 1
    assert int(build([request]).seeds[0]) == 2**63 - 1


def test_a_slot_that_changes_hands_changes_its_arguments():
    table = SamplingTable(1, Bans(64, (0,)))
    for temperature in (0.5, 0.25):
        request = bare_request(temperature=temperature)
        request.slot = 0
        assert table.build([SampleRow(request, 0, 0)]).temperature.tolist() == [temperature]


def test_counts_and_biases_are_joined_by_row():
    plain, counted = bare_request(), bare_request(logit_bias={7: 1.5})
    counted.counts = TokenCounts(np.array([4, 5], dtype=np.int32))
    counted.counts.add_output(9)
    batch = build([plain, counted])
    assert batch.count_rows.tolist() == [1, 1, 1]
    assert batch.count_token_ids.tolist() == [4, 5, 9]
    assert batch.count_output.tolist() == [0, 0, 1]
    assert batch.count_prompt.tolist() == [1, 1, 0]
    assert (
        batch.bias_rows.tolist(),
        batch.bias_token_ids.tolist(),
        batch.bias_values.tolist(),
    ) == ([1], [7], [1.5])


def test_a_ban_is_a_bias_of_minus_infinity_beside_the_users_own():
    batch = build([bare_request(ignore_eos=True, logit_bias={7: 1.5})])
    assert batch.bias_token_ids.tolist() == [7, 0, 33]
    assert batch.bias_values.tolist() == [1.5, -np.inf, -np.inf]


def step_by_step_and_anew(requests, rows_of_steps):
    """The batches of a table that sees all steps, and of one made for each step alone; a token is appended after every step."""
    bans = Bans(64, (0, 33))
    table = SamplingTable(len(requests), bans)
    for slot, request in enumerate(requests):
        request.slot = slot
    for rows in rows_of_steps:
        samples = [SampleRow(requests[k], 0, row) for row, k in enumerate(rows)]
        yield table.build(samples), SamplingTable(len(requests), bans).build(samples)
        for request in requests:
            request.tokens.append(11)
            if request.counts is not None:
                request.counts.add_output(11)


def test_a_step_of_the_same_streams_gives_what_a_fresh_table_gives():
    requests = [
        bare_request((5, 6), temperature=0.5, ignore_eos=True, logit_bias={7: 1.5}),
        bare_request((5,), min_tokens=3),
        bare_request((5,), presence_penalty=0.5),
        bare_request((5, 6, 7), top_k=4),
    ]
    requests[2].counts = TokenCounts(np.array([5], dtype=np.int32))
    steps = [*[[0, 1]] * 5, *[[0, 3]] * 3, [3, 0], [0], *[[2, 3]] * 3]
    for kept, fresh in step_by_step_and_anew(requests, steps):
        for name in SamplingBatch.__slots__:
            assert getattr(kept, name).tolist() == getattr(fresh, name).tolist(), name


def test_the_same_streams_are_not_gathered_again():
    requests = [bare_request((5, 6)), bare_request((5,))]
    first, second = (kept for kept, _ in step_by_step_and_anew(requests, [[0, 1], [0, 1]]))
    assert second.temperature is first.temperature
    assert (second.positions - first.positions).tolist() == [1, 1]


def test_another_row_of_logits_or_choice_is_another_batch():
    table = SamplingTable(1, Bans(64, (0,)))
    request = bare_request()
    request.slot = 0
    for choice, row in ((0, 0), (0, 4), (1, 4)):
        batch = table.build([SampleRow(request, choice, row)])
        assert (batch.choice_index.tolist(), batch.rows.tolist()) == ([choice], [row])
