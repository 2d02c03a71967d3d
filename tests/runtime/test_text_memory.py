"""The gateway's memory of rendered texts: against a naive model, bounded, and quick with thousands of entries."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from radixlm.runtime.text_memory import TextMemory, special_key

TEXTS = st.text(alphabet="ab\xe9", max_size=8).map(lambda text: text.encode())


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(TEXTS, st.sampled_from(["", "tenant"]))), st.lists(TEXTS, min_size=1))
def test_the_longest_remembered_beginning_is_found_like_by_a_naive_search(
    entries: list[tuple[bytes, str]], asked: list[bytes]
) -> None:
    memory = TextMemory(10**6)
    naive: dict[tuple[str, bytes], list[int]] = {}
    for number, (key, namespace) in enumerate(entries):
        memory.remember(key, [number, number + 1], namespace)
        memory.check()
        if key:
            naive[namespace, key] = [number, number + 1]
    for question in asked:
        best = max(
            (key for space, key in naive if space == "" and question.startswith(key)),
            key=len,
            default=None,
        )
        found = memory.longest(question)
        assert (found and found.token_ids) == (naive["", best] if best is not None else None)
        assert found is None or found.num_bytes == len(best or b"")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(TEXTS, st.booleans()), max_size=60))
def test_the_bound_holds_and_the_least_recently_used_leave_first(
    steps: list[tuple[bytes, bool]],
) -> None:
    memory = TextMemory(4000)
    for key, is_question in steps:
        if is_question:
            memory.longest(key)
        else:
            memory.remember(key, list(range(len(key))))
            found = memory.longest(key)
            assert not key or (found is not None and found.num_bytes == len(key))
        memory.check()
        assert memory.num_bytes <= 4000


def test_forgetting_everything_leaves_no_bytes_behind() -> None:
    memory = TextMemory(8000)
    for number in range(500):
        memory.remember(
            f"text {number} {'x' * (number % 7)}".encode(), [number], namespace=str(number % 3)
        )
        memory.check()
    assert 0 < len(memory) < 40
    memory.clear()
    memory.check()
    assert memory.num_bytes == 0


def test_a_text_larger_than_a_quarter_of_the_memory_is_not_kept() -> None:
    memory = TextMemory(10_000)
    memory.remember(b"small", [1])
    memory.remember(b"x" * 5000, [1] * 10)
    assert memory.longest(b"x" * 6000) is None
    assert memory.longest(b"small talk") is not None


def test_special_tokens_differ_from_their_spelling_and_from_each_other() -> None:
    memory = TextMemory(10_000)
    memory.remember(b"a" + special_key(2) + b"b", [7, 2, 8])
    assert memory.longest(b"a<|im_end|>b") is None
    assert memory.longest(b"a" + special_key(3) + b"b") is None
    found = memory.longest(b"a" + special_key(2) + b"bc")
    assert found is not None
    assert found.token_ids == [7, 2, 8]


def test_a_lookup_among_twenty_thousand_entries_costs_no_more_than_among_a_few() -> None:
    memory = TextMemory(10**8)
    history = b"".join(b"turn %d of a long talk. " % n for n in range(400))
    for number in range(20_000):
        memory.remember(history[: 8 * (number % 100)] + b"#%d" % number, [number])
    began = time.perf_counter()
    for _ in range(50):
        memory.longest(history + b"more")
    per_lookup_s = (time.perf_counter() - began) / 50
    assert (
        per_lookup_s < 0.02
    )  # it meets the 100 places where texts branch off, not the 20,000 texts
