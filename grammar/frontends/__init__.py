"""Front ends: one module (or package) a kind of constraint, named after the spec's tag, with `build(spec, limits) -> Grammar`.

Owns the search for the front end of a spec. Nothing is registered: a module is found by its name.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, Protocol, cast

from ...errors import GrammarError

if TYPE_CHECKING:
    from ..expr import Grammar, Limits
    from ..spec import Spec


class _FrontEnd(Protocol):
    def build(self, spec: Spec, limits: Limits) -> Grammar: ...


def build(spec: Spec, limits: Limits) -> Grammar:
    """The grammar of `spec`, by the front end of its kind. GrammarError with place and keyword if it is refused."""
    return _front_end(type(spec).__struct_config__.tag).build(spec, limits)


@cache
def _front_end(tag: object) -> _FrontEnd:
    name = f"{__package__}.{tag}"
    try:
        return cast(_FrontEnd, importlib.import_module(name))
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise GrammarError(
            f"there is no front end for constraints of kind {tag!r}", keyword=str(tag)
        ) from None
