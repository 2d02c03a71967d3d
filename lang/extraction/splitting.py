"""Long documents in parts that fit: at most so many tokens or characters each, overlapping.

Owns where a text is cut: at the last paragraph, else line, else sentence, else word that ends in the second half of what fits, else
anywhere. The next part begins so far before the cut that the overlap holds, at a word. Must not know models: sizes come from a function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ...errors import ConfigError

Measure = Callable[[str], int]
_CUTS = tuple(map(re.compile, (r"\n\s*\n", r"\n", r"[.!?。！？][\"')\]]*\s", r"\s")))
_CHARACTERS_PER_TOKEN = 4.0  # a first guess; corrected by what is measured
_MIN_SIZE = 16


class Splitter:
    """Cuts texts into parts of at most `size`, each beginning with up to `overlap` of the one before."""

    def __init__(self, size: int, overlap: int, count_tokens: Measure | None = None) -> None:
        """Sizes are in tokens if `count_tokens` is given, else in characters. ConfigError for sizes that cannot be."""
        if size < _MIN_SIZE:
            raise ConfigError(
                f"parts of {size} are too small, the least is {_MIN_SIZE}", place="chunk size"
            )
        if not 0 <= overlap <= size // 4:
            raise ConfigError(
                f"overlap={overlap} is not within 0 .. {size // 4}, a quarter of a part",
                place="overlap",
            )
        self.size = size
        self.overlap = overlap
        self._measure: Measure = count_tokens or len
        self._ratio = 1.0 if count_tokens is None else _CHARACTERS_PER_TOKEN

    def split(self, text: str) -> Iterator[str]:
        """The parts of a text, in order; the text itself if it fits."""
        if self._is_short(text):
            yield text
            return
        start = end = 0
        while True:
            before, end = end, self._end(text, start)
            if end <= before:  # the overlap alone fills a part
                start, end = before, self._end(text, before)
            yield text[start:end].strip("\n")
            if not text[end:].strip():
                return
            start = self._next_start(text, start, end)

    def _is_short(self, text: str) -> bool:
        if len(text) <= self.size and len(text.encode()) <= self.size:
            return True  # a token has at least one byte
        is_far_longer = len(text) > self.size * 64
        return not is_far_longer and self._measure(text) <= self.size

    def _end(self, text: str, start: int) -> int:
        """The end of the part that begins at `start`."""
        guess = max(1, int(self.size * self._ratio))
        was_enlarged = False
        while True:
            limit = min(len(text), start + guess)
            end = limit if limit == len(text) else _cut(text, start, limit)
            num = self._measure(text[start:end])
            if num > self.size and end > start + 1:
                guess = max(1, min(end - start - 1, int((end - start) * self.size / num * 0.97)))
                continue
            if (
                num < self.size * 0.7
                and end < len(text)
                and not was_enlarged
                and self._ratio != 1.0
            ):
                was_enlarged = True
                guess = int(guess * self.size / max(num, 1) * 0.95)
                continue
            if self._ratio != 1.0:
                self._ratio = max(1.01, (end - start) / max(num, 1))
            return end

    def _next_start(self, text: str, start: int, end: int) -> int:
        if not self.overlap:
            return end
        back = max(1, int(self.overlap * self._ratio))
        while back > 1 and self._measure(text[max(start, end - back) : end]) > self.overlap:
            back = back * 3 // 4
        begin = max(start + 1, end - back)
        word = re.compile(r"\s").search(text, begin, end)
        return word.end() if word is not None else begin


def _cut(text: str, start: int, limit: int) -> int:
    """The best place to cut at or before `limit`, in the second half of the stretch."""
    middle = start + max(1, (limit - start) // 2)
    for pattern in _CUTS:
        ends = [found.end() for found in pattern.finditer(text, middle, limit)]
        if ends:
            return ends[-1]
    return limit
