"""A ScriptedBackend whose answers come later and on another thread, as a real runtime's do."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from radixlm.lang.testing import ScriptedBackend


@contextmanager
def lagging(
    *args: Any, delay_s: float = 0.001, by_word: bool = False, **kwargs: Any
) -> Generator[ScriptedBackend]:
    """`by_word`: streams come a word at a time, else whole answers."""
    backend = ScriptedBackend(*args, **kwargs)
    backend.pause()
    is_over = threading.Event()

    def deliver() -> None:
        while not is_over.is_set():
            time.sleep(delay_s)
            if by_word:
                backend.trickle()
            else:
                backend.resume()
                backend.pause()

    thread = threading.Thread(target=deliver, daemon=True)
    thread.start()
    try:
        yield backend
    finally:
        is_over.set()
        thread.join()
