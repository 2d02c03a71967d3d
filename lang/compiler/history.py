"""What a branch holds, as a digest: equal digests, equal text by equal means.

Owns the form in which segments and requests enter it: texts that stand next to one another count as one, and a result that equal text gives
again counts by how it was asked for, so a digest is known before the results are.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from ...runtime.messages import RoleBegin, Text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...runtime.messages import Generate, Segment

# bytes that no UTF-8 text holds, to mark what is no text
_ROLE, _OTHER, _REPEATABLE, _UNIQUE, _SCORE, _START = (bytes((b,)) for b in range(0xF8, 0xFE))


class History:
    """The digest of one branch, growing."""

    __slots__ = ("_hash",)

    def __init__(self, namespace: str, strict_text: bool) -> None:
        self._hash = hashlib.blake2b(_START + bytes([strict_text]) + namespace.encode() + _START)

    def copy(self) -> History:
        """Another branch with the same text."""
        twin = History.__new__(History)
        twin._hash = self._hash.copy()
        return twin

    def append(self, segments: Iterable[Segment]) -> None:
        """Constants at the end."""
        for segment in segments:
            if isinstance(segment, Text):
                self._hash.update(segment.text.encode("utf-8", "surrogatepass"))
            else:
                mark = _ROLE if isinstance(segment, RoleBegin) else _OTHER
                self._hash.update(mark + msgspec.msgpack.encode(segment) + mark)

    def generate(self, message: Generate) -> bytes | None:
        """A gen at the end. The key under which its result may be found; None if equal text may give another one."""
        sampling = message.sampling
        if sampling.temperature == 0:
            sampling = msgspec.structs.replace(sampling, seed=None)
        elif sampling.seed is None:
            self._hash.update(_UNIQUE + message.request.encode() + _UNIQUE)
            return None
        asked = msgspec.msgpack.encode((sampling, message.constraint))
        self._hash.update(_REPEATABLE + asked + _REPEATABLE)
        return self._hash.digest()

    def score(self, choices: tuple[str, ...]) -> bytes:
        """The key of the scores of `choices` here; the branch stays as it is."""
        twin = self._hash.copy()
        twin.update(_SCORE + msgspec.msgpack.encode(choices))
        return twin.digest()
