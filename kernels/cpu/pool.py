"""The memory of keys and values, as the native kernels read it: numpy arrays that the system hands out page by page when first written.

Owns sizes and allocation. `kernels/ops.py` draws the layout. Knows nothing of which page belongs to whom.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import ConfigError
from ..step import I32, KEY_BLOCK, DecoderShape

KV_KINDS = {"float32": 0, "bfloat16": 1, "int8": 2}
"""Storage types and their numbers in `src/abi.h`."""
_ITEMS: dict[str, Any] = {"float32": np.float32, "bfloat16": np.uint16, "int8": np.int8}
_CACHE_LINE = 64  # bytes


@dataclass(frozen=True, slots=True)
class NativePool:
    """Keys and values of all layers: storage [pages, L, 2, page size, Hk, D], bfloat16 as its bits; of int8 also scales [.., Hk].

    The axes may lie in memory in another order, but for the last three. Within a page some instruction sets keep an order of their own
    (`src/attention_chunks.inl`); then only whole pages can be copied.
    """

    storage: npt.NDArray[Any]
    page_size: int
    kind: str  # of KV_KINDS
    scales: npt.NDArray[np.float32] | None = None

    @classmethod
    def by_layers(
        cls,
        storage: npt.NDArray[Any],
        page_size: int,
        kind: str,
        scales: npt.NDArray[np.float32] | None,
    ) -> NativePool:
        """Over the memory of `ops.KvPool`: storage [L, 2, N, Hk, D], scales [L, 2, N, Hk]."""

        def by_pages(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            layers, _, slots, *rest = values.shape
            pages = values.reshape(layers, 2, slots // page_size, page_size, *rest)
            return np.moveaxis(pages, 2, 0)

        return cls(by_pages(storage), page_size, kind, None if scales is None else by_pages(scales))

    def steps(self) -> tuple[int, int, int]:
        """From a page, a layer, keys to the next, values: in cells, each a head of a token."""
        cell_bytes = self.storage.shape[5] * self.storage.itemsize
        page, layer, side, *_ = self.storage.strides
        return page // cell_bytes, layer // cell_bytes, side // cell_bytes

    def copy_pages(self, copies: I32) -> None:
        """Per row (source page, destination page, n): the first n slots, in all layers. Destinations are distinct and no source."""
        for source, destination, count in copies.tolist():
            self.storage[destination, :, :, :count] = self.storage[source, :, :, :count]
            if self.scales is not None:
                self.scales[destination, :, :, :count] = self.scales[source, :, :, :count]


def page_bytes(shape: DecoderShape, page_size: int, kind: str) -> int:
    """Bytes of one page: keys and values of all layers, and a scale for each head of an int8 one."""
    head_bytes = shape.head_dim * np.dtype(_ITEMS[kind]).itemsize
    if kind == "int8":
        head_bytes += np.dtype(np.float32).itemsize
    return 2 * shape.num_layers * page_size * shape.num_kv_heads * head_bytes


def check_pages(num_pages: int, page_size: int) -> None:
    """ConfigError for a page size that does not divide 64, or no page at all."""
    if num_pages < 1:
        raise ConfigError(f"num_pages={num_pages} leaves no room for a token", place="num_pages")
    if page_size < 1 or KEY_BLOCK % page_size:
        raise ConfigError(f"page_size={page_size} does not divide {KEY_BLOCK}", place="page_size")


def allocate(shape: DecoderShape, num_pages: int, page_size: int, kind: str) -> NativePool:
    """An empty pool, page after page, so that the system gives memory as pages come into use. ConfigError for sizes that cannot be."""
    check_pages(num_pages, page_size)
    cells = (num_pages, shape.num_layers, 2, page_size, shape.num_kv_heads)
    try:
        storage = _zeros((*cells, shape.head_dim), _ITEMS[kind])
        scales = _zeros(cells, np.float32) if kind == "int8" else None
    except MemoryError as error:
        num_bytes = num_pages * page_bytes(shape, page_size, kind)
        raise ConfigError(
            f"a cache of {num_pages * page_size} tokens needs {num_bytes / 2**30:.1f} GiB, which cannot be allocated",
            place="num_pages",
            hint="Use fewer pages or a smaller kv_dtype",
        ) from error
    return NativePool(storage, page_size, kind, scales)


def _zeros(size: tuple[int, ...], item: Any) -> npt.NDArray[Any]:
    """Zeroed memory that begins at a cache line."""
    num_bytes = math.prod(size) * np.dtype(item).itemsize
    memory = np.zeros(num_bytes + _CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % _CACHE_LINE
    return memory[start : start + num_bytes].view(item).reshape(size)
