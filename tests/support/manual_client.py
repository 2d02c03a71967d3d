"""A client of the gateway that a test plays by hand: what was asked lies in a list, `delta` and `finish` answer."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from radixlm.errors import RadixError
from radixlm.runtime import messages as m


class ManualClient:
    """Satisfies `live_request.ClientLike`."""

    def __init__(self) -> None:
        self.facts = m.Ready("manual", 512, 300, (0,))
        self.failure: RadixError | None = None
        self.asked: list[Any] = []
        self.futures: list[Future[Any]] = []
        self._on_delta: list[Callable[[m.Delta], None] | None] = []
        self._numbers = itertools.count(1)

    def new_id(self, prefix: str) -> str:
        return f"{prefix}.{next(self._numbers)}"

    def request(
        self,
        message: Any,
        on_delta: Callable[[m.Delta], None] | None = None,
        on_accepted: Callable[[m.Accepted], None] | None = None,
    ) -> Future[Any]:
        future: Future[Any] = Future()
        self.asked.append(message)
        self.futures.append(future)
        self._on_delta.append(on_delta)
        return future

    def delta(self, text: str, which: int = 0, index: int = 0, **fields: Any) -> None:
        on_delta = self._on_delta[which]
        assert on_delta is not None
        on_delta(m.Delta(self.asked[which].request, index, text, **fields))

    def finish(self, *texts: str, which: int = 0) -> None:
        outputs = tuple(m.Output(text, (), "stop") for text in texts)
        self.futures[which].set_result(m.Finished(self.asked[which].request, outputs, m.Usage()))

    def fail(self, error: RadixError, which: int = 0) -> None:
        self.futures[which].set_exception(error)
