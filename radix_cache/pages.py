"""Physical pages: who holds each one. Owns the free list and the reference counts; knows nothing of tokens, trees or requests.

A page is an index into the K/V store of the model runner. Its count is the number of holders:

    0   free: in the free list, exactly once
    1   held once: by a tree node (published), or by one lease (private, being written)
    +1  for each pending copy-on-write that still has to read it

so a page that somebody has yet to read can leave the tree without being reused under the reader.
The free list is a stack: the page freed last is the warmest in the processor's caches.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import InvariantError


class PagePool:
    """A fixed set of pages `0 .. num_pages - 1` with reference counts. Every operation is O(1) per page."""

    __slots__ = ("_free", "_holders", "num_pages")

    def __init__(self, num_pages: int) -> None:
        self.num_pages = num_pages
        self._holders = [0] * num_pages
        self._free = list(range(num_pages - 1, -1, -1))

    @property
    def num_free(self) -> int:
        """Pages that nobody holds."""
        return len(self._free)

    def num_holders(self, page_id: int) -> int:
        """How many hold `page_id`; 0 means it is free."""
        return self._holders[page_id]

    def allocate(self, num_pages: int) -> list[int]:
        """Take `num_pages` free pages, each held once by the caller.

        Raises InvariantError when fewer are free: the caller has to make room first.
        """
        if num_pages > len(self._free):
            raise InvariantError(f"{num_pages} pages wanted, {len(self._free)} are free")
        if num_pages <= 0:
            return []
        taken = self._free[-num_pages:]
        taken.reverse()
        del self._free[-num_pages:]
        for page_id in taken:
            self._holders[page_id] = 1
        return taken

    def hold(self, page_id: int) -> None:
        """Add a holder to a page that is held already."""
        if self._holders[page_id] <= 0:
            raise InvariantError(f"page {page_id} is free and cannot gain a holder")
        self._holders[page_id] += 1

    def drop(self, page_id: int) -> None:
        """Take one holder away; the page is free when it was the last."""
        if self._holders[page_id] <= 0:
            raise InvariantError(f"page {page_id} was freed twice")
        self._holders[page_id] -= 1
        if self._holders[page_id] == 0:
            self._free.append(page_id)

    def drop_all(self, page_ids: Iterable[int]) -> None:
        """Drop one holder of each page."""
        for page_id in page_ids:
            self.drop(page_id)

    def check(self) -> None:
        """Raise InvariantError unless the free list holds exactly the pages without a holder, each once."""
        if len(set(self._free)) != len(self._free):
            raise InvariantError("a page stands twice in the free list")
        if any(holders < 0 for holders in self._holders):
            raise InvariantError("a page has a negative number of holders")
        unheld = {page_id for page_id, holders in enumerate(self._holders) if holders == 0}
        if unheld != set(self._free):
            raise InvariantError("the free list differs from the set of pages without a holder")
