"""Choice specs: the output is exactly one of some texts.

Owns the checks of the options. Sharing of common beginnings is the compiler's: a union of literals becomes a radix tree there.
"""

from __future__ import annotations

from ...errors import GrammarError
from ..expr import Alt, Expr, Grammar, Limits, lit
from ..spec import Choice, Spec


def build(spec: Spec, limits: Limits) -> Grammar:
    """The grammar of a `Choice`; GrammarError names the option that cannot be used."""
    if not isinstance(spec, Choice):
        raise GrammarError(f"a choice front end was given {type(spec).__name__}")
    if not spec.options:
        raise GrammarError(
            "a choice without options allows no output", place="/0", keyword="choices"
        )
    if len(spec.options) > limits.choices:
        raise GrammarError(
            f"{len(spec.options)} options exceed limits.choices={limits.choices}",
            place="/options",
            keyword="choices",
        )
    items: list[Expr] = []
    num_bytes = 0
    for index, option in enumerate(dict.fromkeys(spec.options)):
        try:
            items.append(lit(option))
        except UnicodeEncodeError as error:
            raise GrammarError(
                f"option {option!r} contains a lone surrogate, which no text can hold",
                place=f"/{index}",
            ) from error
        num_bytes += len(option)
    if num_bytes > limits.spec_bytes:
        raise GrammarError(
            f"the options have {num_bytes} characters, more than limits.spec_bytes={limits.spec_bytes}",
            place="/options",
            keyword="spec_bytes",
        )
    return Grammar({"choice": Alt(tuple(items))}, "choice")
