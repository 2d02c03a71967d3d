"""Lark is told from GBNF by the text alone."""

from __future__ import annotations

import pytest

from radixlm.grammar.dialects import spec_of_text
from radixlm.grammar.spec import Gbnf, Lark


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('root ::= "a"', Gbnf),
        ('# a\nws::=" "\nroot ::= "a"', Gbnf),
        ('start: "a ::= b"', Lark),
        ('start: "a"\n// x ::= y', Lark),
        ("", Lark),
    ],
)
def test_the_dialect_is_told_from_the_first_sign_of_gbnf(text: str, kind: type) -> None:
    assert isinstance(spec_of_text(text), kind)
