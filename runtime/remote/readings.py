"""What a server writes, as outputs: text taken out of its wrapping, cut at stop strings the server was not told, streamed as it comes.

    reading = Reading(server, ask, ...)
    reading.push(index, text)* -> deltas        reading.end(index, reason, stop)        outputs = reading.outputs()

A stream's pieces joined equal the whole text: what may still become a stop string waits, a wrapped answer comes at once at its end.
Owns the outputs of one request. Knows no server's format.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...errors import OutputError, RadixError, ServiceError
from .. import messages as m
from ..output_text import longest_stop_beginning
from .adapter import OnDelta
from .structured import Wrapped

_STOPPED = frozenset(
    {
        "stop",
        "end_turn",
        "stop_sequence",
        "tool_calls",
        "tool_use",
        "function_call",
        "eos",
        "pause_turn",
    }
)
_CUT = frozenset({"length", "max_tokens", "model_context_window_exceeded"})
_REFUSED = frozenset({"content_filter", "refusal"})


@dataclass(slots=True)
class _Text:
    raw: str = ""
    num_given: int = 0
    reason: str | None = None
    stop: str | int | None = None
    logprobs: list[m.TokenLogprob] = field(default_factory=list[m.TokenLogprob])
    ids: list[int] = field(default_factory=list[int])
    tokens: list[str] = field(default_factory=list[str])


class Reading:
    """The n outputs of one request. `stops`: those that the server was not told."""

    def __init__(
        self,
        server: str,
        message: m.Generate,
        on_delta: OnDelta | None,
        *,
        stops: Sequence[str] = (),
        wrapped: Wrapped | None = None,
        swallowed: str = "",
    ) -> None:
        """`swallowed`: white space the server was not told; an output does not repeat it."""
        self._server = server
        self._message = message
        self._on_delta = on_delta
        self._stops = tuple(stops)
        self._wrapped = wrapped
        self._swallowed = swallowed
        self._texts = [_Text() for _ in range(message.sampling.n)]

    def push(self, index: int, text: str) -> None:
        """New text of one output."""
        own = self._of(index)
        own.raw += text
        if self._on_delta is not None and self._wrapped is None:
            self._give(index, own, self._certain(own))

    def add_tokens(
        self,
        index: int,
        *,
        logprobs: Sequence[m.TokenLogprob] = (),
        tokens: Sequence[str] = (),
    ) -> None:
        """Tokens of one output, where the server tells them."""
        own = self._of(index)
        own.logprobs += logprobs
        own.ids += [entry.token_id for entry in logprobs]
        own.tokens += tokens

    def end(self, index: int, reason: str, stop: str | int | None = None) -> None:
        """Why one output ended, in the server's word. OutputError if the model, or a filter, refused to answer."""
        own = self._of(index)
        if reason in _REFUSED:
            raise self.partial(
                OutputError(f"{self._server} ended the answer: {reason}", place="finish_reason")
            )
        own.reason = "length" if reason in _CUT else "stop"
        own.stop = stop
        if reason not in _CUT and reason not in _STOPPED:
            raise self.partial(
                ServiceError(
                    f"{self._server} ended the answer with {reason!r}, which is unknown here"
                )
            )

    def outputs(self) -> tuple[m.Output, ...]:
        """All outputs, and the rest of the stream. ServiceError if one has no end."""
        finished: list[m.Output] = []
        for index, own in enumerate(self._texts):
            if own.reason is None:
                raise self.partial(ServiceError(f"the answer of {self._server} broke off"))
            output = self._output(own)
            if self._on_delta is not None:
                self._give(index, own, output.text)
            finished.append(output)
        return tuple(finished)

    @property
    def tokens(self) -> tuple[str, ...] | None:
        """The tokens of the first output, if the server told them."""
        return tuple(self._texts[0].tokens) or None

    def partial(self, error: RadixError) -> RadixError:
        """`error` with the text so far."""
        error.partial = self._texts[0].raw  # type: ignore[attr-defined]
        return error

    def _of(self, index: int) -> _Text:
        if not 0 <= index < len(self._texts):
            raise ServiceError(
                f"{self._server} sent output {index}, {len(self._texts)} were asked for"
            )
        return self._texts[index]

    def _plain(self, own: _Text) -> str:
        """The text without the white space that stands on the branch already."""
        text = own.raw
        if self._swallowed and text.startswith(self._swallowed):
            return text[len(self._swallowed) :]
        return text

    def _certain(self, own: _Text) -> str:
        """What of the text can be given out now."""
        if self._swallowed and self._swallowed.startswith(own.raw):
            return ""
        text = self._plain(own)
        cut = self._first_stop(text)
        if cut is not None:
            return text[: cut[0]]
        return text[: len(text) - longest_stop_beginning(text, self._stops)]

    def _first_stop(self, text: str) -> tuple[int, str] | None:
        """Where the text ends, and by which stop string."""
        found = [(at, -len(stop), stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if not found:
            return None
        at, _, stop = min(found)
        return (at + len(stop) if self._message.sampling.include_stop else at), stop

    def _output(self, own: _Text) -> m.Output:
        reason, stop, text = own.reason or "stop", own.stop, self._plain(own)
        if self._wrapped is not None:
            is_whole = reason == "stop"
            text = (
                self._wrapped.whole(text, self._server) if is_whole else self._wrapped.partial(text)
            )
        else:
            cut = self._first_stop(text)
            if cut is not None:
                text, reason, stop = text[: cut[0]], "stop", cut[1]
        wants_logprobs = self._message.sampling.logprobs is not None
        return m.Output(
            text,
            tuple(own.ids),
            reason,
            stop,
            tuple(own.logprobs) if wants_logprobs else None,
            None if self._message.constraint is None else reason == "stop",
        )

    def _give(self, index: int, own: _Text, text: str) -> None:
        new = text[own.num_given :]
        if new and self._on_delta is not None:
            own.num_given = len(text)
            self._on_delta(m.Delta(self._message.request, index, new))
