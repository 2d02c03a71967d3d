"""GBNF specs: grammars in the notation of llama.cpp's server.

Owns the grammar as a whole: that `root` is there and can end, that every rule called is defined. The syntax is `parser`'s.
Rules that nothing calls are checked and left out, as in llama.cpp.
"""

from __future__ import annotations

from ....errors import GrammarError
from ...expr import Grammar, Limits
from ...spec import Gbnf, Spec
from ..grammar_text import GrammarText
from ..rule_graph import ending_rules
from .parser import Parser

_START = "root"


def build(spec: Spec, limits: Limits) -> Grammar:
    """The grammar of a `Gbnf`. GrammarError with "line:column" and the line for what is wrong or refused."""
    if not isinstance(spec, Gbnf):
        raise GrammarError(f"a GBNF front end was given {type(spec).__name__}")
    source = GrammarText(spec.text, limits)
    parser = Parser(source)
    parser.parse()
    for name, at in parser.calls.items():
        if name not in parser.rules:
            raise source.unknown(f"the rule {name}", name, at, parser.rules)
    if _START not in parser.rules:
        raise source.error(f"the grammar has no rule {_START}", 0, keyword=_START)
    if _START not in ending_rules(parser.rules):
        raise source.error(
            f"no text can satisfy the rule {_START}: each of its alternatives needs itself or a rule that never ends",
            parser.places[_START],
            keyword="unsatisfiable",
        )
    return Grammar(parser.rules, _START)
