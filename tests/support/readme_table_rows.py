"""All tables of grammar/frontends/README.md, in the order of the document."""

from __future__ import annotations

from grammar_table_rows import GBNF_TABLE, LARK_TABLE, REGEX_TABLE
from schema_table_rows import ANNOTATION_TABLE, FORMAT_TABLE, KEYWORD_TABLE, REFUSED_TABLE

TABLES = (
    KEYWORD_TABLE,
    REFUSED_TABLE,
    ANNOTATION_TABLE,
    FORMAT_TABLE,
    REGEX_TABLE,
    LARK_TABLE,
    GBNF_TABLE,
)
