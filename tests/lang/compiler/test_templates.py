"""Texts of several runs as one row of constants and holes."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from radixlm.lang.compiler.script import Argument, Constant, Result
from radixlm.lang.compiler.templates import row_of

A, B, R = Argument("a"), Argument("b"), Result(0)
SOURCES: dict[Any, Any] = {A: ("xy", "YX", "xy"), B: ("xy", "xy", "q"), R: ("‹r›", "‹r›", "«r»")}
PARTS = st.lists(st.sampled_from([A, B, R]) | st.text("xyqr‹ ", min_size=1, max_size=3))


def filled(parts: Any, run: int) -> str:
    return "".join(
        part if isinstance(part, str) else part.text if isinstance(part, Constant) else SOURCES[part][run]
        for part in parts
    )  # fmt: skip


@given(PARTS)
def test_a_row_gives_what_was_seen_in_every_run(parts: list[Any]) -> None:
    texts = [filled(parts, run) for run in range(3)]
    row = row_of(texts, SOURCES)
    assert row is not None
    assert [filled(row, run) for run in range(3)] == texts


def test_what_python_made_of_a_text_is_in_no_row() -> None:
    assert row_of([text.upper() for text in SOURCES[R]], SOURCES) == (
        None if len({text.upper() for text in SOURCES[R]}) > 1 else ()
    )
    assert row_of([str(len(text)) for text in ("a", "bb", "ccc")], SOURCES) is None


def test_what_never_changed_is_constant() -> None:
    assert row_of(["same", "same"], {A: ("same", "same")}) == (Constant("same"),)
    assert row_of(["", ""], SOURCES) == ()
