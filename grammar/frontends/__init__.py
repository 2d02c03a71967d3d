"""Front ends: one module (or package) a kind of constraint, named after the spec's tag, with `build(spec, limits) -> Grammar`.

Owns the search for the front end of a spec. Nothing is registered: a module is found by its name.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Protocol, cast

from ...errors import GrammarError

if TYPE_CHECKING:
    from ..expr import Grammar, Limits
    from ..spec import Spec


class _FrontEnd(Protocol):
    def build(self, spec: Spec, limits: Limits) -> Grammar: ...


def build(spec: Spec, limits: Limits) -> Grammar:
    """The grammar of `spec`, by the front end of its kind. GrammarError with place and keyword if it is refused."""
    tag = type(spec).__struct_config__.tag
    name = f"{__package__}.{tag}"
    if not isinstance(tag, str) or importlib.util.find_spec(name) is None:
        raise GrammarError(
            f"there is no front end for constraints of kind {tag!r}", keyword=str(tag)
        )
    return cast(_FrontEnd, importlib.import_module(name)).build(spec, limits)
