"""The native library, loaded by ctypes: is it there, is it of this version, and the border of its matching half.

Owns the mirror of `src/match_border.cpp`. ctypes keeps the GIL during these calls (PyDLL): they take microseconds, and to get it back beside
other busy threads takes milliseconds. Knows nothing of what the functions do.
"""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_int64, c_uint32, c_void_p
from functools import cache
from pathlib import Path

ABI_VERSION = 1
PATH = Path(__file__).parent.with_name("_native.so")

_FUNCTIONS: tuple[tuple[str, object, tuple[object, ...]], ...] = (
    ("vocabulary_open", c_void_p, (c_char_p, c_void_p, c_uint32, c_void_p, c_uint32)),
    ("vocabulary_close", None, (c_void_p,)),
    ("masks_open", c_void_p, (c_void_p, c_char_p, c_int64, c_int64, c_int64, c_char_p, c_int64)),
    ("masks_close", None, (c_void_p,)),
    ("masks_bytes", c_int64, (c_void_p,)),
    ("memo_bytes", c_int64, (c_void_p,)),
    ("open", c_void_p, (c_void_p,)),
    ("fork", c_void_p, (c_void_p,)),
    ("close", None, (c_void_p,)),
    ("fill", c_int, (c_void_p, c_void_p, c_int64)),
    ("advance", c_int, (c_void_p, c_int64)),
    ("advance_bytes", c_int, (c_void_p, c_char_p, c_int64)),
    ("rollback", None, (c_void_p, c_int64)),
    ("is_accepting", c_int, (c_void_p,)),
    ("is_complete", c_int, (c_void_p,)),
    ("distance", c_int64, (c_void_p,)),
    ("num_tokens", c_int64, (c_void_p,)),
    ("refused_at", c_int64, (c_void_p,)),
    ("shortest", c_int64, (c_void_p, c_void_p, c_int64)),
    ("forced", c_int64, (c_void_p, c_void_p, c_int64)),
)


@cache
def load(path: Path = PATH) -> ctypes.PyDLL:
    """The library. OSError when the file is missing, of another machine or of another version."""
    library = ctypes.PyDLL(str(path))
    try:
        version = library.radix_grammar_abi_version()
    except AttributeError:
        version = None
    if version != ABI_VERSION:
        raise OSError(f"{path} is of another version; install radixlm again")
    for name, result, arguments in _FUNCTIONS:
        function = getattr(library, f"radix_match_{name}")
        function.restype = result
        function.argtypes = arguments
    return library


@cache
def is_built(path: Path = PATH) -> bool:
    """Whether `load` gives the library."""
    try:
        load(path)
    except OSError:
        return False
    return True
