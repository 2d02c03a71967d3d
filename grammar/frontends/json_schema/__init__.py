"""JSON Schema as a grammar: a schema's text to rules for the JSON texts that are valid under it.

Owns the front end for `JsonSchema` specs; `build` is all that the rest of radixlm uses. Every keyword that constrains is enforced
exactly or refused with its name and place; the table and the choices (escapes, order, formats, numbers) stand in the README of
`frontends`. Knows nothing of automata or tokens.

    text --source--> tree --document--> nodes --*_keywords--> requirements --normal--> shapes --builder, arrays, objects--> Grammar
"""

from __future__ import annotations

from dataclasses import dataclass

from ....errors import GrammarError
from ...expr import EMPTY, Grammar, Limits, ref, seq
from ...spec import JsonSchema
from .builder import Builder
from .document import Document
from .layout import MAX_LEVELS, layout_named
from .normal import Normaliser
from .productive import prune
from .shape import Atom
from .source import parse

_WHOLE = "text"  # the rule of a text with a gap before it; names of other rules begin with "#", "not" or "any"


@dataclass(frozen=True, slots=True)
class Notes:
    """What was not enforced: by best effort, each a JSON pointer, keyword and reason; and unknown formats, each a pointer and name."""

    left_out: tuple[tuple[str, str, str], ...]
    unasserted: tuple[tuple[str, str], ...]


def build(spec: JsonSchema, limits: Limits) -> Grammar:
    """The grammar of the JSON texts valid under the schema; GrammarError (place: a JSON pointer) when it is refused."""
    return build_with_notes(spec, limits)[0]


def build_with_notes(spec: JsonSchema, limits: Limits) -> tuple[Grammar, Notes]:
    """The same, and what in the schema is not enforced."""
    layout = layout_named(spec.whitespace)
    try:
        document = Document(parse(spec.text, limits))
        normaliser = Normaliser(document, limits, is_best_effort=spec.best_effort)
        builder = Builder(normaliser, layout, any_order=spec.any_order)
        start = builder.rule_name((Atom(document.root, True),))
        builder.run()
    except RecursionError:
        raise GrammarError(
            f"the schema nests too deeply; the limit is depth={limits.depth}"
        ) from None
    rules = builder.rules
    if layout.lead != EMPTY:
        rules[_WHOLE] = seq(layout.lead, ref(start))
        start = _WHOLE
    notes = Notes(tuple(normaliser.left_out), tuple(normaliser.unasserted))
    try:
        return prune(Grammar(rules, start)), notes
    except GrammarError as error:
        error.place, error.keyword = document.root.pointer, "unsatisfiable"
        if layout.has_cut:
            raise GrammarError(
                f"{error.message} within the {MAX_LEVELS} levels of whitespace={spec.whitespace!r}",
                place=error.place,
                keyword="whitespace",
            ) from None
        raise


__all__ = ["Notes", "build", "build_with_notes"]
