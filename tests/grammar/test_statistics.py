"""Sampling under a mask keeps the relative probabilities of the tokens that a grammar allows: a mask takes away, it never tilts."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch
from grammar_engine import Constraint
from sampling_oracle import NO_SCORES, Row, build_batch
from toy_vocabulary import byte_vocabulary

from radixlm.grammar.spec import JsonSchema, Regex, Spec
from radixlm.runtime.sampler import sample

VOCABULARY = byte_vocabulary(b"ab", b"abc", b"ba", b'",', b'"}', b"aaaa", "é".encode(), b"  ")
NUM_DRAWS = 4_000
_BLOCK = 500
CONSTRAINTS: dict[str, tuple[Spec, bytes]] = {
    "pattern at its start": (Regex("(ab|a*|[b-e]c?)+z"), b""),
    "pattern that may end": (Regex("[ab]{1,7}c?"), b"ab"),
    "inside a string": (JsonSchema('{"type": "string"}'), b'"x'),
    "a number that may end": (JsonSchema('{"type": "number"}'), b"12"),
}


def chi_square_limit(degrees: int) -> float:
    """The value that chi-square exceeds once in 100,000 (Wilson and Hilferty's approximation)."""
    part = 2 / (9 * degrees)
    return degrees * (1 - part + 4.265 * math.sqrt(part)) ** 3


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_allowed_tokens_are_drawn_as_often_as_the_model_weighs_them(name: str) -> None:
    temperature = 0.8
    spec, prefix = CONSTRAINTS[name]
    constraint = Constraint(spec, VOCABULARY)
    matcher = constraint.matcher()
    assert matcher.advance_bytes(prefix) or not prefix
    allowed = constraint.allowed(matcher)
    assert len(allowed) > 2
    size = constraint.vocabulary.vocab_size
    logits = np.random.default_rng(len(allowed)).normal(size=size).astype(np.float32)
    weights = np.exp(logits.astype(np.float64) / temperature)
    weights[[token for token in range(size) if token not in allowed]] = 0
    drawn = draws(logits, allowed, temperature)
    assert set(drawn) <= allowed
    wanted = NUM_DRAWS * weights / weights.sum()
    frequent = [token for token in allowed if wanted[token] >= 5]
    pairs = [(drawn[token], wanted[token]) for token in frequent]
    rest = NUM_DRAWS - sum(count for _, count in pairs)
    if rest >= 5:
        pairs.append((NUM_DRAWS - sum(drawn[token] for token in frequent), rest))
    chi_square = sum((seen - count) ** 2 / count for seen, count in pairs)
    assert chi_square < chi_square_limit(len(pairs) - 1)


def draws(logits: np.ndarray, allowed: set[int], temperature: float) -> Counter[int]:
    """How often each token is drawn, each time at another position of one stream of noise."""
    found: Counter[int] = Counter()
    tiled = torch.from_numpy(np.tile(logits, (_BLOCK, 1)))
    for start in range(0, NUM_DRAWS, _BLOCK):
        rows = [
            Row(temperature=temperature, seed=7, position=start + index, allowed=allowed)
            for index in range(_BLOCK)
        ]
        batch, masks = build_batch(rows, len(logits))
        found.update(sample(tiled, batch, masks, NO_SCORES).token_ids.tolist())
    return found
