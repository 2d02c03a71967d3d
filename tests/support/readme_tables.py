"""The tables of grammar/frontends/README.md, made of rows that each carry their own proof; run this file to write them into the document.

.venv/bin/python tests/support/readme_tables.py
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "grammar" / "frontends" / "README.md"


@dataclass(frozen=True)
class Row:
    """A construct, and the proof of what is said of it: a constraint with a text it takes and one it does not, or that is refused."""

    name: str
    cells: tuple[str, ...]
    example: str
    accepts: str | None = None
    rejects: str | None = None
    refused: str | None = None
    """A constraint that is refused, if any; `example` itself where it takes no text."""


@dataclass(frozen=True)
class Table:
    """Rows under a heading; `name` marks its place in the document."""

    name: str
    kind: str
    heading: tuple[str, ...]
    rows: tuple[Row, ...]

    def text(self) -> str:
        """The table in Markdown."""
        lines = [_line(self.heading), "|" + "---|" * len(self.heading)]
        return "\n".join([*lines, *(_line((row.name, *row.cells)) for row in self.rows)])


def with_tables(document: str, tables: Sequence[Table]) -> str:
    """The document with each table between its two marks."""
    for table in tables:
        begin, end = f"<!-- table {table.name} -->", f"<!-- end of {table.name} -->"
        marked = re.compile(f"(?<={re.escape(begin)}\n).*?(?={re.escape(end)})", re.DOTALL)
        document, count = marked.subn(lambda _, table=table: table.text() + "\n", document)
        assert count == 1, f"{begin} and {end} stand once each"
    return document


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    from readme_table_rows import TABLES

    README.write_text(with_tables(README.read_text(encoding="utf-8"), TABLES), encoding="utf-8")
