"""A client of the gateway that no gateway stands behind: every Generate is answered with the text a test wrote.

Its vocabulary is the 256 bytes and one special token, so any text can be spelled and characters span several tokens.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from radixlm.errors import RadixError
from radixlm.runtime import messages as m
from radixlm.runtime.detokenizer import IncrementalDecoder

END = 256
TOKEN_BYTES = (*(bytes([value]) for value in range(256)), b"")


@dataclass
class Script:
    """What one Generate is answered with. `stop` is what matched; `hidden` are bytes sampled but cut from the text by it."""

    text: str = "Hello"
    reason: str = "stop"
    stop: str | int | None = None
    hidden: bytes = b""
    has_end: bool = True  # a stop without `stop` samples the end token
    error: RadixError | None = None
    fails_after: int | None = None  # tokens streamed before `error`
    never_ends: bool = False
    accepted_after_s: float = 0.0  # before that nothing comes, an error included
    fails_after_s: float = 0.0  # from the last text to `error`


Answer = Callable[[m.Generate], Script]


@dataclass
class ScriptedClient:
    """`ClientLike` for the HTTP server. `answer` decides each output; `asked` holds what came."""

    answer: Answer = field(default=lambda _: Script())
    tokens_per_delta: int = 3
    logprob_of: Callable[[str], float] = field(default=lambda _: -0.5)  # of every token of a text
    asked: list[m.Generate] = field(default_factory=list[m.Generate])
    cancelled: list[str] = field(default_factory=list[str])
    failure: RadixError | None = None
    facts: m.Ready = field(default_factory=lambda: m.Ready("toy", 4096, 257, (END,)))

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()

    def new_id(self, prefix: str) -> str:
        return f"{prefix}.{next(self._numbers)}"

    def request(
        self,
        message: Any,
        on_delta: Callable[[m.Delta], None] | None = None,
        on_accepted: Callable[[m.Accepted], None] | None = None,
    ) -> Future[Any]:
        future: Future[Any] = Future()
        if isinstance(message, m.VocabularyRequest):
            future.set_result(m.Vocabulary(message.request, TOKEN_BYTES, {END: "<|end|>"}))
        elif isinstance(message, m.Tokenize):
            future.set_result(m.Tokenized(message.request, _prompt_ids(message.segments)))
        else:
            self.asked.append(message)
            task = asyncio.get_running_loop().create_task(
                self._run(message, future, on_delta, on_accepted)
            )
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            future.add_done_callback(lambda done: self._on_done(message, task, done))
        return future

    def _on_done(self, message: m.Generate, task: asyncio.Task[None], done: Future[Any]) -> None:
        if done.cancelled():
            self.cancelled.append(message.request)
            task.cancel()

    async def _run(
        self,
        message: m.Generate,
        future: Future[Any],
        on_delta: Callable[[m.Delta], None] | None,
        on_accepted: Callable[[m.Accepted], None] | None,
    ) -> None:
        scripts = [self.answer(message) for _ in range(message.sampling.n)]
        outputs = [self._output(script, message.sampling) for script in scripts]
        await asyncio.sleep(max(script.accepted_after_s for script in scripts))
        refused = any(script.error and script.fails_after is None for script in scripts)
        if message.stream and on_accepted is not None and not refused:
            on_accepted(m.Accepted(message.request))
        for index, (script, output) in enumerate(zip(scripts, outputs, strict=True)):
            if message.stream and on_delta is not None:
                for delta in self._deltas(message, index, script, output):
                    await asyncio.sleep(0)
                    if not future.done():
                        on_delta(delta)
        await asyncio.sleep(0)
        error = next((script.error for script in scripts if script.error is not None), None)
        if any(script.never_ends for script in scripts) or future.done():
            return
        if error is not None:
            await asyncio.sleep(max(script.fails_after_s for script in scripts))
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
            return
        prompt_ids = _prompt_ids(message.segments)
        num_tokens = sum(len(output.token_ids) for output in outputs)
        known = None
        if message.sampling.prompt_logprobs is not None:
            entries = _logprobs(prompt_ids, message.sampling.prompt_logprobs)
            known = (None, *entries[1:])
        usage = m.Usage(len(prompt_ids), 2, num_tokens, 1)
        future.set_result(m.Finished(message.request, tuple(outputs), usage, 7, known))

    def _output(self, script: Script, sampling: m.SamplingParams) -> m.Output:
        ids = tuple(script.text.encode() + script.hidden)
        if script.reason == "stop" and script.stop is None and script.has_end:
            ids += (END,)
        logprobs = None
        if sampling.logprobs is not None:
            logprobs = _logprobs(ids, sampling.logprobs, self.logprob_of(script.text))
        return m.Output(script.text, ids, script.reason, script.stop, logprobs)

    def _deltas(
        self, message: m.Generate, index: int, script: Script, output: m.Output
    ) -> Iterator[m.Delta]:
        decoder = IncrementalDecoder(TOKEN_BYTES)
        ids, logprobs = output.token_ids, output.logprobs or ()
        num_given = 0
        for start in range(0, len(ids), self.tokens_per_delta):
            if script.fails_after is not None and start >= script.fails_after:
                return
            if script.error is not None and script.fails_after is None:
                return
            piece = ids[start : start + self.tokens_per_delta]
            text = decoder.push(piece)[: max(len(output.text) - num_given, 0)]
            num_given += len(text)
            yield m.Delta(
                message.request, index, text, piece, logprobs[start : start + self.tokens_per_delta]
            )
        if num_given < len(output.text):
            yield m.Delta(message.request, index, output.text[num_given:])


def _logprobs(
    ids: tuple[int, ...], num_top: int, value: float = -0.5
) -> tuple[m.TokenLogprob, ...]:
    return tuple(
        m.TokenLogprob(i, value, tuple(((i + k) % 257, value - k) for k in range(num_top)))
        for i in ids
    )


def _prompt_ids(segments: tuple[m.Segment, ...]) -> tuple[int, ...]:
    ids: list[int] = []
    for segment in segments:
        if isinstance(segment, m.Text):
            ids += segment.text.encode()
        elif isinstance(segment, m.Ids):
            ids += segment.token_ids
        elif isinstance(segment, m.Chat):
            ids += repr(segment.messages).encode()
    return tuple(ids)
