"""Compiled grammars an engine holds, and the requests that wait for one. Owns a bounded LRU by key.

A program in use stays alive through the matchers made from it, so dropping it here frees memory only when nobody runs it;
the next request for it asks for the program again. Programs grow while they are used (masks, states), so the bound in bytes is looked
at whenever one is asked for. How bytes become masks is injected. Knows nothing of scheduling.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from .constraint import MatcherLike
from .request import Request

MakeMatcher = Callable[[], MatcherLike]
LoadGrammar = Callable[[bytes], MakeMatcher]  # raises errors.GrammarError on damaged bytes


@runtime_checkable
class Measured(Protocol):
    """A program that knows its size."""

    @property
    def num_bytes(self) -> int:
        """About the memory it takes now."""
        ...


class ProgramStore:
    """Programs by key, at most `capacity` of them and about `max_bytes`, and waiting requests by key."""

    def __init__(self, load: LoadGrammar, capacity: int, max_bytes: int) -> None:
        self._load = load
        self._capacity = capacity
        self._max_bytes = max_bytes
        self._programs: OrderedDict[str, MakeMatcher] = OrderedDict()
        self._waiting: dict[str, list[Request]] = {}
        self.num_loaded = 0  # programs loaded since the start

    def __len__(self) -> int:
        return len(self._programs)

    @property
    def num_bytes(self) -> int:
        """About the memory of the programs held."""
        return sum(p.num_bytes for p in self._programs.values() if isinstance(p, Measured))

    @property
    def num_waiting(self) -> int:
        """Requests whose grammar has not arrived."""
        return sum(map(len, self._waiting.values()))

    def counters(self) -> dict[str, float]:
        """What is held, and who waits."""
        return {
            "waiting_grammar": self.num_waiting,
            "programs": len(self),
            "loaded_program_bytes": self.num_bytes,
            "programs_loaded": self.num_loaded,
        }

    def get(self, key: str) -> MakeMatcher | None:
        """A source of fresh matchers for `key`, None when the program is not held."""
        found = self._programs.get(key)
        if found is not None:
            self._programs.move_to_end(key)
            self._trim()
        return found

    def put(self, key: str, data: bytes) -> MakeMatcher:
        """Load a program, or keep the one held under the same key (equal keys are equal programs)."""
        found = self.get(key)
        if found is not None:
            return found
        found = self._programs[key] = self._load(data)
        self.num_loaded += 1
        self._trim()
        return found

    def _trim(self) -> None:
        """Drop what was not used for longest; the newest stays, whatever its size."""
        while len(self._programs) > 1 and (
            len(self._programs) > self._capacity or self.num_bytes > self._max_bytes
        ):
            self._programs.popitem(last=False)

    def wait(self, key: str, request: Request) -> bool:
        """Let `request` wait for `key`. True when nobody waited yet, so that the program has to be asked for."""
        waiting = self._waiting.setdefault(key, [])
        waiting.append(request)
        return len(waiting) == 1

    def take_waiting(self, key: str) -> list[Request]:
        """The requests that waited for `key`, which wait no longer."""
        return self._waiting.pop(key, [])

    def forget(self, key: str, request: Request) -> None:
        """A waiting request ended."""
        waiting = self._waiting.get(key, [])
        if request in waiting:
            waiting.remove(request)
        if not waiting:
            self._waiting.pop(key, None)
