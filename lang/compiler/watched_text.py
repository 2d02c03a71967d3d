"""A str that tells when Python looks into it: compares, measures, searches or changes it.

Owns which operations count. What is made of a text by `+`, `join` or an f-string is the text as it came; anything else may be another way of the
program for another text. Looking from inside this package does not count. Must not know programs or what is done about it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

_LANG = str(Path(__file__).parents[1])
_FOR_TEXT = {
    "__add__", "__class__", "__delattr__", "__dir__", "__doc__", "__format__", "__getattribute__", "__getnewargs__",
    "__getstate__", "__init__", "__init_subclass__", "__new__", "__reduce__", "__reduce_ex__", "__setattr__", "__sizeof__",
    "__str__", "__subclasshook__",
}  # fmt: skip


class Listener(Protocol):
    """Who is told."""

    def decided(self, what: str) -> None:
        """Python looked into a text, by `what`."""
        ...


class WatchedText(str):
    """See the module. `source` is the ask and its output, or the argument, that it is as a whole."""

    log: Listener
    source: tuple[int, int] | None

    @staticmethod
    def of(text: str, log: Listener, source: tuple[int, int] | None = None) -> WatchedText:
        """`text`, watched."""
        watched = WatchedText(text)
        watched.log, watched.source = log, source
        return watched

    def __str__(self) -> str:
        return self

    def __format__(self, format_spec: str) -> str:
        if format_spec:
            self.log.decided("a format")
        return str.__format__(self, format_spec)

    def __add__(self, other: str) -> str:
        if not isinstance(other, str):  # pyright: ignore[reportUnnecessaryIsInstance]  a node
            return NotImplemented
        return WatchedText.of(str.__add__(self, other), self.log)

    def __radd__(self, other: str) -> str:
        return WatchedText.of(str.__add__(other, self), self.log)


def _watching(name: str) -> Callable[..., Any]:
    plain = getattr(str, name)

    def method(self: WatchedText, *args: Any, **kwargs: Any) -> Any:
        caller = sys._getframe(1).f_code.co_filename  # pyright: ignore[reportPrivateUsage]
        if not caller.startswith(_LANG):
            self.log.decided(f"str.{name}")
        return plain(self, *args, **kwargs)

    return method


for _name in set(dir(str)) - _FOR_TEXT:
    if callable(getattr(str, _name)):
        setattr(WatchedText, _name, _watching(_name))
