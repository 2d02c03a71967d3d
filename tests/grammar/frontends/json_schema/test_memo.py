"""The table of what is remembered from schema to schema."""

from __future__ import annotations

from radixlm.grammar.frontends.json_schema.memo import Memo


def test_the_least_recently_used_leaves_first() -> None:
    memo: Memo[str, int] = Memo(8)
    for index, key in enumerate("abcd"):
        memo.put(key, index, 2)
    assert memo.get("a") == 0
    memo.put("e", 4, 2)
    assert [memo.get(key) for key in "abcde"] == [0, None, 2, 3, 4]


def test_the_first_value_stays() -> None:
    memo: Memo[str, list[int]] = Memo(8)
    first = memo.put("a", [1], 1)
    assert memo.put("a", [1], 1) is first
    assert memo.get("a") is first
    for index in range(8):
        memo.put(str(index), [], 1)
    assert memo.get("a") is None, "its weight was counted once"


def test_what_would_fill_a_quarter_is_not_kept() -> None:
    memo: Memo[str, int] = Memo(8)
    assert memo.put("a", 1, 3) == 1
    assert memo.get("a") is None
