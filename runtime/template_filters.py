"""The filters a chat template may use, each charged to the rendering's budget before it works.

Owns the list. Knows nothing of messages. Jinja's own implementations serve where a result is no larger than the input; those that can
make a large text from a small one (join, replace, indent, tojson) are written here, with the size computed first. `tojson` writes as
chat templates expect: no HTML escapes, non-ASCII kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from typing import Any

from jinja2 import pass_context
from jinja2.filters import FILTERS
from jinja2.runtime import Context

from .template_budget import Budget, budget_of

MAX_INDENT = 1000
_JINJA_OWN = (
    "abs capitalize count d default dictsort first float groupby int items last length list lower map max min"
    " reject rejectattr reverse round select selectattr sort title trim unique upper"
)


def template_filters() -> dict[str, Callable[..., Any]]:
    """Name -> filter, all of them."""
    own = {
        "join": _join,
        "replace": _replace,
        "indent": _indent,
        "tojson": _tojson,
        "string": _string,
    }
    return {name: _charged(FILTERS[name]) for name in _JINJA_OWN.split()} | own | {"safe": _safe}


def counted(budget: Budget, values: Iterable[Any]) -> Iterator[Any]:
    """`values`, each item a step."""
    for value in values:
        budget.step()
        yield value


def replaced(budget: Budget, text: str, old: str, new: str, count: int = -1) -> str:
    """`text.replace`, refused where the result would be too large."""
    num_found = text.count(old)
    budget.text(len(text) + (num_found if count < 0 else min(num_found, count)) * len(new))
    return text.replace(old, new, count)


def joined(budget: Budget, separator: str, values: Iterable[Any]) -> str:
    """`separator.join` of printed values, refused where the result would be too large."""
    parts = [budget.printed(value) for value in counted(budget, values)]
    budget.text(sum(map(len, parts)) + len(separator) * max(0, len(parts) - 1))
    return separator.join(parts)


def _charged(own: Callable[..., Any]) -> Callable[..., Any]:
    """Jinja's filter behind a charge for its input and its result."""
    # Jinja marks what a filter wants before the value: nothing, "context", "eval_context" or "environment".
    wanted: str | None = getattr(getattr(own, "jinja_pass_arg", None), "name", None)

    @pass_context
    def charged(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        budget = budget_of(context)
        if isinstance(value, Sized) and not isinstance(value, str):
            budget.step(1 + len(value))  # the items were charged when they came to be
        else:
            budget.value(value)
        before: Mapping[str, Any] = {
            "context": context,
            "eval_context": context.eval_ctx,
            "environment": context.environment,
        }
        result = own(*((before[wanted],) if wanted else ()), value, *args, **kwargs)
        if isinstance(result, str):
            budget.text(len(result))
        elif isinstance(result, Sized):
            budget.step(1 + len(result))
        return result

    return charged


@pass_context
def _replace(context: Context, value: Any, old: str, new: str, count: int | None = None) -> str:
    budget = budget_of(context)
    texts = [budget.printed(text) for text in (value, old, new)]
    return replaced(budget, texts[0], texts[1], texts[2], -1 if count is None else count)


@pass_context
def _join(context: Context, value: Any, separator: Any = "", attribute: str | None = None) -> str:
    budget = budget_of(context)
    values: Iterable[Any] = value
    if attribute is not None:
        values = (context.environment.getitem(item, attribute) for item in value)
    return joined(budget, budget.printed(separator), values)


@pass_context
def _indent(
    context: Context, value: Any, width: int | str = 4, first: bool = False, blank: bool = False
) -> str:
    budget = budget_of(context)
    text = budget.printed(value) + "\n"  # so that a line break at the end opens a last, empty line
    pad = width if isinstance(width, str) else " " * min(int(width), MAX_INDENT)
    lines = text.splitlines()
    budget.text(len(text) + len(lines) * len(pad))
    rest = [pad + line if line or blank else line for line in lines[1:]]
    return "\n".join([pad + lines[0] if first else lines[0], *rest])


@pass_context
def _tojson(
    context: Context,
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: Any = None,
    sort_keys: bool = False,
) -> str:
    budget = budget_of(context)
    budget.value(value)
    width = None if indent is None else min(int(indent), 16)
    text = json.dumps(
        value, ensure_ascii=ensure_ascii, indent=width, separators=separators, sort_keys=sort_keys
    )
    budget.text(len(text))
    return text


@pass_context
def _string(context: Context, value: Any) -> str:
    return budget_of(context).printed(value)


def _safe(value: Any) -> Any:
    return value  # nothing is escaped anyway
