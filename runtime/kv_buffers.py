"""Allocates the K/V pool that pages index into.

Owns the pool's memory. Knows nothing of which page belongs to whom (`radix_cache` does) or of how kernels read it (`kernels.ops` draws
its layout). The memory is zeroed lazily by the operating system, so a large pool costs only what was written.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from ..errors import ConfigError
from ..kernels.ops import KEY_BLOCK, DecoderShape, KvPool

_CACHE_LINE = 64  # bytes
_SCALE = torch.float32


def num_pool_bytes(shape: DecoderShape, num_pages: int, page_size: int, dtype: torch.dtype) -> int:
    """Bytes of a pool: two tensors a layer of num_pages * page_size tokens, and a scale for each head of an int8 one."""
    head_bytes = shape.head_dim * dtype.itemsize + (_SCALE.itemsize if dtype == torch.int8 else 0)
    return 2 * shape.num_layers * num_pages * page_size * shape.num_kv_heads * head_bytes


def allocate_pool(
    shape: DecoderShape, num_pages: int, page_size: int, dtype: torch.dtype, device: str = "cpu"
) -> KvPool:
    """A zeroed pool. ConfigError for a page size that does not divide 64, no page at all, or more memory than there is."""
    if num_pages < 1:
        raise ConfigError(f"num_pages={num_pages} leaves no room for a token", place="num_pages")
    if page_size < 1 or KEY_BLOCK % page_size:
        raise ConfigError(f"page_size={page_size} does not divide {KEY_BLOCK}", place="page_size")
    cells = (shape.num_layers, 2, num_pages * page_size, shape.num_kv_heads)
    try:
        storage = _zeros((*cells, shape.head_dim), dtype, device)
        scales = _zeros(cells, _SCALE, device) if dtype == torch.int8 else None
    except (RuntimeError, MemoryError) as error:
        num_bytes = num_pool_bytes(shape, num_pages, page_size, dtype)
        raise ConfigError(
            f"a cache of {num_pages * page_size} tokens needs {num_bytes / 2**30:.1f} GiB, which cannot be allocated",
            place="num_pages",
            hint="Use fewer pages or a smaller kv_dtype",
        ) from error
    return KvPool(storage, page_size, scales)


def _zeros(size: tuple[int, ...], dtype: torch.dtype, device: str) -> torch.Tensor:
    """Zeroed memory, of cache lines, that the system hands out page by page when it is first written; `torch.zeros` writes all of it."""
    if device != "cpu":
        return torch.zeros(size, dtype=dtype, device=device)
    num_bytes = math.prod(size) * dtype.itemsize
    memory = torch.from_numpy(np.zeros(num_bytes + _CACHE_LINE, np.uint8))
    start = -memory.data_ptr() % _CACHE_LINE
    return memory[start : start + num_bytes].view(dtype).view(size)
