"""Which token leaves the end of an output: the one that ended it, by the engine's word, and no other."""

from __future__ import annotations

import pytest

from radixlm.runtime import messages as m
from radixlm.runtime.output_text import without_stop_token

EOS = 0


@pytest.mark.parametrize(
    ("ids", "reason", "stop", "include_stop", "kept"),
    [
        ((5, EOS), "stop", None, False, (5,)),
        ((5, EOS), "stop", None, True, (5,)),
        ((5, 7), "stop", None, False, (5, 7)),  # a complete grammar ended it, whatever 7 means
        ((5, 7), "stop", 7, False, (5,)),
        ((5, 7), "stop", 7, True, (5, 7)),
        ((5, 7), "stop", b"x", False, (5, 7)),
        ((5, EOS), "length", None, False, (5, EOS)),
        ((), "stop", None, False, ()),
    ],
)
def test_only_the_token_that_ended_the_output_leaves_it(
    ids: tuple[int, ...],
    reason: str,
    stop: int | bytes | None,
    include_stop: bool,
    kept: tuple[int, ...],
) -> None:
    sample = m.Sample(ids, reason, matched_stop=stop)
    assert without_stop_token(sample, (EOS,), include_stop=include_stop) == kept
