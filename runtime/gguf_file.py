"""GGUF files: metadata and tensors, nothing trusted before it is checked against the file.

Owns the parse of the header and the proof that every length, count, type and offset fits the file. Knows nothing of what keys or
tensors mean. The layout is the GGUF specification, versions 2 and 3, little-endian. The `gguf` library's own reader memory-maps the file and
believes it (and takes seconds for a vocabulary), so the header is parsed here.

    magic version tensor_count kv_count | kv ... | tensor info ... | pad | tensor data (offsets relative to here, aligned)
"""

from __future__ import annotations

import itertools
import mmap
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import ModelError
from .gguf_types import ARRAY, DEFAULT_ALIGNMENT, SCALARS, STRING, TENSOR_TYPES

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MAX_KEYS = 65_536
MAX_TENSORS = 65_536
MAX_NAME_BYTES = 65_535
MAX_ARRAY_ITEMS = 4_000_000
MAX_ALIGNMENT_BYTES = 1 << 16
_MIN_KEY_BYTES = 8 + 4 + 1  # empty key, type, a one-byte value
_MIN_TENSOR_BYTES = 8 + 4 + 8 + 4 + 8  # empty name, one dimension


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """One tensor of the file.

    `shape` counts elements, rows first (numpy order, the reverse of the file's). `type_name` is ggml's ("F32", "Q4_1", ...). `memory` is
    a read-only view of the file.
    """

    name: str
    shape: tuple[int, ...]
    type_name: str
    memory: memoryview

    @property
    def data(self) -> npt.NDArray[np.uint8]:
        """The bytes as shape[:-1] + (bytes per row,): what `gguf.quants.dequantize` takes."""
        import numpy as np  # not above: who reads metadata alone, as the gateway does, does without it

        return np.frombuffer(self.memory, np.uint8).reshape(*self.shape[:-1], -1)


@dataclass(frozen=True, slots=True)
class GgufFile:
    """A checked file. `metadata`: key -> str, int, float, bool or a list of them; `tensors`: name -> GgufTensor."""

    path: Path
    metadata: Mapping[str, Any]
    tensors: Mapping[str, GgufTensor]


def open_gguf(path: Path) -> GgufFile:
    """Map the file and check it whole (header, sizes, offsets; not the weights' values).

    Raises ModelError naming the key or tensor that is wrong. The views stay valid as long as the file is not truncated.
    """
    try:
        num_bytes = path.stat().st_size
        if num_bytes < 24:
            raise ModelError(f"{path} is not a GGUF file: it has {num_bytes} bytes")
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror or error}") from error
    return _HeaderReader(path, mapped).read()


@dataclass(frozen=True, slots=True)
class _TensorInfo:
    name: str
    dims: tuple[int, ...]  # as in the file: row length first
    type_number: int
    offset_bytes: int


class _HeaderReader:
    """A cursor over the mapped file; each step checks that what it reads lies inside."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self._path = path
        self._data = data
        self._num_bytes = len(data)
        self._at = 0
        self._what = "header"  # the key or tensor being read, for messages

    def read(self) -> GgufFile:
        num_tensors, num_keys = self._read_preamble()
        metadata = self._read_metadata(num_keys)
        infos = self._read_tensor_infos(num_tensors)
        self._what = "general.alignment"
        alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
        if (
            not isinstance(alignment, int)
            or not 0 < alignment <= MAX_ALIGNMENT_BYTES
            or alignment & (alignment - 1)
        ):
            self._fail(f"alignment {alignment!r} is not a power of two up to {MAX_ALIGNMENT_BYTES}")
        data_start = -(-self._at // alignment) * alignment
        tensors = self._place_tensors(infos, data_start, alignment)
        return GgufFile(self._path, metadata, tensors)

    def _fail(self, why: str) -> NoReturn:
        raise ModelError(
            f"{self._path} is damaged or not supported: {why}",
            place=self._what,
            hint="Fetch the file again, or convert it with a current converter",
        )

    # -- primitives

    def _take(self, num_bytes: int) -> int:
        """Advance over `num_bytes` and give where they start."""
        start = self._at
        if num_bytes > self._num_bytes - start:
            self._fail(
                f"{num_bytes} bytes are announced at byte {start}, the file ends at {self._num_bytes}"
            )
        self._at = start + num_bytes
        return start

    def _u32(self) -> int:
        return _U32.unpack_from(self._data, self._take(4))[0]

    def _u64(self) -> int:
        return _U64.unpack_from(self._data, self._take(8))[0]

    def _string(self, max_bytes: int) -> str:
        num_bytes = self._u64()
        if num_bytes > max_bytes:
            self._fail(
                f"a string of {num_bytes} bytes at byte {self._at - 8} (at most {max_bytes})"
            )
        start = self._take(num_bytes)
        try:
            return self._data[start : self._at].decode("utf-8")
        except UnicodeDecodeError:
            self._fail(f"the string at byte {start} is not UTF-8")

    # -- parts

    def _read_preamble(self) -> tuple[int, int]:
        if self._data[:4] != b"GGUF":
            self._fail(f"it starts with {self._data[:4]!r} instead of b'GGUF'")
        self._at = 4
        version = self._u32()
        if version not in (2, 3):
            big_endian = version & 0xFFFF == 0
            self._fail(
                "big-endian files are not read"
                if big_endian
                else f"version {version} (2 and 3 are read)"
            )
        num_tensors, num_keys = self._u64(), self._u64()
        room = self._num_bytes - self._at
        if num_keys > min(MAX_KEYS, room // _MIN_KEY_BYTES):
            self._fail(f"{num_keys} metadata keys are announced")
        if num_tensors > min(MAX_TENSORS, room // _MIN_TENSOR_BYTES):
            self._fail(f"{num_tensors} tensors are announced")
        return num_tensors, num_keys

    def _read_metadata(self, num_keys: int) -> dict[str, Any]:
        metadata: dict[str, Any] = {}
        for index in range(num_keys):
            self._what = f"metadata key {index}"
            key = self._string(MAX_NAME_BYTES)
            self._what = key
            if key in metadata:
                self._fail("the key stands twice")
            metadata[key] = self._value(self._u32())
        return metadata

    def _value(self, type_number: int) -> Any:
        if type_number == STRING:
            return self._string(self._num_bytes)
        if type_number == ARRAY:
            return self._array()
        code, num_bytes = self._scalar(type_number)
        start = self._take(num_bytes)
        if code == "?" and self._data[start] > 1:
            self._fail(f"a truth value of {self._data[start]}")
        return struct.unpack_from(f"<{code}", self._data, start)[0]

    def _scalar(self, type_number: int) -> tuple[str, int]:
        if type_number not in SCALARS:
            self._fail(f"value type {type_number} is unknown")
        return SCALARS[type_number]

    def _array(self) -> list[Any]:
        item_type, num_items = self._u32(), self._u64()
        if num_items > MAX_ARRAY_ITEMS:
            self._fail(f"an array of {num_items} items (at most {MAX_ARRAY_ITEMS})")
        if item_type == STRING:
            if num_items * 8 > self._num_bytes - self._at:
                self._fail(f"an array of {num_items} strings does not fit the file")
            return self._strings(num_items)
        if item_type == ARRAY:
            self._fail("arrays of arrays are not read")
        code, num_bytes = self._scalar(item_type)
        start = self._take(num_items * num_bytes)
        if code == "?":
            return [byte != 0 for byte in self._data[start : self._at]]
        return list(struct.unpack_from(f"<{num_items}{code}", self._data, start))

    def _strings(self, num_items: int) -> list[str]:
        """The hot loop of opening a file: vocabularies have 10^5 tokens and as many merges."""
        data, at, end, unpack = self._data, self._at, self._num_bytes, _U64.unpack_from
        items: list[str] = []
        append: Callable[[str], None] = items.append
        try:
            for _ in range(num_items):
                start = at + 8
                at = start + unpack(data, at)[0]
                if at > end:
                    break
                append(data[start:at].decode("utf-8"))
        except (struct.error, UnicodeDecodeError) as error:
            self._fail(f"string {len(items)} of the array: {error}")
        if len(items) < num_items:
            self._fail(f"string {len(items)} of the array reaches beyond the end of the file")
        self._at = at
        return items

    def _read_tensor_infos(self, num_tensors: int) -> list[_TensorInfo]:
        infos: list[_TensorInfo] = []
        seen: set[str] = set()
        for index in range(num_tensors):
            self._what = f"tensor {index}"
            name = self._string(MAX_NAME_BYTES)
            self._what = f"tensor {name}"
            if name in seen:
                self._fail("the tensor stands twice")
            seen.add(name)
            num_dims = self._u32()
            if not 1 <= num_dims <= 4:
                self._fail(f"{num_dims} dimensions (1 to 4 are read)")
            dims = struct.unpack_from(f"<{num_dims}Q", self._data, self._take(8 * num_dims))
            infos.append(_TensorInfo(name, dims, self._u32(), self._u64()))
        return infos

    def _place_tensors(
        self, infos: list[_TensorInfo], data_start: int, alignment: int
    ) -> dict[str, GgufTensor]:
        room = self._num_bytes - data_start
        tensors: dict[str, GgufTensor] = {}
        spans: list[tuple[int, int, str]] = []
        for info in infos:
            self._what = f"tensor {info.name}"
            type_name, num_bytes = self._size(info)
            if info.offset_bytes % alignment:
                self._fail(f"offset {info.offset_bytes} is not a multiple of {alignment}")
            if num_bytes > room - info.offset_bytes:
                self._fail(
                    f"{num_bytes} bytes at offset {info.offset_bytes} reach beyond the end of the file ({room} bytes of data)"
                )
            spans.append((info.offset_bytes, num_bytes, info.name))
            shape = tuple(reversed(info.dims))
            start = data_start + info.offset_bytes
            memory = memoryview(self._data)[start : start + num_bytes]
            tensors[info.name] = GgufTensor(info.name, shape, type_name, memory)
        spans.sort()
        for (start, size, name), (next_start, _, next_name) in itertools.pairwise(spans):
            if start + size > next_start:
                self._what = f"tensor {next_name}"
                self._fail(f"it overlaps the tensor {name}")
        return tensors

    def _size(self, info: _TensorInfo) -> tuple[str, int]:
        """Type name, and bytes in all."""
        if info.type_number not in TENSOR_TYPES:
            self._fail(f"tensor type {info.type_number} is unknown")
        name, block_items, block_bytes = TENSOR_TYPES[info.type_number]
        if 0 in info.dims:
            self._fail(f"a dimension is 0 in {info.dims}")
        if info.dims[0] % block_items:
            self._fail(f"rows of {info.dims[0]} do not divide into {name} blocks of {block_items}")
        row_bytes = info.dims[0] // block_items * block_bytes
        num_bytes = row_bytes
        for dim in info.dims[1:]:
            num_bytes *= dim
        return name, num_bytes


_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
