"""The compiled grammar: flat arrays, nothing else. Made in one process, matched in another.

Owns the layout, its serialised form and its validation. Knows nothing of how it was compiled or how it is matched.

States are numbered 0 .. num_states-1. Moves are lists of rows sorted by source state:

    edges   (from, lo, hi, to)      over one byte lo..hi
    empties (from, to)              over nothing
    calls   (from, region, to)      run a region, then go on at `to`
    loops   (from, loop)            run loop_body (a region) loop_lo .. loop_hi times (-1: no end; lo >= 1), then go on at loop_exit
    sets    (from, set)             run one or more members of a set (see `member_sets.py`; each is a region, so is the separator, -1:
                                    none), then go on at set_exit; set_hi -1: no end; set_flags bit 0: in order
      members of set s: member_start[s] .. member_start[s+1], with member_region and member_flags (bit 0: may come again)
      clauses of set s: clause_start[s] .. clause_start[s+1]; literals of clause c: literal_start[c] .. literal_start[c+1], a member's
                                    index within its set where it is needed, -1 - index where it is barred
    ends                            states that return to the caller; in the outermost frame: the text is complete

A region consumes at least one byte, and regions are ranked: within one position, calls go from lower to strictly higher rank only.
`distances[s]` is the least number of bytes from s to an end of its region (calls and loops included), over the alphabet.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import GrammarError

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

_MAGIC = b"RXGP0002"
_DIGEST_BYTES = 16
_SIZE_BYTES = 8  # before each array
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
    set_from: I32
    set_id: I32
    set_exit: I32  # [num_sets]
    set_separator: I32
    set_lo: I64
    set_hi: I64
    set_flags: I32
    member_start: I32  # [num_sets + 1]
    member_region: I32  # [num_members]
    member_flags: I32
    clause_start: I32  # [num_sets + 1]
    literal_start: I32  # [num_clauses + 1]
    literals: I32
    ends: I32
    region_entry: I32  # [num_regions]
    region_rank: I32
    distances: I64  # [num_states]
    body: bytes = field(default=b"", repr=False, compare=False)  # the arrays as read, if they were

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
        if self.body:
            return len(self.body) - _SIZE_BYTES * len(_ARRAYS)
        return sum(getattr(self, name).nbytes for name, _ in _ARRAYS)

    def to_body(self) -> bytes:
        """Each array as its length (8 bytes) and its little-endian bytes, in the order of the fields."""
        if self.body:
            return self.body
        parts: list[bytes] = []
        for name, dtype in _ARRAYS:
            raw = getattr(self, name).astype(dtype, copy=False).tobytes()
            parts += [len(raw).to_bytes(8, "little"), raw]
        return b"".join(parts)

    def to_bytes(self) -> bytes:
        """Magic and digest, then what `to_body` gives."""
        body = self.to_body()
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
        program = GrammarProgram.from_body(body)
        program.check()
        return program

    @staticmethod
    def from_body(body: bytes) -> GrammarProgram:
        """The program of what `to_body` gave; its values are not checked."""
        return GrammarProgram(**_arrays_of(body), body=body)

    @staticmethod
    def of_compiler(body: bytes) -> GrammarProgram:
        """The same of what the native compiler has just made: the arrays are read when one is asked for, which is rare."""
        program = object.__new__(GrammarProgram)
        object.__setattr__(program, "body", body)
        return program

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """An array that was not read yet: all of them are."""
            if name not in _NAMES:
                raise AttributeError(name)
            for array, values in _arrays_of(self.body).items():
                object.__setattr__(self, array, values)
            return object.__getattribute__(self, name)

    def check(self) -> None:
        """GrammarError unless every index is in range and every list has its shape."""
        same_length = (
            ("edge_from", "edge_lo", "edge_hi", "edge_to"),
            ("empty_from", "empty_to"),
            ("call_from", "call_region", "call_to"),
            ("loop_from", "loop_id"),
            ("loop_body", "loop_lo", "loop_hi", "loop_exit"),
            ("region_entry", "region_rank"),
            ("set_from", "set_id"),
            ("set_exit", "set_separator", "set_lo", "set_hi", "set_flags"),
            ("member_region", "member_flags"),
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
            "set_from": num_states, "set_id": self.set_exit.size, "set_exit": num_states, "member_region": num_regions,
        }  # fmt: skip
        for name, bound in bounds.items():
            values = getattr(self, name)
            if values.size and (int(values.min()) < 0 or int(values.max()) >= bound):
                raise GrammarError(f"the compiled grammar is damaged: {name} leaves its range")
        for name in ("edge_from", "empty_from", "call_from", "loop_from", "set_from", "ends"):
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
        self._check_sets()

    def _check_sets(self) -> None:
        num_sets = self.set_exit.size
        starts = (
            (self.member_start, num_sets, self.member_region.size, 1),
            (self.clause_start, num_sets, self.literal_start.size - 1, 1),
            (self.literal_start, self.literal_start.size - 1, self.literals.size, 0),
        )
        for start, num_parts, total, least in starts:
            is_right = start.size == num_parts + 1 and int(start[0]) == 0
            if not is_right or int(start[-1]) != total or bool((np.diff(start) < least).any()):
                raise GrammarError("the compiled grammar is damaged: its sets are wrong")
        sizes = np.diff(self.member_start)
        size_of_clause = np.repeat(sizes, np.diff(self.clause_start))
        size_of_literal = np.repeat(size_of_clause, np.diff(self.literal_start))
        items = np.where(self.literals < 0, -1 - self.literals, self.literals)
        separators = self.set_separator
        lo, hi = self.set_lo, self.set_hi
        if (
            bool((items >= size_of_literal).any())
            or bool(((separators < -1) | (separators >= self.region_entry.size)).any())
            or bool(((lo < 1) | (lo > _MAX_BOUND) | (hi < -1) | (hi > _MAX_BOUND)).any())
        ):
            raise GrammarError("the compiled grammar is damaged: its sets are wrong")


_DTYPES = {"I32": np.dtype("<i4"), "I64": np.dtype("<i8"), "U8": np.dtype("u1")}
_ARRAYS = [
    (part.name, _DTYPES[str(part.type)]) for part in fields(GrammarProgram) if part.name != "body"
]
_NAMES = frozenset(name for name, _ in _ARRAYS)


def _arrays_of(body: bytes) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    position = 0
    for name, dtype in _ARRAYS:
        size = int.from_bytes(body[position : position + _SIZE_BYTES], "little")
        position += _SIZE_BYTES
        if position + size > len(body) or size % dtype.itemsize:
            raise GrammarError(f"the compiled grammar is damaged: array {name} has a wrong size")
        arrays[name] = np.frombuffer(body, dtype, size // dtype.itemsize, position)
        position += size
    if position != len(body):
        raise GrammarError("the compiled grammar is damaged: bytes follow its end")
    return arrays
