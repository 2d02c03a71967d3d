"""A pretend K/V store for tests of the prefix cache. A slot holds a hash of everything its K/V would depend on: the
namespace and all tokens up to its position. Reading a slot back therefore proves whose K/V it is, not only which token's.
"""

from __future__ import annotations

from collections.abc import Sequence

EMPTY = -1


def slot_values(namespace: str, token_ids: Sequence[int]) -> list[int]:
    """What the slots of a sequence hold, position by position."""
    values: list[int] = []
    seen: object = namespace
    for token_id in token_ids:
        value = hash((seen, token_id)) & 0x7FFFFFFFFFFFFFFF
        values.append(value)
        seen = value
    return values


class KvMemory:
    """Slots of all pages, written and copied as a model runner would."""

    def __init__(self, num_pages: int, page_size: int) -> None:
        self.page_size = page_size
        self.slots = [[EMPTY] * page_size for _ in range(num_pages)]

    def write(self, page_ids: Sequence[int], position: int, value: int) -> None:
        self.slots[page_ids[position // self.page_size]][position % self.page_size] = value

    def read(self, page_ids: Sequence[int], num_tokens: int) -> list[int]:
        return [
            self.slots[page_ids[p // self.page_size]][p % self.page_size] for p in range(num_tokens)
        ]

    def copy(self, source: int, destination: int, num_tokens: int) -> None:
        self.slots[destination][:num_tokens] = self.slots[source][:num_tokens]

    def scribble(self, page_id: int) -> None:
        """What a free page may hold: anything."""
        self.slots[page_id] = [EMPTY] * self.page_size
