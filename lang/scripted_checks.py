"""Whether a scripted answer is one that the engine could write under its constraint.

Owns a check that is quick and lenient: regexes by Python, schemas only as far as being JSON, tags by their beginnings, contents and ends;
grammars pass. Must not know scripts or requests.
"""

from __future__ import annotations

import json
import re

from ..grammar.spec import AfterReasoning, Choice, JsonSchema, Regex, Spec, StructuralTag


def satisfies(text: str, constraint: Spec | None) -> bool:
    """Whether the text may be an output under the constraint, as far as is checked here."""
    if isinstance(constraint, Regex):
        try:
            return re.fullmatch(constraint.pattern, text) is not None
        except re.error:  # \\p{L} and the like, which the grammar reads and Python does not
            return True
    if isinstance(constraint, Choice):
        return text in constraint.options
    if isinstance(constraint, JsonSchema):
        try:
            json.loads(text)
        except ValueError:
            return False
    if isinstance(constraint, AfterReasoning):
        thought, found, answer = text.partition(constraint.end)
        return (
            bool(found)
            and thought.startswith(constraint.begin)
            and satisfies(answer, constraint.content)
        )
    if isinstance(constraint, StructuralTag):
        return _satisfies_tags(text, constraint)
    return True


def _satisfies_tags(text: str, spec: StructuralTag) -> bool:
    num_tags, rest = 0, text
    while (at := _first_trigger(rest, spec)) >= 0:
        before, rest = rest[:at], rest[at:]
        separator = spec.separator if num_tags else ""
        length = next(
            (n for tag in spec.tags if (n := _tag_length(rest, tag.begin, tag.end, tag.content))), 0
        )
        if not length or (not spec.free_text and before != separator):
            return False
        num_tags, rest = num_tags + 1, rest[length:]
    if num_tags == 0 and spec.answer is not None:
        return satisfies(text, spec.answer)
    if not spec.free_text and (rest or not num_tags):
        return False
    return not (spec.at_most_one and num_tags > 1) and not (spec.at_least_one and num_tags == 0)


def _first_trigger(text: str, spec: StructuralTag) -> int:
    places = [at for tag in spec.tags if (at := text.find(tag.trigger)) >= 0]
    return min(places, default=-1)


def _tag_length(text: str, begin: str, end: str, content: Spec) -> int:
    """Characters of the tag that the text begins with; 0 if it does not begin with one."""
    if not text.startswith(begin):
        return 0
    at = text.find(end, len(begin))
    while at >= 0:
        if satisfies(text[len(begin) : at], content):
            return at + len(end)
        at = text.find(end, at + 1)
    return 0
