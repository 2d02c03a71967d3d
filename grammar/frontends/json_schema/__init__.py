"""JSON Schema as a grammar: a schema's text to rules for the JSON texts that are valid under it.

Owns the front end for `JsonSchema` specs; `build` is all that the rest of radixlm uses. Every keyword that constrains is enforced
exactly or refused with its name and place; the table and the choices (escapes, order, formats, numbers) stand in the README of
`frontends`. Knows nothing of automata or tokens.

    text --source--> tree --document--> nodes --*_keywords--> requirements --normal--> shapes --builder, arrays, objects--> Grammar
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ....errors import GrammarError
from ...expr import Expr, Grammar, Limits, seq
from ...spec import JsonSchema, Whitespace
from .any_value import any_value
from .builder import Builder
from .document import DYNAMIC, Document
from .layout import MAX_LEVELS, layout_named
from .normal import Normaliser
from .productive import prune
from .shape import Atom
from .source import mentions, parse

_WHOLE = "text"  # the rule of a text with a gap before it; names of other rules begin with "#" or "not", or hold a ":"


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
    builder, whole = read(spec, limits)
    normaliser, layout = builder.normaliser, builder.layout
    builder.rules[_WHOLE] = seq(layout.lead, whole)
    notes = Notes(tuple(normaliser.left_out), tuple(normaliser.unasserted))
    try:
        return prune(Grammar(builder.rules, _WHOLE)), notes
    except GrammarError as error:
        error.place, error.keyword = normaliser.document.root.pointer, "unsatisfiable"
        if layout.has_cut:
            raise GrammarError(
                f"{error.message} within the {MAX_LEVELS} levels of whitespace={spec.whitespace!r}",
                place=error.place,
                keyword="whitespace",
            ) from None
        raise


def read(spec: JsonSchema, limits: Limits, *, is_report: bool = False) -> tuple[Builder, Expr]:
    """One run of the front end: its rules, and the call of the whole. A report needs every schema read, also what is known or allows all."""
    try:
        tree = parse(spec.text, limits)
        document = Document(tree, is_static=not mentions(spec.text, DYNAMIC))
        normaliser = Normaliser(document, limits, is_best_effort=spec.best_effort)
        make = partial(_any_value_rules, spec.whitespace)
        builder = Builder(
            normaliser,
            layout_named(spec.whitespace),
            any_order=spec.any_order,
            any_value=None if is_report else any_value(spec.whitespace, limits, make),
        )
        root = document.root
        what = (Atom(root, True),) if is_report else normaliser.reading.demand(root)
        whole = builder.call(what, 0)
        builder.run()
    except RecursionError:
        raise GrammarError(
            f"the schema nests too deeply; the limit is depth={limits.depth}"
        ) from None
    return builder, whole


def _any_value_rules(whitespace: Whitespace, name: str) -> dict[str, Expr]:
    """The rules of any value, the first one with this name."""
    layout = layout_named(whitespace)
    builder = Builder(Normaliser(Document(True), Limits()), layout, any_order=False)
    builder.rule_name((), wanted=name)
    builder.run()
    return builder.rules


__all__ = ["Notes", "build", "build_with_notes", "read"]
