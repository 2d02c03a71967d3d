"""The engine as the mask benchmark sees it: the interface of its docstring, and an empty memo for every compile."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from radixlm.errors import GrammarError

PATH = Path(__file__).parents[1] / "bench" / "maskbench_adapter.py"
TOKENS = [bytes([byte]) for byte in range(256)] + [b'{"', b'": ', b"true", None]
EOS = len(TOKENS) - 1


def load(name: str = "Engine") -> Any:
    """As the benchmark loads it: by path."""
    spec = importlib.util.spec_from_file_location("adapter_under_test", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)(SimpleNamespace(token_bytes=TOKENS, eos_id=EOS))


def walked(grammar: Any, tokens: list[int]) -> bool:
    """Whether each token is in the mask and accepted, and EOS is in the last mask exactly when the text is complete."""
    matcher = grammar.matcher()
    for token in tokens:
        mask = matcher.mask()
        assert mask.dtype == np.uint32
        assert len(mask) == -(-len(TOKENS) // 32)
        is_allowed = bool(int(mask[token >> 5]) >> (token & 31) & 1)
        assert matcher.accept(token) == is_allowed
        if not is_allowed:
            return False
    is_ended = bool(int(matcher.mask()[EOS >> 5]) >> (EOS & 31) & 1)
    assert matcher.is_accepting() == is_ended
    return is_ended


def ids(text: str) -> list[int]:
    return list(text.encode())


def test_a_schema_is_compiled_with_flexible_white_space() -> None:
    grammar = load().compile({"properties": {"a": {"type": "boolean"}}, "required": ["a"]})
    assert walked(grammar, [256, *ids("a"), 257, 258, *ids("\n}")])
    assert walked(grammar, ids('{"a":false}'))
    assert not walked(grammar, ids('{"a":1'))


def test_other_engines_differ_in_white_space_and_order() -> None:
    schema = {"type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": False}
    assert not walked(load("CompactEngine").compile(schema), ids('{"a": '))
    text = ids('{"b": 1, "a": 2}')
    assert walked(load("AnyOrderEngine").compile(schema), text)
    assert not walked(load().compile(schema), text)


def test_a_pattern_matches_the_whole_text() -> None:
    grammar = load().compile_regex("a+b?")
    assert walked(grammar, ids("aab"))
    assert not walked(grammar, ids("b"))


def test_a_refused_constraint_raises_at_compile() -> None:
    with pytest.raises(GrammarError):
        load().compile({"type": "strin"})
    with pytest.raises(GrammarError):
        load().compile_regex("(")
