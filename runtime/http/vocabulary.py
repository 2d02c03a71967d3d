"""What single tokens spell, for log-probabilities and /detokenize. Owns the table, fetched once from the gateway.

A token's bytes need not be whole characters; its text shows U+FFFD then, and its bytes tell. Special tokens spell themselves here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ...errors import PromptError
from .. import messages as m
from ..detokenizer import decode_tokens
from .live_request import ClientLike, answer_of


class Vocabulary:
    """The tokens of one model. `token_bytes[id]` is what it spells, special tokens included; in `plain_bytes` they spell nothing."""

    def __init__(self, message: m.Vocabulary) -> None:
        self.plain_bytes = message.token_bytes
        special = message.special_tokens
        self.token_bytes: tuple[bytes, ...] = tuple(
            special[token_id].encode() if token_id in special else data
            for token_id, data in enumerate(message.token_bytes)
        )

    def text_of_token(self, token_id: int) -> str:
        """One token as text, U+FFFD where its bytes are no whole characters."""
        return self.token_bytes[token_id].decode("utf-8", errors="replace")

    def text_of(self, token_ids: Sequence[int], *, skip_special: bool = False) -> str:
        """The text of a row of tokens. PromptError for an id that is not in the vocabulary."""
        for position, token_id in enumerate(token_ids):
            if not 0 <= token_id < len(self.token_bytes):
                raise PromptError(
                    f"token id {token_id} is not within 0 .. {len(self.token_bytes) - 1}",
                    place=f"tokens[{position}]",
                )
        return decode_tokens(self.plain_bytes if skip_special else self.token_bytes, token_ids)


class VocabularyTable:
    """The vocabulary, when it is asked for: `vocabulary = await server.vocabulary.load()`."""

    def __init__(self, client: ClientLike) -> None:
        self._client = client
        self._loading: asyncio.Task[Vocabulary] | None = None

    async def load(self) -> Vocabulary:
        """The vocabulary; asked for once, and again when that failed."""
        if self._loading is None or (self._loading.done() and self._has_failed(self._loading)):
            self._loading = asyncio.get_running_loop().create_task(self._fetch())
        return await asyncio.shield(self._loading)

    @staticmethod
    def _has_failed(task: asyncio.Task[Vocabulary]) -> bool:
        return task.cancelled() or task.exception() is not None

    async def _fetch(self) -> Vocabulary:
        request = m.VocabularyRequest(self._client.new_id("vocabulary"))
        return Vocabulary(await answer_of(self._client.request(request)))
