"""Packed weights as a file that is mapped into memory, so that a model starts without reading, unpacking or torch.

    magic | length of the header, its CRC-32 | header, JSON | blocks, each at a multiple of 64 bytes

The header holds the key of what was packed (whoever asks for a model compares it), the version of the structs, the trees of
`packed.PackedModel`, offset and size of every block, and a CRC-32 of them all. Opening checks everything but that last sum, which costs a
read of the whole file: `verify` does. A file that differs in anything is no file: `read` answers None, and whoever asked packs again.
Written under another name and moved into place; readers never see half a file.
"""

from __future__ import annotations

import contextlib
import glob
import json
import mmap
import os
import struct
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from .library import ABI_VERSION
from .packed import Block, PackedModel, Tree
from .packed_check import is_sound

Key = dict[str, Any]

_MAGIC = b"RADIXPAK"
_PREFIX = struct.Struct("<8sII")
_ALIGNMENT = 64
_STALE_S = 3600.0  # nobody writes a file for so long


def write(path: Path, key: Key, model: PackedModel) -> None:
    """Store `model` as `path`. OSError when the folder cannot be written or the disk is full; then nothing stays."""
    places: list[tuple[int, int]] = []
    end = checksum = 0
    for block in model.blocks:
        begin = _aligned(end)
        places.append((begin, block.size))
        checksum = zlib.crc32(block, checksum)
        end = begin + block.size
    header = {
        "abi": ABI_VERSION,
        "key": key,
        "blocks": places,  # from the end of the header, aligned
        "checksum": checksum,
        **model.header(),
    }
    text = json.dumps(header).encode()
    start = _aligned(_PREFIX.size + len(text))
    _remove_stale_parts(path)
    descriptor, name = tempfile.mkstemp(".part", f".{path.name}.", path.parent)
    part = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(_PREFIX.pack(_MAGIC, len(text), zlib.crc32(text)))
            file.write(text)
            for (begin, _), block in zip(places, model.blocks, strict=True):
                file.write(bytes(start + begin - file.tell()))
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        part.chmod(0o644)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _remove_stale_parts(path: Path) -> None:
    """What writers that were killed left beside `path`."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        with contextlib.suppress(OSError):
            if time.time() - part.stat().st_mtime > _STALE_S:
                part.unlink()


def read(path: Path, key: Key) -> PackedModel | None:
    """The model in `path`, mapped; None when the file is not there, not whole, or of another key or version."""
    try:
        found = _open(path)
        if found is None or found[0]["abi"] != ABI_VERSION or found[0]["key"] != key:
            return None
        header, blocks = found
        model = PackedModel.from_header(header, blocks)
        return model if is_sound(model) else None
    except (OSError, ValueError, LookupError, TypeError, OverflowError, AttributeError):
        return None


def verify(path: Path) -> bool:
    """Whether every byte is as it was written."""
    try:
        found = _open(path)
        if found is None:
            return False
        checksum = 0
        for block in found[1]:
            checksum = zlib.crc32(block, checksum)
        return bool(checksum == found[0]["checksum"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return False


def _open(path: Path) -> tuple[Tree, list[Block]] | None:
    with path.open("rb") as file:
        magic, length, checksum = _PREFIX.unpack(file.read(_PREFIX.size).ljust(_PREFIX.size))
        text = file.read(length) if magic == _MAGIC else b""
        if len(text) != length or zlib.crc32(text) != checksum:
            return None
        header = json.loads(text)
        start = _aligned(_PREFIX.size + length)
        places = header["blocks"]
        size = start + max((begin + count for begin, count in places), default=0)
        if os.fstat(file.fileno()).st_size != size:
            return None
        memory = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    if any(begin < 0 or count < 0 for begin, count in places):
        return None
    blocks = [memory[start + begin : start + begin + count] for begin, count in places]
    return header, blocks


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT
