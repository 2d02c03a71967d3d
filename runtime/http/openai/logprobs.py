"""Log-probabilities of tokens in the two shapes of OpenAI, and which of them belong to the text that is given out.

A token is told together with the first character it adds: one that only begins a character, or whose text a stop string may yet take back,
waits. So a stream and a whole answer tell the same tokens, and what ended the text (an EOS, a stop string) is not among them.
Two tables are needed: what tokens are called (`TokenTable.token_bytes`), and what they add to a text, which for special tokens is nothing.
Owns that order and the spelling of tokens. Must not know requests.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ... import messages as m
from ...detokenizer import IncrementalDecoder
from .answers import ChatLogprobs, ContentLogprob, LegacyLogprobs, TopLogprob

_LOWEST = -9999.0  # stands for minus infinity, which JSON lacks

Placed = tuple[
    int, int, m.TokenLogprob | None
]  # offset in characters, token id, what is known of it


class TokenTable(Protocol):
    """What is asked of the vocabulary."""

    @property
    def token_bytes(self) -> Sequence[bytes]:
        """The name of each token."""
        ...

    @property
    def plain_bytes(self) -> Sequence[bytes]:
        """What each token adds to a text."""
        ...


@dataclass(frozen=True, slots=True)
class NoTokens:
    """The table where no token is ever named."""

    token_bytes: Sequence[bytes] = ()
    plain_bytes: Sequence[bytes] = ()


class TokenLog:
    """The tokens of one output in order, given out as far as their text is."""

    def __init__(self, table: TokenTable, first_offset: int = 0) -> None:
        self._decoder = IncrementalDecoder(table.plain_bytes)
        self._waiting: deque[Placed] = deque()
        self._end = self._given = first_offset

    def push(self, entries: Iterable[m.TokenLogprob]) -> None:
        """The next tokens."""
        for entry in entries:
            self._waiting.append((self._end, entry.token_id, entry))
            self._end += len(self._decoder.push((entry.token_id,)))

    def release(self, num_characters: int) -> list[Placed]:
        """The tokens of the next `num_characters` of text."""
        self._given += num_characters
        released: list[Placed] = []
        while self._waiting and self._waiting[0][0] < self._given:
            released.append(self._waiting.popleft())
        return released


def output_tokens(output: m.Output, table: TokenTable, first_offset: int = 0) -> list[Placed]:
    """The tokens of a finished output's text."""
    log = TokenLog(table, first_offset)
    log.push(output.logprobs or ())
    return log.release(len(output.text))


def prompt_tokens(
    prompt_ids: Sequence[int],
    known: Sequence[m.TokenLogprob | None],
    table: TokenTable,
) -> list[Placed]:
    """All tokens of an echoed prompt; the first has no log-probability."""
    decoder = IncrementalDecoder(table.plain_bytes)
    placed: list[Placed] = []
    offset = 0
    for position, token_id in enumerate(prompt_ids):
        entry = known[position] if position < len(known) else None
        placed.append((offset, token_id, entry))
        offset += len(decoder.push((token_id,)))
    return placed


def chat_logprobs(tokens: Iterable[Placed], num_top: int, table: TokenTable) -> ChatLogprobs:
    """The shape of a chat choice, with the best `num_top` alternatives of each token."""
    content: list[ContentLogprob] = []
    for _, token_id, entry in tokens:
        data = _bytes_of(table, token_id)
        top = [
            TopLogprob(_text(other), _finite(logprob), list(other))
            for other, logprob in _alternatives(entry, num_top, table)
        ]
        logprob = _finite(entry.logprob) if entry is not None else _LOWEST
        content.append(ContentLogprob(_text(data), logprob, list(data), top))
    return ChatLogprobs(content)


def legacy_logprobs(tokens: Iterable[Placed], num_top: int, table: TokenTable) -> LegacyLogprobs:
    """The shape of a text completion: as many alternatives as asked for, and the token itself among them, as OpenAI has it."""
    placed = list(tokens)
    return LegacyLogprobs(
        tokens=[_unique(_bytes_of(table, token_id)) for _, token_id, _ in placed],
        token_logprobs=[None if entry is None else _finite(entry.logprob) for *_, entry in placed],
        top_logprobs=[_legacy_top(entry, num_top, table) for *_, entry in placed]
        if num_top
        else None,
        text_offset=[offset for offset, *_ in placed],
    )


def mean_logprob(output: m.Output) -> float:
    """By which the best of several is chosen: the log-probability per token."""
    values = [entry.logprob for entry in output.logprobs or ()]
    return sum(values) / len(values) if values else -math.inf


def _legacy_top(
    entry: m.TokenLogprob | None, num_top: int, table: TokenTable
) -> dict[str, float] | None:
    if entry is None:
        return None
    top = {
        _unique(other): _finite(logprob) for other, logprob in _alternatives(entry, num_top, table)
    }
    return top | {_unique(_bytes_of(table, entry.token_id)): _finite(entry.logprob)}


def _alternatives(
    entry: m.TokenLogprob | None, num_top: int, table: TokenTable
) -> list[tuple[bytes, float]]:
    if entry is None:
        return []
    return [(_bytes_of(table, token_id), logprob) for token_id, logprob in entry.top[:num_top]]


def _bytes_of(table: TokenTable, token_id: int) -> bytes:
    return table.token_bytes[token_id] if token_id < len(table.token_bytes) else b""


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


def _unique(data: bytes) -> str:
    r"""The spelling of a token as a key: a part of a character is written `bytes:\xe2\x80`, as OpenAI does."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in data)


def _finite(logprob: float) -> float:
    return logprob if math.isfinite(logprob) else _LOWEST
