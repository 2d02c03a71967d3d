"""The rules of any JSON value, made once for the process.

Owns their names, and when they can serve: in layouts without levels, under the default limits of numbers. Most schemas leave properties or
items open somewhere, so these rules are worth keeping: a compile refers to them without looking inside. Knows nothing of how they are
made; that is what `builder` does for the schema `true`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...expr import CONSTANT_RULES, Expr, Limits, constant_call
from ...spec import Whitespace

_DEFAULT = Limits()


@dataclass(frozen=True, slots=True)
class AnyValue:
    """A call of the rule of any value, its name, and all rules that it needs."""

    call: Expr
    name: str
    rules: dict[str, Expr]


_made: dict[str, AnyValue] = {}


def any_value(
    whitespace: Whitespace, limits: Limits, make: Callable[[str], dict[str, Expr]]
) -> AnyValue | None:
    """Any value in a layout, None where it has to be written for each schema. `make` gives the rules, with the name of the first."""
    if whitespace == "indented" or limits != _DEFAULT:
        return None
    found = _made.get(whitespace)
    if found is None:
        name = f"{whitespace}: any value"
        rules = make(name)
        call = constant_call(rules, name)
        # another thread may have made them too: one set of rules counts
        found = AnyValue(call, name, {each: CONSTANT_RULES[each] for each in rules})
        _made[whitespace] = found
    return found
