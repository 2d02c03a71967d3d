"""The compiled grammar: flat arrays, nothing else. Made in one process, matched in another.

Owns the layout, its serialised form and its validation. Knows nothing of how it was compiled or how it is matched.

States are numbered 0 .. num_states-1. Moves are lists of rows sorted by source state:

    edges   (from, lo, hi, to)      over one byte lo..hi
    empties (from, to)              over nothing
    calls   (from, region, to)      run a region, then go on at `to`
    loops   (from, loop)            run loop_body (a region) loop_lo .. loop_hi times (-1: no end; lo >= 1), then go on at loop_exit
    ends                            states that return to the caller; in the outermost frame: the text is complete

A region consumes at least one byte, and regions are ranked: within one position, calls go from lower to strictly higher rank only.
`distances[s]` is the least number of bytes from s to an end of its region (calls and loops included), over the alphabet.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from ..errors import GrammarError

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

_MAGIC = b"RXGP0001"
_DIGEST_BYTES = 16
_MAX_BOUND = 1 << 40


@dataclass(frozen=True, slots=True)
class GrammarProgram:
    """See the module's description. All arrays are read-only by convention."""

    alphabet: U8  # [256] 0/1: bytes the vocabulary can spell
    class_of_byte: U8  # [256] bytes no edge tells apart share a class
    scalars: I64  # [3] num_states, start, num_classes
    edge_from: I32
    edge_lo: U8
    edge_hi: U8
    edge_to: I32
    empty_from: I32
    empty_to: I32
    call_from: I32
    call_region: I32
    call_to: I32
    loop_from: I32
    loop_id: I32
    loop_body: I32  # [num_loops] region
    loop_lo: I64
    loop_hi: I64
    loop_exit: I32
    ends: I32
    region_entry: I32  # [num_regions]
    region_rank: I32
    distances: I64  # [num_states]

    @property
    def num_states(self) -> int:
        """Number of states."""
        return int(self.scalars[0])

    @property
    def start(self) -> int:
        """The state a match starts in."""
        return int(self.scalars[1])

    @property
    def num_classes(self) -> int:
        """Number of byte classes."""
        return int(self.scalars[2])

    @property
    def num_bytes(self) -> int:
        """Size of the arrays, for cache budgets."""
        return sum(getattr(self, field.name).nbytes for field in fields(self))

    def to_bytes(self) -> bytes:
        """Magic, digest, then each array as its length (8 bytes) and its little-endian bytes."""
        parts: list[bytes] = []
        for field in fields(self):
            array = getattr(self, field.name)
            raw = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
            parts += [len(raw).to_bytes(8, "little"), raw]
        body = b"".join(parts)
        return _MAGIC + hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest() + body

    @staticmethod
    def from_bytes(data: bytes) -> GrammarProgram:
        """The program that `to_bytes` wrote. GrammarError if anything about the data is wrong."""
        head = len(_MAGIC) + _DIGEST_BYTES
        body = data[head:]
        if data[: len(_MAGIC)] != _MAGIC:
            raise GrammarError("these bytes are no compiled grammar of this version")
        if hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest() != data[len(_MAGIC) : head]:
            raise GrammarError("the compiled grammar is damaged: its checksum differs")
        arrays: dict[str, np.ndarray] = {}
        position = 0
        for field in fields(GrammarProgram):
            dtype = _DTYPES[str(field.type)]
            size = int.from_bytes(body[position : position + 8], "little")
            position += 8
            if position + size > len(body) or size % dtype.itemsize:
                raise GrammarError(
                    f"the compiled grammar is damaged: array {field.name} has a wrong size"
                )
            arrays[field.name] = np.frombuffer(body, dtype, size // dtype.itemsize, position)
            position += size
        if position != len(body):
            raise GrammarError("the compiled grammar is damaged: bytes follow its end")
        program = GrammarProgram(**arrays)
        program.check()
        return program

    def check(self) -> None:
        """GrammarError unless every index is in range and every list has its shape."""
        same_length = (
            ("edge_from", "edge_lo", "edge_hi", "edge_to"),
            ("empty_from", "empty_to"),
            ("call_from", "call_region", "call_to"),
            ("loop_from", "loop_id"),
            ("loop_body", "loop_lo", "loop_hi", "loop_exit"),
            ("region_entry", "region_rank"),
        )
        for names in same_length:
            if len({getattr(self, name).size for name in names}) != 1:
                raise GrammarError(
                    f"the compiled grammar is damaged: {', '.join(names)} differ in length"
                )
        if self.alphabet.size != 256 or self.class_of_byte.size != 256 or self.scalars.size != 3:
            raise GrammarError("the compiled grammar is damaged: a table has a wrong size")
        num_states, num_regions = self.num_states, self.region_entry.size
        if not (0 <= self.start < num_states and 1 <= self.num_classes <= 256):
            raise GrammarError("the compiled grammar is damaged: its start or classes are wrong")
        if self.distances.size != num_states:
            raise GrammarError("the compiled grammar is damaged: distances have a wrong size")
        bounds = {
            "edge_from": num_states, "edge_to": num_states, "empty_from": num_states, "empty_to": num_states,
            "call_from": num_states, "call_region": num_regions, "call_to": num_states, "loop_from": num_states,
            "loop_id": self.loop_body.size, "loop_body": num_regions, "loop_exit": num_states, "ends": num_states,
            "region_entry": num_states, "class_of_byte": self.num_classes,
        }  # fmt: skip
        for name, bound in bounds.items():
            values = getattr(self, name)
            if values.size and (int(values.min()) < 0 or int(values.max()) >= bound):
                raise GrammarError(f"the compiled grammar is damaged: {name} leaves its range")
        for name in ("edge_from", "empty_from", "call_from", "loop_from", "ends"):
            values = getattr(self, name)
            if values.size and bool((np.diff(values) < 0).any()):
                raise GrammarError(f"the compiled grammar is damaged: {name} is not sorted")
        lo, hi = self.loop_lo, self.loop_hi
        bad_loops = (
            (lo < 1) | (lo > _MAX_BOUND) | (hi < -1) | (hi > _MAX_BOUND) | ((hi >= 0) & (hi < lo))
        )
        if (
            bool(bad_loops.any())
            or bool((self.edge_lo > self.edge_hi).any())
            or bool((self.distances < 0).any())
        ):
            raise GrammarError("the compiled grammar is damaged: a bound is wrong")


_DTYPES = {"I32": np.dtype("<i4"), "I64": np.dtype("<i8"), "U8": np.dtype("u1")}
