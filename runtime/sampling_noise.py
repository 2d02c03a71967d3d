"""The noise of sampling: Gumbel numbers that depend on (seed, position, choice, token id) and on nothing else.
Owns the generator and the race that picks a token. Knows nothing of requests, masks or truncation.

Adding independent Gumbel noise to log-weights and taking the largest draws from the distribution of those weights
(E. J. Gumbel 1954; the "Gumbel-max trick"). The noise comes from a counter-based generator, Philox4x32-10 (Salmon, Moraes,
Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11): a bijection of a 128-bit counter under a 64-bit key, with
no state. So any backend can make the number of any single token, in any order, and a batch cannot influence a row.

    key     = (seed's low word, seed's high word)
    counter = (token id // 4, position, choice index, 0)      one call serves four neighbouring tokens
    lane    = token id % 4
    v       = (lane's word + 1/2) / 2^32, at most 1 - 2^-24    in float32
    noise   = -log(-log1p(-v))                                 v near 0 gives the large values, there float32 is finest

The race is exact and lazy. Noise never exceeds MAX_NOISE, so a token that lies further than that below the score the best
token reached with its own noise cannot win, and its number need not be made. On peaked rows few tokens are left.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

MAX_NOISE = 22.9  # -log(-log1p(-2^-33)) = 22.874, the word 0
_WORD = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_NUM_ROUNDS = 10
_BLOCK_COUNTERS = 1 << 16  # made at once: the working set, a few int64 tensors, stays in the cache
_SPARSE_SHARE = (
    6  # making single numbers costs about this many times more each than making all of a row
)


@dataclass(frozen=True, slots=True)
class NoiseKeys:
    """What the noise of each row depends on: int64 tensors [n] with values below 2^32."""

    seed_low: Tensor
    seed_high: Tensor
    position: Tensor
    choice: Tensor

    def take(self, rows: Tensor | slice) -> NoiseKeys:
        """The keys of some rows."""
        return NoiseKeys(
            self.seed_low[rows], self.seed_high[rows], self.position[rows], self.choice[rows]
        )


def philox4x32(
    counter: tuple[Tensor, Tensor, Tensor, Tensor], key: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Ten rounds of Philox4x32: four words for each counter under its key.

    All are int64 tensors that hold 32-bit words and broadcast together (`key` against the rows of `counter`). What does
    not vary along an axis is multiplied only once, which saves most of the first two rounds of a whole row.
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for round_index in range(_NUM_ROUNDS):
        if round_index:
            k0 = (k0 + _KEY_STEPS[0]) & _WORD
            k1 = (k1 + _KEY_STEPS[1]) & _WORD
        product0, product1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c2 = _mix(product1, c1, k0), _mix(product0, c3, k1)
        c1, c3 = product1, product0
    return c0, c1 & _WORD, c2, c3 & _WORD


def _mix(product: Tensor, word: Tensor, key: Tensor) -> Tensor:
    """High word of a product, crossed with a word and a key.

    int64 products wrap modulo 2^64, so all 64 bits are right. `word` may carry garbage above bit 31: it meets others only
    here, before the mask.
    """
    mixed = product >> 32
    mixed = mixed.bitwise_xor_(word) if mixed.shape == word.shape else mixed ^ word
    mixed = mixed ^ key if mixed.numel() < key.numel() else mixed.bitwise_xor_(key)
    return mixed.bitwise_and_(_WORD)


def to_noise(words: Tensor) -> Tensor:
    """Gumbel noise (float32) of 32-bit words: int64, or float32 already converted (then changed in place)."""
    uniform = words.to(torch.float32).add_(0.5).mul_(2.0**-32).clamp_(max=1.0 - 2.0**-24)
    return uniform.neg_().log1p_().neg_().log_().neg_()


def noise_rows(keys: NoiseKeys, num_columns: int) -> Tensor:
    """Noise of token ids 0 .. num_columns - 1 for each row: float32 [n, num_columns]."""
    device = keys.position.device
    num_counters = -(-num_columns // 4)
    lanes = philox4x32(
        (
            torch.arange(num_counters, device=device)[None, :],
            keys.position[:, None],
            keys.choice[:, None],
            torch.zeros_like(keys.choice)[:, None],
        ),
        (keys.seed_low[:, None], keys.seed_high[:, None]),
    )
    words = torch.empty((keys.position.numel(), num_counters, 4), device=device)
    for lane, values in enumerate(lanes):
        words[:, :, lane] = values
    return to_noise(words).flatten(1)[:, :num_columns]


def noise_at(keys: NoiseKeys, token_ids: Tensor) -> Tensor:
    """Noise of one token id (int64 [n]) per row of `keys`: float32 [n]."""
    lanes = philox4x32(
        (token_ids >> 2, keys.position, keys.choice, torch.zeros_like(token_ids)),
        (keys.seed_low, keys.seed_high),
    )
    lane = token_ids & 3
    words = lanes[0]
    for index in (1, 2, 3):
        words = torch.where(lane == index, lanes[index], words)
    return to_noise(words)


def race(scores: Tensor, best_ids: Tensor, keys: NoiseKeys) -> Tensor:
    """The winning token id (int64 [n]) of each row of float32 `scores` [n, V], whose argmax is `best_ids`.

    The result is that of argmax(scores + noise), lowest id first on a tie; -inf never wins unless all are.
    """
    best = scores.gather(1, best_ids[:, None])[:, 0] + noise_at(keys, best_ids)
    winners = torch.empty_like(best_ids)
    num_rows = max(4 * _BLOCK_COUNTERS // max(scores.shape[1], 1), 1)
    for start in range(0, scores.shape[0], num_rows):
        rows = slice(start, start + num_rows)
        block, block_keys = scores[rows], keys.take(rows)
        can_win = block >= (best[rows] - MAX_NOISE)[:, None]
        if int(can_win.count_nonzero()) * _SPARSE_SHARE < block.numel():
            row_ids, token_ids = can_win.nonzero(as_tuple=True)
            winners[rows] = race_among(row_ids, token_ids, block[row_ids, token_ids], block_keys)
        else:
            winners[rows] = noise_rows(block_keys, block.shape[1]).add_(block).argmax(dim=1)
    return winners


def race_among(rows: Tensor, token_ids: Tensor, scores: Tensor, keys: NoiseKeys) -> Tensor:
    """race() among listed tokens only (three tensors [N]; `rows` index `keys`), at least one a row."""
    num_rows = keys.position.numel()
    reached = scores + noise_at(keys.take(rows), token_ids)
    best = torch.full((num_rows,), -torch.inf, device=scores.device)
    best.scatter_reduce_(0, rows, reached, "amax")
    is_best = reached == best[rows]
    winners = torch.full((num_rows,), torch.iinfo(torch.int64).max, device=scores.device)
    return winners.scatter_reduce_(0, rows[is_best], token_ids[is_best], "amin")
