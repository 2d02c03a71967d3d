"""Whole collections against what was expected of them: it may only get better, and no invalid instance is ever accepted.

The expected files beside this one hold the members that are not right. After an improvement (or a decision):
    .venv/bin/python tests/support/grammar_ratchet.py --update
"""

from __future__ import annotations

from collections import Counter

import pytest
from grammar_ratchet import COLLECTIONS, NEVER, differences, expected, measure

from radixlm.grammar.matching import engine_name


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", COLLECTIONS)
def test_no_member_of_a_collection_gets_worse(name: str) -> None:
    if name == "real_schemas" and engine_name() != "native":
        pytest.skip("the numpy half takes minutes for the largest schemas; it is tested equal to the native one")  # fmt: skip
    found = measure(name)
    print(dict(Counter(found.values())))
    worse, better = differences(found, expected(name))
    assert not worse, "\n".join(worse)
    assert not better, (
        "better than the expected file says: run tests/support/grammar_ratchet.py --update\n"
        + "\n".join(better)
    )


@pytest.mark.parametrize("name", COLLECTIONS)
def test_neither_a_crash_nor_an_accepted_invalid_instance_is_ever_expected(name: str) -> None:
    assert not set(expected(name).values()) & set(NEVER)


def test_differences_are_told_by_direction() -> None:
    wanted = {"a": "refused", "b": "over", "c": "order"}
    found = {"a": "right", "b": "under", "c": "layout", "d": "over", "e": "right"}
    worse, better = differences(found, wanted)
    assert worse == ["b: over -> under", "d: right -> over"]
    assert better == ["a: refused -> right", "c: order -> layout"]
