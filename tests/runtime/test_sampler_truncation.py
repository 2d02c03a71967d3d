"""Truncation over a large vocabulary, where bounds keep most of a row from being sorted."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sampling_oracle import Row, kept_tokens

from radixlm.runtime.sampler_truncation import TruncationArgs, truncate


@pytest.mark.parametrize("spread", [0.0, 1.0, 6.0])
def test_what_stays_of_a_large_vocabulary_is_what_sorting_everything_gives(spread: float) -> None:
    rng = np.random.default_rng(9)
    num_columns = 5_003
    choices = {
        "top_k": [0, 1, 50, 4_000, num_columns, 9_999],
        "top_p": [1.0, 0.3, 0.95, 0.999],
        "min_p": [0.0, 0.01, 0.4],
        "typical_p": [1.0, 0.4, 0.95],
    }
    rows = [
        Row(
            temperature=1.0, **{name: rng.choice(values).item() for name, values in choices.items()}
        )
        for _ in range(60)
    ]
    scores = (rng.normal(size=(len(rows), num_columns)) * spread).astype(np.float32)
    scores[3:6, 100:] = -np.inf
    scores -= scores.max(axis=1, keepdims=True)
    args = TruncationArgs(
        top_k=torch.tensor([row.top_k for row in rows]),
        top_p=torch.tensor([row.top_p for row in rows], dtype=torch.float64),
        min_p=torch.tensor([row.min_p for row in rows], dtype=torch.float64),
        typical_p=torch.tensor([row.typical_p for row in rows], dtype=torch.float64),
    )
    left = truncate(torch.from_numpy(scores), args)
    num_clear = 0
    for k, row in enumerate(rows):
        expected, is_close = kept_tokens(scores[k].astype(np.float64), row)
        found = set(left.token_ids[left.rows == k].tolist())
        num_clear += not is_close
        if is_close:  # the cut may fall a few tokens to either side
            assert len(found ^ expected) <= max(3, 0.02 * len(expected)) or spread == 0
        else:
            assert found == expected
    assert num_clear > 5 or spread == 0


def test_candidates_come_by_row_and_then_by_id() -> None:
    scores = torch.tensor([[-1.0, 0.0, -0.5, -9.0], [0.0, 0.0, -torch.inf, -torch.inf]])
    args = TruncationArgs(
        top_k=torch.tensor([3, 0]),
        top_p=torch.ones(2, dtype=torch.float64),
        min_p=torch.zeros(2, dtype=torch.float64),
        typical_p=torch.ones(2, dtype=torch.float64),
    )
    left = truncate(scores, args)
    assert left.rows.tolist() == [0, 0, 0, 1, 1]
    assert left.token_ids.tolist() == [0, 1, 2, 0, 1]
    assert left.scores.tolist() == [-1.0, 0.0, -0.5, 0.0, 0.0]
