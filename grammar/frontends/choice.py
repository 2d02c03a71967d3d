"""Choice specs: the output is exactly one of some texts.

Owns the checks of the options. Sharing of common beginnings is the compiler's: a union of literals becomes a radix tree there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...errors import GrammarError
from ..expr import EMPTY, Alt, Grammar, Limits, Lit
from ..spec import Choice, Spec

_SURROGATE = re.compile("[\ud800-\udfff]")


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
            keyword="choices",
        )
    options = dict.fromkeys(spec.options)
    num_chars = sum(map(len, options))
    if num_chars > limits.spec_bytes:
        raise GrammarError(
            f"the options have {num_chars} characters, more than limits.spec_bytes={limits.spec_bytes}",
            keyword="spec_bytes",
        )
    try:
        items = [Lit(text) for text in map(str.encode, options) if text]
    except UnicodeEncodeError:
        raise _half_a_pair(spec.options) from None
    return Grammar({"choice": Alt((EMPTY, *items) if "" in options else tuple(items))}, "choice")


def _half_a_pair(options: Iterable[str]) -> GrammarError:
    """The error for the first option that cannot be written in UTF-8."""
    index, option = next((i, o) for i, o in enumerate(options) if _SURROGATE.search(o))
    return GrammarError(
        f"option {option!r} contains a lone surrogate, which no text can hold", place=f"/{index}"
    )
