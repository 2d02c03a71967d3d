"""The language's `Backend` over the client of a local runtime. Owns nothing: it names the client's methods as the Protocol does."""

from __future__ import annotations

from concurrent.futures import Future
from concurrent.futures import TimeoutError as WaitTimeout
from typing import TYPE_CHECKING

from ..errors import TimedOut
from . import messages as m
from .client import Client, Notice, OnDelta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .progress import ItemProgress

_TOKENIZE_S = 60.0  # a gateway answers in milliseconds; this long it is not there


class LocalBackend:
    """Satisfies `lang.backend.Backend`. Errors of the branch messages arrive with the next request on that branch."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._vocabulary: m.Vocabulary | None = None

    @property
    def facts(self) -> m.Ready:
        """Facts of the model."""
        return self._client.facts

    def new_id(self, prefix: str) -> str:
        """A name for a branch or request, unique in this backend."""
        return self._client.new_id(prefix)

    def send(self, message: Notice) -> None:
        """Send a message that has no answer."""
        self._client.send(message)

    def generate(self, message: m.Generate, on_delta: OnDelta | None = None) -> Future[m.Finished]:
        """Continue a branch; `on_delta` gets new text, on the client's thread, if `message.stream`."""
        return self._client.request(message, on_delta)

    def score(self, message: m.Score) -> Future[m.Scored]:
        """Log-probabilities of each choice as the continuation of a branch."""
        return self._client.request(message)

    def tokenize(self, text: str) -> tuple[int, ...]:
        """The token ids of a text by itself; waits for the gateway."""
        request = m.Tokenize(self._client.new_id("tokenize"), (m.Text(text),))
        future = self._client.request(request)
        try:
            return future.result(_TOKENIZE_S).token_ids
        except WaitTimeout:
            future.cancel()
            raise TimedOut(f"no tokens of a text within {_TOKENIZE_S:g} s") from None

    def token_texts(self, token_ids: Sequence[int]) -> tuple[str, ...]:
        """What each token spells by itself, U+FFFD for bytes that are no whole character; waits for the gateway the first time."""
        vocabulary: m.Vocabulary | None = self._vocabulary
        if vocabulary is None:
            future = self._client.request(m.VocabularyRequest(self._client.new_id("vocabulary")))
            try:
                found: m.Vocabulary = future.result(_TOKENIZE_S)
            except WaitTimeout:
                future.cancel()
                raise TimedOut(f"no vocabulary within {_TOKENIZE_S:g} s") from None
            vocabulary = self._vocabulary = found
        spelled, special = vocabulary.token_bytes, vocabulary.special_tokens
        return tuple(special.get(i) or spelled[i].decode(errors="replace") for i in token_ids)

    def progress(self, num_items: int) -> ItemProgress:
        """A bar for a batch of runs on this backend (see `lang.batch.HasProgress`)."""
        from .progress import ItemProgress

        return ItemProgress(num_items)
