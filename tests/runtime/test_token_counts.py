"""Token counts and buffers agree with plain Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from radixlm.runtime.token_buffer import TokenBuffer
from radixlm.runtime.token_counts import TokenCounts

tokens = st.lists(st.integers(0, 60), max_size=120)


def as_dicts(counts: TokenCounts) -> tuple[dict[int, int], set[int]]:
    output = {
        t: c for t, c in zip(counts.token_ids.tolist(), counts.in_output.tolist(), strict=True) if c
    }
    prompt = {
        t for t, c in zip(counts.token_ids.tolist(), counts.in_prompt.tolist(), strict=True) if c
    }
    return output, prompt


@given(tokens, tokens, tokens)
def test_counts_are_those_of_a_counter(prompt, output, more):
    counts = TokenCounts(np.array(prompt, dtype=np.int32))
    for token in output:
        counts.add_output(token)
    twin = counts.copy()
    for token in more:
        twin.add_output(token)
    assert as_dicts(counts) == (dict(Counter(output)), set(prompt))
    assert as_dicts(twin) == (dict(Counter(output + more)), set(prompt))
    assert len(set(twin.token_ids.tolist())) == twin.token_ids.size


@given(tokens, tokens)
def test_a_buffer_is_a_list_that_never_copies_on_reading(first, more):
    buffer = TokenBuffer(first)
    twin = buffer.copy()
    for token in more:
        buffer.append(token)
    assert buffer.view().tolist() == first + more
    assert twin.view().tolist() == first
    assert len(buffer) == len(first) + len(more)
    assert buffer.view(2, 5).tolist() == (first + more)[2:5]
    if more:
        assert buffer[-1] == more[-1]
