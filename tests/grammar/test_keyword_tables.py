"""The tables of the front ends' README: what they say is what their rows make of it, and each row is tried out."""

from __future__ import annotations

import pytest
from readme_table_rows import TABLES
from readme_tables import README, Row, with_tables
from schema_table_rows import FORMAT_TABLE, KEYWORD_TABLE

from radixlm.errors import GrammarError
from radixlm.grammar.compiler import compile_spec
from radixlm.grammar.explain.tokens import byte_vocabulary
from radixlm.grammar.frontends.json_schema import format_patterns
from radixlm.grammar.frontends.json_schema.formats import format_named
from radixlm.grammar.frontends.json_schema.keywords import ENFORCED
from radixlm.grammar.masks import TokenMasks
from radixlm.grammar.matcher import Matcher
from radixlm.grammar.spec import Gbnf, JsonSchema, Lark, Regex

ROWS = [(table.kind, row) for table in TABLES for row in table.rows]
KINDS = {"json": JsonSchema, "regex": Regex, "lark": Lark, "gbnf": Gbnf}


def matcher_of(kind: str, text: str) -> Matcher:
    vocabulary = byte_vocabulary()
    program = compile_spec(KINDS[kind](text), vocabulary.alphabet)
    return Matcher(TokenMasks(program, vocabulary))


def is_output(matcher: Matcher, text: str) -> bool:
    return matcher.advance_bytes(text.encode()) and matcher.is_accepting


def names_of(row: Row) -> list[str]:
    return [name.strip("`") for name in row.name.split(", ")]


def test_the_document_holds_the_tables_as_their_rows_make_them() -> None:
    text = README.read_text(encoding="utf-8")
    assert with_tables(text, TABLES) == text, "run tests/support/readme_tables.py"


def test_every_enforced_keyword_has_a_row() -> None:
    assert sorted(name for row in KEYWORD_TABLE.rows for name in names_of(row)) == sorted(ENFORCED)


def test_every_format_has_a_row() -> None:
    named = {name for row in FORMAT_TABLE.rows for name in names_of(row)}
    assert named >= set(format_patterns.PATTERNS)
    assert all(format_named(name, "#") is not None for name in named)


@pytest.mark.parametrize(("kind", "row"), ROWS, ids=lambda part: getattr(part, "name", part))
def test_a_row_holds(kind: str, row: Row) -> None:
    if row.accepts is None or row.rejects is None:
        with pytest.raises(GrammarError):
            matcher_of(kind, row.example)
        return
    matcher = matcher_of(kind, row.example)
    assert is_output(matcher.fork(), row.accepts)
    assert not is_output(matcher.fork(), row.rejects)
    if row.refused is not None:
        with pytest.raises(GrammarError):
            matcher_of(kind, row.refused)
