"""Chunks of an answer as frames of a stream. Owns the blurring of their lengths (`stream_options.include_obfuscation`): an onlooker of
the encrypted line, who sees lengths, could else guess the words (OpenAI's API reference, stream_options).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable

import msgspec

from ..json_answer import encode_json
from ..sse import data
from .answers import ChatChunk, TextAnswer
from .bodies import StreamOptions

_BLOCK_BYTES = 64


def frames_of(chunks: Iterable[ChatChunk | TextAnswer], options: StreamOptions | None) -> bytes:
    """The frames of `chunks`, to be written at once."""
    if options is None or not options.include_obfuscation:
        return b"".join([data(encode_json(chunk)) for chunk in chunks])
    return b"".join([data(_blurred(chunk)) for chunk in chunks])


def _blurred(chunk: ChatChunk | TextAnswer) -> bytes:
    """The chunk, filled up to a whole number of blocks."""
    size = len(encode_json(msgspec.structs.replace(chunk, obfuscation="")))
    num_missing = -size % _BLOCK_BYTES
    filling = secrets.token_hex(_BLOCK_BYTES)[:num_missing]
    return encode_json(msgspec.structs.replace(chunk, obfuscation=filling))
