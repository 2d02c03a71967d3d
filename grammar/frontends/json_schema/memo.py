"""What the front end remembers from one schema to the next.

Owns one bounded table: a fixed weight in all, the entry that has been used least recently leaves first. Schemas of one user resemble each
other, so the same patterns and bounds come again; the memory they take here is bounded whatever they are. Only for results that depend on
nothing but their key. Knows nothing of schemas.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Memo(Generic[Key, Value]):
    """At most `capacity` in weight; what weighs more than a quarter of it is not kept. Safe for threads."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._weight = 0
        self._entries: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key) -> Value | None:
        """What is known by `key`."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
        return found[0]

    def put(self, key: Key, value: Value, weight: int) -> Value:
        """Keep `value`; returns what is known by `key` from now on, which is an earlier value if there is one."""
        if weight * 4 > self._capacity:
            return value
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                return found[0]
            self._entries[key] = (value, weight)
            self._weight += weight
            while self._weight > self._capacity:
                _, (_, dropped) = self._entries.popitem(last=False)
                self._weight -= dropped
        return value
