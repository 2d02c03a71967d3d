"""Reasoning first: free text up to an end marker, then a constrained answer.

Owns the front end for `AfterReasoning`. The answer's own errors keep their places, led by /content.
"""

from __future__ import annotations

from ...errors import GrammarError
from ..expr import EMPTY, Expr, Grammar, Limits, lit, ref, seq
from ..spec import AfterReasoning, Spec
from . import build as build_any
from .embedding import embed
from .free_text import FreeText

_START = "output"


def build(spec: Spec, limits: Limits) -> Grammar:
    """The grammar of an `AfterReasoning`; GrammarError where its content is refused or its end is no marker."""
    if not isinstance(spec, AfterReasoning):
        raise GrammarError(f"a reasoning front end was given {type(spec).__name__}")
    if not spec.end:
        raise GrammarError(
            "reasoning needs an end marker to come to the answer", place="/end", keyword="end"
        )
    for name, text in (("end", spec.end), ("begin", spec.begin)):
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise GrammarError(
                f"{name} contains a lone surrogate, which no text can hold",
                place=f"/{name}",
                keyword=name,
            )
    try:
        answer = build_any(spec.content, limits)
    except GrammarError as error:
        error.place = (
            f"/content{error.place if error.place[:1] in ('', '#', '/') else ' ' + error.place}"
        )
        raise
    rules: dict[str, Expr] = {}
    rules[f"calls {spec.end}"] = embed(answer, "answer: ", rules)
    rules["done "] = EMPTY
    FreeText([spec.end], rules).add("thinking", "done", may_end=False, may_call=True)
    rules[_START] = seq(lit(spec.begin), ref("thinking "))
    return Grammar(rules, _START)
