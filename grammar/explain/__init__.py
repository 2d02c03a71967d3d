"""Constraints explained, and texts checked against them: what `radixlm grammar explain` and `radixlm grammar check` know.

    explanation     size, forced text, outputs, limits; why a constraint is refused      samples, tokens
    schema_report   what became of each keyword of a schema; where it is loose
    checking        whether a text is an output, and where it leaves the language         byte_reading, expected, json_misses, json_places
    wording         all this as lines of text

Owns the questions a person asks. Knows nothing of models beyond their vocabulary, nor of files or printing.
"""

from __future__ import annotations

from .checking import Verdict, check_text
from .explanation import Explanation, Refusal, explain, refusal
from .schema_report import KeywordReport, LooseObject, loose_objects

__all__ = [
    "Explanation",
    "KeywordReport",
    "LooseObject",
    "Refusal",
    "Verdict",
    "check_text",
    "explain",
    "loose_objects",
    "refusal",
]
