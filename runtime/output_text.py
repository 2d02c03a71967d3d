"""The text of one output while it streams: whole characters only, and never text that a stop string may yet take back.

The engine decides stop strings on token bytes; here only the end of the text is withheld while it could be the beginning of one. All
pieces given out, joined, equal the final text. Owns one output's decoder; knows no branch, request or socket.
"""

from __future__ import annotations

from collections.abc import Sequence

from .detokenizer import IncrementalDecoder, token_ids_to_bytes
from .messages import Output, Sample


class OutputText:
    """Text of a growing list of token ids. `stops` are the stop strings of the request."""

    __slots__ = ("_decoder", "_num_given", "_stops", "_withheld")

    def __init__(self, decoder: IncrementalDecoder, stops: Sequence[str]) -> None:
        self._decoder = decoder
        self._stops = tuple(stops)
        self._withheld = ""
        self._num_given = 0

    def push(self, token_ids: Sequence[int]) -> str:
        """The text that became certain with these ids."""
        text = self._withheld + self._decoder.push(token_ids)
        keep = longest_stop_beginning(text, self._stops)
        self._withheld = text[len(text) - keep :]
        certain = text[: len(text) - keep]
        self._num_given += len(certain)
        return certain

    def finish(self, whole: str) -> str:
        """What is still missing of the final text `whole`."""
        return whole[self._num_given :]


def longest_stop_beginning(text: str, stops: Sequence[str]) -> int:
    """Length of the longest end of `text` that is a beginning of a stop string (whole stop strings aside)."""
    longest = 0
    for stop in stops:
        for length in range(min(len(stop) - 1, len(text)), longest, -1):
            if text.endswith(stop[:length]):
                longest = length
                break
    return longest


def without_stop_token(
    sample: Sample, eos_token_ids: Sequence[int], *, include_stop: bool
) -> tuple[int, ...]:
    """The sample's ids without the EOS or stop token that ended it; `include_stop` keeps a stop token, never an EOS."""
    ids, stop = sample.token_ids, sample.matched_stop
    if sample.finish_reason != "stop" or not ids or isinstance(stop, bytes):
        return ids
    if stop is None or ids[-1] in eos_token_ids:  # EOS, or a grammar that is complete
        return ids[:-1] if ids[-1] in eos_token_ids else ids
    return ids if include_stop else ids[:-1]


def output_of(
    sample: Sample, kept_ids: Sequence[int], token_bytes: Sequence[bytes | None]
) -> Output:
    """The finished sample with its text; `kept_ids` are its ids without the stop token."""
    data = token_ids_to_bytes(token_bytes, kept_ids)
    if sample.cut_byte >= 0:
        data = data[: sample.cut_byte]
    stop = sample.matched_stop
    return Output(
        text=data.decode("utf-8", errors="replace"),
        token_ids=sample.token_ids,
        finish_reason=sample.finish_reason,
        matched_stop=stop.decode("utf-8", errors="replace") if isinstance(stop, bytes) else stop,
        logprobs=sample.logprobs,
        grammar_complete=sample.grammar_complete,
    )
