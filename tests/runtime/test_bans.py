"""Banned ids: when, which, and in both forms."""

from __future__ import annotations

import numpy as np
from bare_requests import bare_request

from radixlm.runtime.bans import Bans


def banned(bans: Bans, request) -> set[int]:
    bias, bits = bans.bias(request), bans.mask(request)
    if bias is None or bits is None:
        assert bias is bits is None
        return set()
    assert np.isneginf(bias.values).all()
    ids = set(bias.token_ids.tolist())
    assert {i for i in range(64) if bits[i >> 5] >> (i & 31) & 1} == ids
    return ids


def test_eos_and_stop_ids_are_banned_before_min_tokens():
    bans, request = Bans(64, (0, 33)), bare_request(min_tokens=2, stop_token_ids=(9, 33))
    for _ in range(2):
        assert banned(bans, request) == {0, 33, 9}
        request.tokens.append(5)
    assert banned(bans, request) == set()


def test_ignore_eos_bans_eos_for_ever_and_stop_ids_never():
    bans, request = Bans(64, (0, 33)), bare_request(ignore_eos=True, stop_token_ids=(9,))
    assert banned(bans, request) == {0, 33}


def test_a_model_without_eos_bans_nothing():
    assert banned(Bans(64, ()), bare_request(ignore_eos=True)) == set()
