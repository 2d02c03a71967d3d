"""Which notation a grammar's text is written in, where its author did not say.

Owns that guess. Imports specs only, so that whoever takes grammars from users may ask here.
"""

from __future__ import annotations

import re

from .spec import Gbnf, Lark

_GBNF_RULE = re.compile(r"^[ \t]*[A-Za-z0-9_-]+[ \t]*::=", re.MULTILINE)


def spec_of_text(text: str) -> Lark | Gbnf:
    """The spec of a grammar: GBNF if a line begins with `name ::=`, which a line of Lark's never does, else Lark."""
    return Gbnf(text) if _GBNF_RULE.search(text) else Lark(text)
