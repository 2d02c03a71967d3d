"""A lease: one sequence's hold on the cache. Owns the page table of the sequence and the memory of how far it is published.
Knows nothing of requests or text. Only PrefixCache and Publisher write its fields; everyone else reads.

    tokens      0 ........ 32 ........ 64 .... 70 ......... 96
    pages       [p7][p3]   [p9][p4]   [p8 70%][p5 empty]
                |--- num_shared ---|   |-- private to this lease --|
                on the path to `node`  p8 is published as `tail`, but only this lease writes to it
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from .tree import Node


class PageCopy(NamedTuple):
    """One copy-on-write: the first `num_tokens` slots of `source` have to be copied to `destination`."""

    source: int
    destination: int
    num_tokens: int


class PageReplacement(NamedTuple):
    """Entry `page_index` of a lease's page table moved from page `old` (now free) to `new`, which holds the same tokens."""

    page_index: int
    old: int
    new: int


@dataclass(slots=True, eq=False)
class Lease:
    """One sequence's hold on the cache, from open() to release()."""

    namespace: str
    node: Node  # end of the locked path; all its pages are whole
    page_ids: list[int]  # page table so far: position p lives in page_ids[p // page_size]
    num_cached: int  # tokens found by open(), exact; they are usable once `page_copies` are done
    num_shared: int  # tokens on the path to `node`, whole pages
    num_committed: int  # tokens published by this lease or found by it
    page_copies: list[PageCopy] = field(default_factory=list[PageCopy])  # to run before any write
    copy_source: Node | None = None  # the node locked for the copy
    tail: Node | None = None  # this lease's published page that is not full yet
    is_open: bool = True
