"""The noise of sampling: published vectors, independence of layout, and the race against its definition."""

from __future__ import annotations

import math

import pytest
import torch
from sampling_oracle import Row, noise, philox

from radixlm.runtime.sampling_noise import (
    MAX_NOISE,
    NoiseKeys,
    noise_at,
    noise_rows,
    philox4x32,
    race,
    to_noise,
)

# (counter, key, result): the known answers published with the Random123 library
KNOWN_ANSWERS = [
    ("00000000" * 4, "00000000" * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff" * 4, "ffffffff" * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a8885a308d313198a2e03707344", "a4093822299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def words(text: str) -> tuple[int, ...]:
    text = text.replace(" ", "")
    return tuple(int(text[i : i + 8], 16) for i in range(0, len(text), 8))


def make_keys(rows: list[Row]) -> NoiseKeys:
    return NoiseKeys(
        seed_low=torch.tensor([row.seed & 0xFFFFFFFF for row in rows]),
        seed_high=torch.tensor([row.seed >> 32 for row in rows]),
        position=torch.tensor([row.position for row in rows]),
        choice=torch.tensor([row.choice for row in rows]),
    )


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN_ANSWERS)
def test_philox_gives_the_published_answers(counter: str, key: str, expected: str) -> None:
    tensors = [torch.tensor([word]) for word in words(counter)]
    keys = [torch.tensor([word]) for word in words(key)]
    found = philox4x32(tuple(tensors), tuple(keys))
    assert tuple(int(word) for word in found) == words(expected)
    assert philox(words(counter), words(key)) == words(expected)


def test_a_whole_row_a_single_token_and_plain_integers_give_the_same_noise() -> None:
    rows = [
        Row(seed=0, position=0, choice=0),
        Row(seed=2**64 - 1, position=2**31 - 1, choice=3),
        Row(seed=0x0123456789ABCDEF, position=4_097, choice=1),
    ]
    keys = make_keys(rows)
    table = noise_rows(keys, 1_003)
    assert table.shape == (3, 1_003)
    for k, row in enumerate(rows):
        for token_id in (0, 1, 2, 3, 4, 5, 501, 1_002):
            single = noise_at(keys.take(torch.tensor([k])), torch.tensor([token_id]))
            assert float(single) == float(table[k, token_id])
            assert float(single) == pytest.approx(noise(token_id, row), abs=2e-6)


def test_seed_halves_position_choice_and_token_each_change_the_noise() -> None:
    base = Row(seed=1, position=1, choice=1)
    others = [
        Row(seed=2, position=1, choice=1),
        Row(seed=1 | 1 << 32, position=1, choice=1),
        Row(seed=1, position=2, choice=1),
        Row(seed=1, position=1, choice=2),
    ]
    table = noise_rows(make_keys([base, *others]), 64)
    assert table.flatten().unique().numel() == table.numel()


def test_extreme_words_give_finite_noise_within_the_bound() -> None:
    found = to_noise(torch.tensor([0, 1, 2**31, 2**32 - 2, 2**32 - 1]))
    assert found.isfinite().all()
    assert (found[:-1] >= found[1:]).all()
    assert MAX_NOISE - 0.1 < float(found[0]) < MAX_NOISE


def test_the_noise_is_gumbel_distributed() -> None:
    keys = make_keys([Row(seed=7, position=position) for position in range(64)])
    sample = noise_rows(keys, 4_096).flatten().sort().values.double()
    expected = (torch.arange(sample.numel()) + 0.5) / sample.numel()
    distance = ((-(-sample).exp()).exp() - expected).abs().max()
    assert float(distance) < 1.63 / math.sqrt(sample.numel())  # Kolmogorov-Smirnov, 1 % level


@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("num_rows", [1, 7, 19])
def test_the_race_equals_the_argmax_of_scores_plus_noise(spread: float, num_rows: int) -> None:
    generator = torch.Generator().manual_seed(num_rows)
    scores = torch.randn(num_rows, 1_001, generator=generator) * spread
    scores[:, 5::7] = -torch.inf
    scores -= scores.amax(dim=1, keepdim=True)
    keys = make_keys([Row(seed=k, position=k) for k in range(num_rows)])
    expected = (scores + noise_rows(keys, 1_001)).argmax(dim=1)
    best_ids = scores.argmax(dim=1)
    assert torch.equal(race(scores, best_ids, keys), expected)
    for k in range(num_rows):  # alone as in the batch
        one = slice(k, k + 1)
        assert torch.equal(race(scores[one], best_ids[one], keys.take(one)), expected[one])
