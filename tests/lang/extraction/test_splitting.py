"""Long texts in parts: nothing is lost, nothing is too long, cuts fall where a reader would make them."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixlm.errors import ConfigError
from radixlm.lang.extraction.splitting import Splitter


def count_words(text: str) -> int:
    return len(re.findall(r"\s*\S{1,6}|\s+", text))


@given(
    st.text(alphabet="ab .\n界", max_size=400),
    st.integers(16, 60),
    st.integers(0, 15),
    st.booleans(),
)
def test_parts_fit_and_cover_the_text_in_order(
    text: str, size: int, overlap: int, in_words: bool
) -> None:
    measure = count_words if in_words else len
    parts = list(
        Splitter(size, min(overlap, size // 4), count_words if in_words else None).split(text)
    )
    assert all(measure(part) <= size for part in parts)
    end = 0
    for part in parts:
        core = part.strip()
        # a part begins at or before the end of those before it, but for white space
        start = next(
            (s for s in range(end + 1) if text.startswith(core, s) and s + len(core) >= end), None
        )
        if start is None:
            start = text.index(core, end)
            assert not text[end:start].strip()
        end = start + len(core)
    assert not text[end:].strip()


def test_a_short_text_stays_whole() -> None:
    assert list(Splitter(20, 0).split("  as it is \n")) == ["  as it is \n"]


def test_cuts_fall_on_paragraphs_then_lines_then_sentences_then_words() -> None:
    assert next(Splitter(30, 0).split("one two.\nthree four.\n\nfive six. seven eight")) == (
        "one two.\nthree four."
    )
    assert next(Splitter(30, 0).split("one two three four.\nfive six. seven eight")).endswith(
        "four."
    )
    assert next(Splitter(30, 0).split("one two three four. Five six seven eight")) == (
        "one two three four. "
    )
    assert next(Splitter(16, 0).split("one two three four")) == "one two three "


def test_the_overlap_repeats_the_end_of_the_part_before_at_a_word() -> None:
    words = [f"w{n:03}" for n in range(100)]
    parts = list(Splitter(100, 20).split(" ".join(words)))
    for before, after in pairwise(parts):
        shared = [word for word in before.split() if word in after.split()]
        assert 1 <= len(shared) <= 4
        assert after.split()[: len(shared)] == before.split()[-len(shared) :]


def test_a_text_without_any_place_to_cut_is_cut_anywhere() -> None:
    assert "".join(Splitter(16, 0).split("x" * 1000)) == "x" * 1000


def test_few_measurements_are_made() -> None:
    num_calls = 0

    def measure(text: str) -> int:
        nonlocal num_calls
        num_calls += 1
        return count_words(text)

    parts = list(Splitter(200, 20, measure).split("word and another one. " * 3000))
    assert num_calls < 6 * len(parts)


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (15, 0), (100, 26), (100, -1)])
def test_sizes_that_cannot_be_are_refused(size: int, overlap: int) -> None:
    with pytest.raises(ConfigError):
        Splitter(size, overlap)
