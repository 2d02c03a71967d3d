"""A ScriptedBackend whose answers come word by word, later and on another thread, as a real runtime's do."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from radixlm.lang.testing import ScriptedBackend


@contextmanager
def trickling(*args: Any, delay_s: float = 0.0005, **kwargs: Any) -> Generator[ScriptedBackend]:
    backend = ScriptedBackend(*args, **kwargs)
    backend.pause()
    is_over = threading.Event()

    def deliver() -> None:
        while not is_over.is_set():
            time.sleep(delay_s)
            backend.trickle()

    thread = threading.Thread(target=deliver, daemon=True)
    thread.start()
    try:
        yield backend
    finally:
        is_over.set()
        thread.join()
