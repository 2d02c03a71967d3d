"""Token ids back to text, whole or while they stream.

Owns the incremental UTF-8 state of one output. Knows a table of token bytes and nothing else. A special token (None in the table) is
not text and yields nothing. Bytes that are not UTF-8 become U+FFFD, in the same places whether the ids come at once or one by one
(Unicode 15.0, section 3.9, "maximal subpart" practice, which Python's decoder follows).
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence


def token_ids_to_bytes(token_bytes: Sequence[bytes | None], token_ids: Iterable[int]) -> bytes:
    """The bytes that `token_ids` spell; special and unknown ids spell nothing."""
    num_tokens = len(token_bytes)
    return b"".join(token_bytes[i] or b"" for i in token_ids if 0 <= i < num_tokens)


def decode_tokens(token_bytes: Sequence[bytes | None], token_ids: Iterable[int]) -> str:
    """The text of `token_ids`, with U+FFFD where the bytes are not UTF-8."""
    return token_ids_to_bytes(token_bytes, token_ids).decode("utf-8", errors="replace")


class IncrementalDecoder:
    """The text of a growing list of ids: `push` gives what is certain, `finish` the rest.

    No code point is ever split over two results, and all results joined equal `decode_tokens` of all ids.
    """

    __slots__ = ("_decoder", "_token_bytes")

    def __init__(self, token_bytes: Sequence[bytes | None]) -> None:
        self._token_bytes = token_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token_ids: Iterable[int]) -> str:
        """The text that became certain with these ids."""
        return self._decoder.decode(token_ids_to_bytes(self._token_bytes, token_ids))

    def push_bytes(self, data: bytes) -> str:
        """The same for bytes, where an output is cut inside a token."""
        return self._decoder.decode(data)

    def finish(self) -> str:
        """The end: an open code point becomes one U+FFFD. The decoder starts anew."""
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return rest
