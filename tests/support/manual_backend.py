"""A backend whose answers a test gives by hand, in any order, from any place: also those that no good runtime would give."""

from __future__ import annotations

from concurrent.futures import Future
from itertools import count
from typing import Any

from radixlm.runtime.messages import Finished, Generate, Output, Ready, Score, Scored, Usage


class ManualBackend:
    facts = Ready(model="manual", context_length=100, vocab_size=10, eos_token_ids=())

    def __init__(self, *, answers_later_scores_at_once: bool = False) -> None:
        self.sent: list[Any] = []
        self.futures: dict[str, Future[Any]] = {}
        self._at_once = answers_later_scores_at_once
        self._numbers = count(1)

    def new_id(self, prefix: str) -> str:
        return f"{prefix}#{next(self._numbers)}"

    def send(self, message: Any) -> None:
        self.sent.append(message)

    def generate(self, message: Generate, on_delta: Any = None) -> Future[Finished]:
        return self._new(message.request)

    def score(self, message: Score) -> Future[Scored]:
        future = self._new(message.request)
        if self._at_once and len(self.futures) > 1:
            self.choose(message.request)
        return future

    def finish(self, request: str, text: str) -> None:
        output = Output(text, (), "stop")
        self.futures[request].set_result(Finished(request, (output,), Usage()))

    def choose(self, request: str) -> None:
        scored = Scored(request, ((1,), (2,)), ((-1.0,), (-2.0,)), Usage())
        self.futures[request].set_result(scored)

    def _new(self, request: str) -> Future[Any]:
        self.futures[request] = Future()
        return self.futures[request]
