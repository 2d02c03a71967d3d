"""The constant beginning of a batch, opened once: every item continues a copy of it.

Owns those branches, one per namespace, and the check that an item really begins so. Must not know plans or requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...runtime.messages import Append, CloseBranch, OpenBranch, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...runtime.messages import Segment
    from ..backend import Backend

_MIN_CHARACTERS = 64  # for less a copy saves nothing


class Stems:
    """See the module. The caller holds a lock."""

    def __init__(self, backend: Backend, prefix: Sequence[Segment]) -> None:
        texts = (segment.text for segment in prefix if isinstance(segment, Text))
        self._prefix = tuple(prefix) if sum(map(len, texts)) >= _MIN_CHARACTERS else ()
        self._backend = backend
        self._open: dict[tuple[str, bool], str] = {}  # namespace, strict_text -> branch

    def place_for(
        self, segments: Sequence[Segment], namespace: str, strict_text: bool
    ) -> tuple[str, tuple[Segment, ...]] | None:
        """The branch to continue and what is left to append to a copy of it; None if `segments` begin otherwise."""
        rest = without_prefix(segments, self._prefix) if self._prefix else None
        if rest is None:
            return None
        name = self._open.get((namespace, strict_text))
        if name is None:
            name = self._open[namespace, strict_text] = self._backend.new_id("stem")
            self._backend.send(OpenBranch(name, namespace, strict_text))
            self._backend.send(Append(name, self._prefix))
        return name, rest

    def close(self) -> None:
        """No item comes any more."""
        for name in self._open.values():
            self._backend.send(CloseBranch(name))
        self._open.clear()
        self._prefix = ()


def without_prefix(
    segments: Sequence[Segment], prefix: Sequence[Segment]
) -> tuple[Segment, ...] | None:
    """What follows `prefix` in `segments`, which may cut texts at other places; None if they begin otherwise."""
    rest = list(segments)
    for wanted in prefix:
        if not isinstance(wanted, Text):
            if not rest or rest.pop(0) != wanted:
                return None
            continue
        text = wanted.text
        while text:
            first = rest.pop(0) if rest else None
            if not isinstance(first, Text):
                return None
            num = min(len(first.text), len(text))
            if first.text[:num] != text[:num]:
                return None
            text = text[num:]
            if first.text[num:]:
                rest.insert(0, Text(first.text[num:]))
    return tuple(rest)
