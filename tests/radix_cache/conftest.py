"""Fixtures of the cache tests."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest


@pytest.fixture
def count_lines() -> Callable[[Callable[[], object]], int]:
    """Counts the Python lines that a call executes inside radix_cache: a price that a busy machine does not change."""

    def count(call: Callable[[], object]) -> int:
        num_lines = 0

        def local(frame, event, _arg):
            nonlocal num_lines
            num_lines += event == "line"
            return local

        def on_call(frame, _event, _arg):
            return local if "radix_cache" in frame.f_code.co_filename else None

        previous = sys.gettrace()
        sys.settrace(on_call)
        try:
            call()
        finally:
            sys.settrace(previous)
        return num_lines

    return count
