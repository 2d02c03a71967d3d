"""Compiled grammars of the gateway: one compilation for equal specs, however many requests wait for it.

Owns the bounded memory (least recently used first) of compiled programs and of refusals, and the list of who waits. The compiling itself
is a function handed in (in a running system the compile worker's queue). Knows nothing of requests: who waits is a callback.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from ..grammar.spec import Spec
from . import messages as m

MAX_REFUSALS = 256

WhenReady = Callable[[m.WireError | None], None]


class CompiledPrograms:
    """Programs by `spec_key`, at most `max_bytes` of them; `compile_job` starts a compilation, its result comes by `on_answer`."""

    def __init__(
        self, max_bytes: int, alphabet: bytes, compile_job: Callable[[m.CompileJob], None]
    ) -> None:
        self.num_compiled = 0
        self.num_bytes = 0
        self._max_bytes = max_bytes
        self._alphabet = alphabet
        self._compile_job = compile_job
        self._programs: OrderedDict[str, bytes] = OrderedDict()
        self._refusals: OrderedDict[str, m.WireError] = OrderedDict()
        self._waiting: dict[str, list[WhenReady]] = {}

    def request(self, key: str, spec: Spec, when_ready: WhenReady) -> None:
        """Call `when_ready(None)` once the program of `spec` is there, or with the error of a refused one; at once if known.

        `key` is `spec_key(spec)`.
        """
        if key in self._programs:
            self._programs.move_to_end(key)
            when_ready(None)
        elif key in self._refusals:
            self._refusals.move_to_end(key)
            when_ready(self._refusals[key])
        elif key in self._waiting:
            self._waiting[key].append(when_ready)
        else:
            self._waiting[key] = [when_ready]
            self._compile_job(m.CompileJob(key, spec, self._alphabet))

    def get(self, key: str) -> bytes | None:
        """The program, or None when it was never compiled or has left."""
        if key in self._programs:
            self._programs.move_to_end(key)
        return self._programs.get(key)

    def on_answer(self, message: m.WorkerMessage) -> None:
        """Take a compilation's result and tell everybody who waits."""
        error: m.WireError | None = None
        if isinstance(message, m.Compiled):
            self.num_compiled += 1
            self._keep(message.program, message.data)
        else:
            error = message.error
            if error.name == "GrammarError":  # a service's failure may pass, a grammar's does not
                self._refusals[message.program] = error
                if len(self._refusals) > MAX_REFUSALS:
                    self._refusals.popitem(last=False)
        for when_ready in self._waiting.pop(message.program, ()):
            when_ready(error)

    def counters(self) -> dict[str, float]:
        """What was compiled and what is held."""
        return {"programs_compiled": self.num_compiled, "program_bytes": self.num_bytes}

    def _keep(self, key: str, data: bytes) -> None:
        self.num_bytes += len(data) - len(self._programs.pop(key, b""))
        self._programs[key] = data
        while self.num_bytes > self._max_bytes and len(self._programs) > 1:
            self.num_bytes -= len(self._programs.popitem(last=False)[1])


def alphabet_of(token_bytes: list[bytes | None]) -> bytes:
    """256 times 0 or 1: which bytes some token spells."""
    spelled = set(b"".join(data for data in token_bytes if data))
    return bytes(byte in spelled for byte in range(256))
