"""A gateway without sockets: what it sends lies in lists, and a test plays the engine and the compile worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from toy_tokenizer import EOS, ToyTokenizer

from radixlm.runtime import messages as m
from radixlm.runtime.config import EngineConfig
from radixlm.runtime.gateway import Gateway

Message = TypeVar("Message")


class GatewayHarness:
    """`tell` is a client's message; `answer_*` are the engine's."""

    def __init__(
        self, *, is_ready: bool = True, tokenizer: ToyTokenizer | None = None, **options: Any
    ) -> None:
        self.now_s = 100.0
        self.tokenizer = tokenizer or ToyTokenizer()
        self.to_client: list[tuple[bytes, m.GatewayMessage]] = []
        self.to_engine: list[m.EngineInbound] = []
        self.jobs: list[m.CompileJob] = []
        self.gateway = Gateway(
            EngineConfig(**options),
            self.tokenizer,
            send_client=lambda client, message: self.to_client.append((client, message)),
            send_engine=self.to_engine.append,
            compile_job=self.jobs.append,
            clock_s=lambda: self.now_s,
        )
        if is_ready:
            self.engine_ready()

    def engine_ready(self, epoch: int = 0) -> None:
        self.gateway.on_engine(m.EngineReady(epoch, 64, 16, 512))

    def tell(self, *messages: m.ClientMessage, client: bytes = b"c1") -> None:
        for message in messages:
            self.gateway.on_client(client, message)

    def answers(self, kind: type[Message], client: bytes = b"c1") -> list[Message]:
        return [
            message for to, message in self.to_client if to == client and isinstance(message, kind)
        ]

    def sent(self, kind: type[Message]) -> list[Message]:
        return [message for message in self.to_engine if isinstance(message, kind)]

    @property
    def submit(self) -> m.Submit:
        """The newest Submit."""
        return self.sent(m.Submit)[-1]

    def ids(self, text: str) -> tuple[int, ...]:
        return tuple(self.tokenizer.encode(text).ids)

    def prompt_text(self, submit: m.Submit) -> str:
        return self.tokenizer.decode(submit.token_ids)

    def finish(
        self, submit: m.Submit, *texts: str | Sequence[int], reason: str = "length", **fields: Any
    ) -> None:
        """Answer a Submit with one sample per text (or ids)."""
        samples = tuple(
            m.Sample(self.ids(text) if isinstance(text, str) else tuple(text), reason, **fields)
            for text in texts
        )
        self.gateway.on_engine(
            m.Done(submit.request, samples, m.Usage(len(submit.token_ids), 0, 1, 0), 7)
        )

    def progress(self, submit: m.Submit, token_ids: Sequence[int], index: int = 0) -> None:
        self.gateway.on_engine(m.Progress(submit.request, index, tuple(token_ids)))


def eos_after(ids: Sequence[int]) -> tuple[int, ...]:
    return (*ids, EOS)
