"""The engine's loaded grammars: bounded by number and by bytes, which grow while they are used."""

from __future__ import annotations

from typing import Any

import numpy as np
from toy_vocabulary import byte_vocabulary

from radixlm.grammar.compiler import compile_spec
from radixlm.grammar.spec import Regex
from radixlm.runtime.grammar_loading import LoadedGrammar
from radixlm.runtime.program_store import ProgramStore


class Growing:
    """A program of a size that a test sets."""

    def __init__(self, num_bytes: int) -> None:
        self.num_bytes = num_bytes

    def __call__(self) -> Any:
        raise NotImplementedError


def store(capacity: int = 10, max_bytes: int = 100) -> ProgramStore:
    return ProgramStore(lambda data: Growing(int(data)), capacity, max_bytes)


def held(programs: ProgramStore) -> str:
    return "".join(key for key in "abcdef" if key in programs._programs)


def test_the_one_not_used_for_longest_makes_room() -> None:
    programs = store(capacity=2)
    programs.put("a", b"1")
    programs.put("b", b"1")
    assert programs.get("a") is not None
    programs.put("c", b"1")
    assert held(programs) == "ac"


def test_bytes_are_bounded_also_when_programs_grow_after_they_were_loaded() -> None:
    programs = store()
    for key in "abc":
        programs.put(key, b"20")
    first = programs.get("a")
    assert held(programs) == "abc"
    assert isinstance(first, Growing)
    first.num_bytes = 70
    assert programs.get("a") is first
    assert held(programs) == "ac"
    assert programs.num_bytes == 90


def test_the_one_in_use_stays_whatever_its_size() -> None:
    programs = store()
    programs.put("a", b"20")
    programs.put("b", b"500")
    assert held(programs) == "b"


def test_a_loaded_grammar_tells_of_its_growth() -> None:
    program = compile_spec(Regex(r"([a-z]{1,9} ?){1,50}"), bytes([1]) * 256)
    vocabulary = byte_vocabulary(b"ab", b"abc ")
    loaded = LoadedGrammar(program.to_bytes(), vocabulary)
    before = loaded.num_bytes
    matcher = loaded()
    row = np.zeros((vocabulary.vocab_size + 31) // 32, dtype=np.uint32)
    for _ in range(20):
        matcher.fill_mask(row)
        assert matcher.advance_bytes(b"a")
        assert matcher.advance_bytes(b" ")
    assert loaded.num_bytes > before + 1000
