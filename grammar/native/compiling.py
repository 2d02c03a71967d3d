"""A grammar to its program, natively.

Owns the calls of the native compiler and the errors it answers with. The passes are those of `compiler.compile_grammar`, with the same
languages, distances and limits; the states of the program may differ. Threads may compile at the same time: the interpreter's lock is not
held meanwhile.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

from ...errors import GrammarError
from ..expr import Grammar, Limits
from .encoding import Encoding, encode, hand_over
from .library import PATH, load

_HINTS = {
    "unsatisfiable": "its parts contradict each other, or need bytes that no token of the model spells"
}


class _Answer(ctypes.Structure):
    _fields_ = (("status", ctypes.c_int64), ("data", ctypes.c_void_p), ("size", ctypes.c_int64))


@cache
def _functions() -> tuple[Callable[..., None], Callable[..., None], Callable[..., None]]:
    """The three entry points: compile, keep, free."""
    load()  # checks the file; its own functions keep the interpreter's lock
    library = ctypes.CDLL(str(PATH))
    buffers = [ctypes.c_char_p, ctypes.c_int64] * 3
    answer = ctypes.POINTER(_Answer)
    compile_grammar, keep, free = (
        library.radix_compile_grammar,
        library.radix_compile_keep,
        library.radix_compile_free,
    )
    compile_grammar.argtypes = [*buffers, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int64), answer]
    keep.argtypes = [*buffers, answer]
    free.argtypes = [ctypes.c_void_p]
    for function in (compile_grammar, keep, free):
        function.restype = None
    return compile_grammar, keep, free


def compile_body(grammar: Grammar, alphabet: bytes, limits: Limits | None = None) -> bytes:
    """The program of `grammar` as the body of `GrammarProgram.to_bytes`: what follows magic and digest.

    `alphabet` has 256 flags: the bytes that some token spells. Raises GrammarError with the keywords of `compile_grammar`.
    """
    if len(alphabet) != 256:
        raise GrammarError(f"an alphabet has 256 entries, not {len(alphabet)}")
    limits = limits or Limits()
    hand_over(_keep)
    try:
        encoding = encode(grammar)
    except OverflowError:
        raise _huge_bound(limits) from None
    budgets = (ctypes.c_int64 * 6)(
        limits.expressions,
        limits.repeat_bound,
        limits.states,
        limits.transitions,
        limits.product_states,
        limits.program_bytes,
    )
    answer = _Answer()
    _functions()[0](*_buffers(encoding), alphabet, budgets, answer)
    return _taken(answer)


def _keep(encoding: Encoding) -> None:
    answer = _Answer()
    _functions()[1](*_buffers(encoding), answer)
    _taken(answer)


def _buffers(encoding: Encoding) -> tuple[bytes, int, bytes, int, bytes, int]:
    words, texts, masks = encoding.words, encoding.texts, encoding.masks
    return words, len(words) // 8, texts, len(texts), masks, len(masks)


def _taken(answer: _Answer) -> bytes:
    """The bytes of an answer, whose memory is given back; GrammarError if it is a refusal."""
    data = ctypes.string_at(answer.data, answer.size) if answer.data else b"memory\nout of memory"
    _functions()[2](answer.data)
    if answer.status == 0:
        return data
    keyword, _, message = data.decode(errors="replace").partition("\n")
    raise GrammarError(message, hint=_HINTS.get(keyword, ""), keyword=keyword)


def _huge_bound(limits: Limits) -> GrammarError:
    return GrammarError(
        f"a repeat of more than 2^63 times exceeds limits.repeat_bound={limits.repeat_bound}",
        keyword="repeat_bound",
    )
