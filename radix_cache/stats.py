"""Counters of the prefix cache. Owns plain numbers only; what they cost or mean to a user is for the metrics to say."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(slots=True)
class CacheStats:
    """Totals since the cache was made. Read them, subtract two snapshots for a rate."""

    num_lookups: int = 0  # open() calls
    num_hits: int = 0  # of them, with at least one token found
    num_lookup_tokens: int = 0  # tokens asked for
    num_hit_tokens: int = 0  # of them, found (exact to the token)
    num_page_copies: int = 0  # hits that ended inside a page
    num_published_pages: int = 0  # pages that entered the tree
    num_duplicate_pages: int = 0  # pages freed because another lease had published the same tokens
    num_superseded_pages: int = 0  # partial pages freed because a longer page holds the same tokens
    num_evicted_pages: int = 0  # pages taken back from the tree for others
    num_splits: int = 0  # edges of the tree that were cut in two

    @property
    def hit_rate(self) -> float:
        """Share of the looked-up tokens that were found, 0.0 when nothing was looked up."""
        return self.num_hit_tokens / self.num_lookup_tokens if self.num_lookup_tokens else 0.0

    def as_dict(self) -> dict[str, int]:
        """All counters by name, as a snapshot."""
        return asdict(self)
