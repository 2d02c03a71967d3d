"""What a matcher allows, in a vocabulary's own terms: the allowed tokens, readable ones among them, and a vocabulary of single bytes.

Owns the way from masks to token ids. Knows nothing of constraints or texts as wholes.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ..matcher import Matcher
from ..vocabulary import Vocabulary

_MAX_EXAMPLES = 12
_NUM_BYTES = 256


@cache
def byte_vocabulary() -> Vocabulary:
    """A token for each byte, of that number, and an end: for constraints without a model."""
    return Vocabulary([bytes((byte,)) for byte in range(_NUM_BYTES)] + [None], (_NUM_BYTES,))


def allowed_tokens(
    matcher: Matcher, vocabulary: Vocabulary, budget: int | None = None
) -> list[int]:
    """Ids of the text tokens that may come next, the end of the output left out."""
    row = np.zeros((vocabulary.vocab_size + 31) // 32, dtype=np.uint32)
    matcher.fill_mask(row, budget)
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: vocabulary.vocab_size]
    return [i for i in np.flatnonzero(bits).tolist() if vocabulary.token_bytes[i] is not None]


def readable_examples(token_ids: list[int], vocabulary: Vocabulary) -> tuple[str, ...]:
    """The shortest tokens that are text by themselves, in the order of their bytes."""
    texts = (vocabulary.token_bytes[i] or b"" for i in token_ids)
    readable = {text for text in texts if _is_text(text)}
    shortest = sorted(readable, key=lambda text: (len(text), text))[:_MAX_EXAMPLES]
    return tuple(text.decode() for text in shortest)


def _is_text(data: bytes) -> bool:
    try:
        return data.decode().isprintable()
    except UnicodeDecodeError:
        return False
