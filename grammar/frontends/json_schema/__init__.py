"""JSON Schema as a grammar: a schema's text to rules for the compact JSON texts that are valid under it.

Owns the front end for `JsonSchema` specs; `build` is all that the rest of radixlm uses. Every keyword that constrains is enforced
exactly or refused with its name and place; the table and the choices (escapes, order, formats, numbers) stand in the README of
`frontends`. Knows nothing of automata or tokens.

    text --source--> tree --document--> nodes --*_keywords--> requirements --normal--> shapes --builder, arrays, objects--> Grammar
"""

from __future__ import annotations

from ....errors import GrammarError
from ...expr import Grammar, Limits
from ...spec import JsonSchema
from .builder import Builder
from .document import Document
from .normal import Normaliser
from .productive import prune
from .shape import Atom
from .source import parse


def build(spec: JsonSchema, limits: Limits) -> Grammar:
    """The grammar of the JSON texts valid under the schema; GrammarError (place: a JSON pointer) when it is refused."""
    try:
        document = Document(parse(spec.text, limits))
        builder = Builder(Normaliser(document, limits))
        start = builder.rule_name((Atom(document.root, True),))
        builder.run()
    except RecursionError:
        raise GrammarError(
            f"the schema nests too deeply; the limit is depth={limits.depth}"
        ) from None
    return prune(Grammar(builder.rules, start))


__all__ = ["build"]
