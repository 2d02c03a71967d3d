"""What goes through an extraction: a document, and the row or failure it ends in.

Owns these values and the form in which a failure is written down. Must not know files, backends or schemas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from ...runtime.messages import Usage

if TYPE_CHECKING:
    from ...errors import RadixError

EXCERPT_CHARACTERS = 200
NO_USAGE = Usage()


class Row(TypedDict):
    """What is yielded and written: where the document came from, its number in that source from 0 on, and what was found in it."""

    source: str
    index: int
    value: Any


@dataclass(frozen=True, slots=True)
class Document:
    """A text to read. `index` is its number in `source`, from 0 on."""

    source: str
    index: int
    text: str
    line: int = 0
    """Where it begins in its file, from 1 on; 0: it is the whole file, or no file at all."""
    num_bytes: int = 0
    """Of its file, for progress."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """A document's row: parsed JSON, and the same as the Python type of the schema (or parsed JSON again, if it has none)."""

    document: Document
    value: Any
    typed: Any
    usage: Usage = NO_USAGE
    num_parts: int = 1


@dataclass(frozen=True, slots=True)
class Failure:
    """A document without a row, and why. `output` is what the model had written, if anything."""

    document: Document
    error: RadixError
    output: str = ""
    usage: Usage = NO_USAGE
    num_parts: int = 1
    is_invalid: bool = False
    """The output was complete and still broke the schema."""

    def as_dict(self) -> dict[str, Any]:
        """The line of the dead-letter file."""
        line: dict[str, Any] = {"source": self.document.source, "index": self.document.index}
        if self.document.line:
            line["line"] = self.document.line
        line["error"] = type(self.error).__name__
        line["reason"] = str(self.error)
        if self.output:
            line["output"] = self.output
        line["excerpt"] = self.document.text[:EXCERPT_CHARACTERS]
        return line


Outcome = Extracted | Failure
