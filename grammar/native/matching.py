"""Masks and matchers in native code: what `masks.TokenMasks` and `matcher.Matcher` do, with the same results.

Owns the handles of the library's objects, and the words for what went wrong. Knows nothing of states or walks. An object of the library
lives as long as someone holds it: matchers hold their masks, masks their vocabulary.
"""

from __future__ import annotations

import ctypes
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from ...errors import GrammarError
from ..vocabulary import Vocabulary
from .library import load

_MAX_BUDGET = 1 << 62
_MESSAGE_BYTES = 200
_HEAD_BYTES = 24  # magic and digest before the body of a whole program
_MAGIC = b"RXGP"

# what `advance` answers, see match_matcher.h
_REFUSED, _DONE, _ENDED, _SPECIAL, _UNKNOWN, _INCOMPLETE = range(6)
_DAMAGED = -2

_vocabularies: WeakKeyDictionary[Vocabulary, _NativeVocabulary] = WeakKeyDictionary()


class _NativeVocabulary:
    """A vocabulary's tries and slices, made once."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        library = load()
        self._close = library.radix_match_vocabulary_close
        self.handle = 0
        texts = [data or b"" for data in vocabulary.token_bytes]
        offsets = np.zeros(len(texts) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=offsets[1:])
        ends = np.array(vocabulary.eos_token_ids, dtype=np.int32)
        handle = library.radix_match_vocabulary_open(
            b"".join(texts), offsets.ctypes.data, len(texts), ends.ctypes.data, len(ends)
        )
        self.handle: int = _opened(handle)

    def __del__(self) -> None:
        if self.handle:
            self._close(self.handle)


def _opened(handle: int | None) -> int:
    if not handle:
        raise MemoryError("the grammar engine is out of memory")
    return handle


def _check(status: int) -> None:
    """Raise what a negative status stands for."""
    if status == _DAMAGED:
        raise GrammarError("the compiled grammar is damaged: it calls its regions in a circle")
    if status < 0:
        raise MemoryError("the grammar engine is out of memory")


class NativeMasks:
    """Masks of a program over `vocabulary`. Not thread-safe: one engine thread owns it.

    `program`: the body of a `GrammarProgram` (`to_body()`), or all of `to_bytes()`. GrammarError if it is damaged. Memoised masks take at most
    `memo_bytes`; states that no matcher stands on are forgotten when all states take more than `state_bytes`.
    """

    def __init__(
        self,
        program: bytes,
        vocabulary: Vocabulary,
        memo_bytes: int = 32 << 20,
        state_bytes: int = 128 << 20,
    ) -> None:
        self._library = library = load()
        self._close = library.radix_match_masks_close
        self.handle = 0
        self.vocabulary = vocabulary
        native = _vocabularies.get(vocabulary)
        if native is None:
            native = _vocabularies[vocabulary] = _NativeVocabulary(vocabulary)
        body = program[_HEAD_BYTES:] if program.startswith(_MAGIC) else program
        message = ctypes.create_string_buffer(_MESSAGE_BYTES)
        handle = library.radix_match_masks_open(
            native.handle, body, len(body), memo_bytes, state_bytes, message, _MESSAGE_BYTES
        )
        if not handle and message.value:
            raise GrammarError(message.value.decode())
        self.handle: int = _opened(handle)

    def __del__(self) -> None:
        if self.handle:
            self._close(self.handle)

    @property
    def num_memo_bytes(self) -> int:
        """Bytes of memoised masks, at most the budget given."""
        return self._library.radix_match_memo_bytes(self.handle)

    @property
    def num_bytes(self) -> int:
        """The memory that the program costs by now: memoised masks and states."""
        return self._library.radix_match_masks_bytes(self.handle)


class NativeMatcher:
    """A match that starts at the beginning of the program of `masks`; see `matcher.Matcher` for what the methods promise."""

    def __init__(self, masks: NativeMasks, _before: NativeMatcher | None = None) -> None:
        self.error: str | None = None
        self._masks = masks
        self._size = masks.vocabulary.vocab_size
        self._library = library = load()
        self._close = library.radix_match_close
        self._fill = library.radix_match_fill
        self._advance = library.radix_match_advance
        self._row: npt.NDArray[np.uint32] | None = None
        self._address = 0
        self._handle = 0
        if _before is None:
            self._handle = _opened(library.radix_match_open(masks.handle))
        else:
            self._handle = _opened(library.radix_match_fork(_before._handle))

    def __del__(self) -> None:
        if self._handle:
            self._close(self._handle)

    # ------------------------------------------------------------------------------------ what may follow

    def fill_mask(self, out: npt.NDArray[np.uint32], budget: int | None = None) -> None:
        """Write the allowed tokens into `out` ([ceil(V/32)] words, bit i%32 of word i//32 = token i)."""
        if out is not self._row and not self._take_row(out):
            row = np.zeros(out.shape, dtype=np.uint32)
            self.fill_mask(row, budget)
            out[:] = row
            return
        self.fill_mask_at(self._address, budget)

    def fill_mask_at(self, address: int, budget: int | None = None) -> None:
        """The same for the row of uint32 words at this address."""
        if budget is None:
            budget = -1
        elif budget > _MAX_BUDGET:
            budget = _MAX_BUDGET
        status = self._fill(self._handle, address, budget)
        if status:
            _check(status)

    def _take_row(self, out: npt.NDArray[np.uint32]) -> bool:
        """Remember the array's address; False if its words do not lie side by side."""
        if out.shape != ((self._size + 31) // 32,) or out.dtype != np.uint32:
            raise ValueError(f"a mask row has {(self._size + 31) // 32} uint32 words")
        flags = out.flags
        if not (flags.c_contiguous and flags.writeable and flags.aligned):
            return False
        self._row, self._address = out, out.ctypes.data
        return True

    @property
    def is_accepting(self) -> bool:
        """Whether the text so far is complete."""
        return bool(self._library.radix_match_is_accepting(self._handle))

    @property
    def is_complete(self) -> bool:
        """Whether the text is complete and nothing may follow."""
        return bool(self._library.radix_match_is_complete(self._handle))

    @property
    def num_tokens(self) -> int:
        """Tokens taken so far (calls of `advance` and `advance_bytes` that succeeded)."""
        return self._library.radix_match_num_tokens(self._handle)

    def distance(self) -> int:
        """An upper bound on the tokens to a complete text that some allowed token always lowers by one; 0 when complete."""
        return self._library.radix_match_distance(self._handle)

    def shortest_completion(self, max_bytes: int = 1 << 20) -> bytes:
        """The bytes of a completion of `distance()` single-byte tokens (cut at `max_bytes`)."""
        size = max(min(max_bytes, self.distance()), 0)
        return self._text(self._library.radix_match_shortest, size)

    def forced_bytes(self, max_bytes: int = 256) -> bytes:
        """The bytes that must follow as long as there is only one way on, cut to whole code points."""
        return self._text(self._library.radix_match_forced, max(max_bytes, 0))

    def _text(self, function: ctypes._NamedFuncPointer, size: int) -> bytes:  # pyright: ignore
        buffer = ctypes.create_string_buffer(size + 1)
        count: int = function(self._handle, ctypes.addressof(buffer), size)
        _check(count)
        return buffer.raw[:count]

    # ------------------------------------------------------------------------------------ what comes

    def advance(self, token_id: int) -> bool:
        """Take one token. False if it is not allowed: `error` says why, and the match stands where it was."""
        if self.error is not None:
            return False
        answer = _UNKNOWN
        if 0 <= token_id < self._size:
            answer = self._advance(self._handle, int(token_id))
            if answer == _DONE:
                return True
        return self._refuse(answer, token_id)

    def advance_bytes(self, data: bytes) -> bool:
        """Take `data` as one step (one `rollback` unit); like `advance`."""
        if self.error is not None:
            return False
        data = bytes(data)
        answer = self._library.radix_match_advance_bytes(self._handle, data, len(data))
        return answer == _DONE or self._refuse(answer, -1, data)

    def _refuse(self, answer: int, token_id: int, data: bytes | None = None) -> bool:
        """Say why the last step was not taken."""
        if answer == _REFUSED:
            text = data if data is not None else self._masks.vocabulary.token_bytes[token_id] or b""
            index: int = self._library.radix_match_refused_at(self._handle)
            taken = f" after {text[max(index - 40, 0) : index]!r}" if index else ""
            self.error = f"the grammar does not allow {text[index : index + 1]!r} here{taken}"
        elif answer == _ENDED:
            self.error = "the output has ended"
        elif answer == _SPECIAL:
            self.error = f"token {token_id} is special and never part of a constrained text"
        elif answer == _UNKNOWN:
            self.error = f"token {token_id} is not in the vocabulary of {self._size}"
        elif answer == _INCOMPLETE:
            self.error = f"token {token_id} ends the output, which is not complete"
        else:
            _check(answer)
        return False

    def rollback(self, num_tokens: int) -> None:
        """Undo the last `num_tokens` steps (all, if there were fewer); a failure is forgotten."""
        self.error = None
        self._library.radix_match_rollback(self._handle, min(num_tokens, 1 << 62))

    def fork(self) -> NativeMatcher:
        """An independent matcher at the same point."""
        copy = NativeMatcher(self._masks, self)
        copy.error = self.error
        return copy
