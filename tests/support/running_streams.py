"""Streams that go on at a server while a test does something else: each is read frame by frame, and begins again when it ends.

Owns the threads and what they saw: every answer, how many frames came so far, the longest silence within one. Knows no endpoint beyond
the address it is given.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import httpx
from http_answers import Answer, read_answer
from http_wire import Ending, Reply
from process_checks import wait_until

_FRAME_END = b"\n\n"


class RunningStreams:
    """One stream for each body, until the block ends; then each comes to its own end."""

    def __init__(self, url: str, bodies: Sequence[dict[str, Any]], timeout_s: float = 60.0) -> None:
        self._url = url
        self._timeout_s = timeout_s
        self._is_over = threading.Event()
        self.answers: list[list[Answer]] = [[] for _ in bodies]
        self.num_frames = [0] * len(bodies)
        self.longest_silence_s = 0.0
        self.faults: list[str] = []
        self._threads = [
            threading.Thread(target=self._go_on, args=(index, body | {"stream": True}))
            for index, body in enumerate(bodies)
        ]

    def __enter__(self) -> RunningStreams:
        for thread in self._threads:
            thread.start()
        wait_until(lambda: all(self.num_frames) or bool(self.faults), what="a frame of each stream")
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _go_on(self, index: int, body: dict[str, Any]) -> None:
        try:
            while not self._is_over.is_set():
                self.answers[index].append(read_answer(self._read(index, body)))
        except (AssertionError, ValueError, httpx.HTTPError) as error:
            self.faults.append(f"stream {index}: {type(error).__name__}: {error}")

    def _read(self, index: int, body: dict[str, Any]) -> Reply:
        content = b""
        with httpx.stream("POST", self._url, json=body, timeout=self._timeout_s) as response:
            last_s = 0.0
            for piece in response.iter_raw():
                now_s = time.monotonic()
                self.longest_silence_s = max(self.longest_silence_s, now_s - (last_s or now_s))
                last_s = now_s
                content += piece
                self.num_frames[index] += piece.count(_FRAME_END)
            return Reply(Ending.WHOLE, response.status_code, dict(response.headers), content)
