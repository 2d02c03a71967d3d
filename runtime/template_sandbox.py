"""Run a chat template that nobody vouches for: Jinja's immutable sandbox, with limits on time, steps and memory.

Owns the environment: which globals, methods and operators a template may use, and the guards around them. Knows nothing of messages,
tokens or models. Jinja's sandbox keeps a template away from Python's internals but not from a loop of 10^10 rounds or a string doubled
forty times, and a thread that computes cannot be stopped from outside. So the template's syntax tree is rewritten before it is compiled:

    {% for x in E %}   ->  for x in guard_iter(E)      every round is a step
    {{ E }}, text      ->  guard_out(E)                every character written is counted, in captured blocks too
    E ~ F              ->  guard_concat([E, F])
    [E, F], {k: E}     ->  guard_new([E, F])           a nest of shared lists is as large as its printed form

and calls, methods, filters and operators go through checks that keep any single one of them small. A step looks at the clock, so a
rendering ends within its limit plus one small operation.
"""

from __future__ import annotations

import time
import types
from collections.abc import Iterator, Mapping
from typing import Any, cast

import jinja2
from jinja2 import ext, nodes, pass_context, sandbox, visitor
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context, LoopContext, Macro, Undefined
from jinja2.utils import Cycler, Joiner

from .template_budget import (
    MAX_INT_BITS,
    Budget,
    BudgetContext,
    LimitExceeded,
    Refused,
    TemplateLimits,
    budget_of,
)
from .template_filters import counted, joined, replaced, template_filters

_MAX_MESSAGE_CHARS = 1000


class SandboxedTemplate:
    """A compiled template. Safe to share between threads: each rendering has a budget of its own."""

    def __init__(self, source: str, limits: TemplateLimits | None = None) -> None:
        """Compile `source`. The source is hostile: besides jinja2.TemplateError, any exception may come out of the compiler."""
        self._limits = limits or TemplateLimits()
        if len(source) > self._limits.template_chars:
            raise LimitExceeded(
                f"a template of {len(source)} characters (at most {self._limits.template_chars})"
            )
        environment = _Environment()
        tree = environment.parse(source)
        self.names = frozenset(node.name for node in tree.find_all(nodes.Name))  # it reads or sets
        statements = (
            node for node in tree.find_all((nodes.Stmt,)) if not isinstance(node, nodes.Output)
        )
        if sum(1 for _ in statements) > self._limits.statements:
            raise LimitExceeded(f"more than {self._limits.statements} statements")
        tree = cast("nodes.Template", _GuardEverything().visit(tree))
        self._template = jinja2.Template.from_code(
            environment, environment.compile(tree), environment.globals
        )

    def render(self, variables: Mapping[str, Any]) -> str:
        """The text for `variables` (plain JSON-like values).

        Raises Refused (by the template), LimitExceeded, or whatever else the template runs into.
        """
        context = self._template.new_context(dict(variables))
        if not isinstance(context, BudgetContext):
            raise SecurityError("the template has no budget")
        context.budget = Budget(self._limits)
        parts: list[str] = []
        num_chars = 0
        for part in self._template.root_render_func(context):
            num_chars += len(part)
            if num_chars > self._limits.output_chars:
                raise LimitExceeded(
                    f"an output of more than {self._limits.output_chars} characters"
                )
            parts.append(part)
        return "".join(parts)


# ---------------------------------------------------------------------------------------------- guards


@pass_context
def _guard_iter(context: Context, value: Any) -> Iterator[Any]:
    return counted(budget_of(context), value)


@pass_context
def _guard_out(context: Context, value: Any) -> str:
    budget = budget_of(context)
    budget.step()
    return budget.printed(value)


@pass_context
def _guard_concat(context: Context, values: list[Any]) -> str:
    return joined(budget_of(context), "", values)


@pass_context
def _guard_new(context: Context, value: Any) -> Any:
    budget_of(context).value(value)
    return value


class _GuardEverything(visitor.NodeTransformer):
    """Rewrites a template's syntax tree as the module's docstring shows."""

    def visit_For(self, node: nodes.For, *args: Any, **kwargs: Any) -> nodes.Node:
        self.generic_visit(node)
        node.iter = _filtered(_expression(node.iter), "guard_iter")
        return node

    def visit_Output(self, node: nodes.Output, *args: Any, **kwargs: Any) -> nodes.Node:
        self.generic_visit(node)
        node.nodes = [
            _filtered(
                _expression(child),
                "guard_out",
            )
            for child in node.nodes
        ]
        return node

    def visit_Concat(self, node: nodes.Concat, *args: Any, **kwargs: Any) -> nodes.Expr:
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), "guard_concat")

    def visit_List(self, node: nodes.List, *args: Any, **kwargs: Any) -> nodes.Expr:
        self.generic_visit(node)
        constant = all(isinstance(item, nodes.Const) for item in node.items)
        return node if constant else _filtered(node, "guard_new")

    def visit_Tuple(self, node: nodes.Tuple, *args: Any, **kwargs: Any) -> nodes.Node:
        self.generic_visit(node)
        return node if node.ctx != "load" else _filtered(node, "guard_new")

    def visit_Dict(self, node: nodes.Dict, *args: Any, **kwargs: Any) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(node, "guard_new")


def _expression(node: nodes.Node) -> nodes.Expr:
    return (
        nodes.Const(node.data) if isinstance(node, nodes.TemplateData) else cast("nodes.Expr", node)
    )


def _filtered(node: nodes.Expr, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


# ---------------------------------------------------------------------------------------------- environment

_STRING_METHODS = (
    "capitalize casefold count endswith find index isalnum isalpha isascii isdecimal isdigit islower isnumeric isspace"
    " istitle isupper join lower lstrip partition removeprefix removesuffix replace rfind rindex rpartition rsplit"
    " rstrip split splitlines startswith strip swapcase title upper"
)
_METHODS: Mapping[type, frozenset[str]] = {
    str: frozenset(_STRING_METHODS.split()),
    list: frozenset(("copy", "count", "index")),
    tuple: frozenset(("count", "index")),
    dict: frozenset(("copy", "get", "items", "keys", "values")),
    range: frozenset(("count", "index")),
}


class _GenerationTag(ext.Extension):
    """`{% generation %} ... {% endgeneration %}` marks what a model would write; to a rendering it is transparent."""

    tags = {"generation"}  # noqa: RUF012 - the attribute Jinja reads

    def parse(self, parser: Any) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise_exception(message: Any = "") -> Any:
    raise Refused(str(message)[:_MAX_MESSAGE_CHARS])


def _strftime_now(form: str) -> str:
    return time.strftime(str(form)[:100])


class _Environment(sandbox.ImmutableSandboxedEnvironment):
    """The sandbox with everything that could be large or slow behind a guard."""

    intercepted_binops = frozenset(sandbox.SandboxedEnvironment.default_binop_table)
    context_class = BudgetContext

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,  # folding constants would run operators at compile time, without a budget
            cache_size=0,
            extensions=["jinja2.ext.loopcontrols", _GenerationTag],
        )
        self.filters = template_filters() | {
            "guard_iter": _guard_iter,
            "guard_out": _guard_out,
            "guard_concat": _guard_concat,
            "guard_new": _guard_new,
        }
        kept = {
            name: self.globals[name] for name in ("range", "dict", "namespace", "cycler", "joiner")
        }
        self.globals = kept | {"raise_exception": _raise_exception, "strftime_now": _strftime_now}
        self._callables = tuple(self.globals.values())

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        budget = budget_of(context)
        budget.step()
        if operator == "**":
            _check_power(left, right)
        elif operator == "*":
            for factor, times in ((left, right), (right, left)):
                if isinstance(factor, str | list | tuple):
                    items = cast("str | list[Any] | tuple[Any, ...]", factor)
                    budget.text(len(items) * max(0, int(times)))
        elif operator == "%" and isinstance(left, str):
            raise SecurityError("formatting with % is not available")
        elif operator == "+" and isinstance(left, str) and isinstance(right, str):
            budget.text(len(left) + len(right))
            return left + right
        result = super().call_binop(context, operator, left, right)
        budget.value(result)
        return result

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        # The parameters are mangled as in Jinja, so that a template may pass an argument called self.
        budget = budget_of(__context)
        budget.step()
        owner: Any = getattr(__obj, "__self__", None)
        if isinstance(__obj, types.BuiltinMethodType) and owner is not None:
            kind = type(cast("object", owner))
            if __obj.__name__ not in _METHODS.get(kind, ()):
                raise SecurityError(
                    f"the method {__obj.__name__!r} of {kind.__name__} is not available"
                )
            if isinstance(owner, str):
                return _call_string_method(budget, owner, __obj.__name__, args, kwargs)
        elif not __self._may_call(__obj, owner):
            raise SecurityError(f"a {type(__obj).__name__} cannot be called")
        result = super().call(__context, __obj, *args, **kwargs)
        budget.value(result)
        return result

    def _may_call(self, called: Any, owner: Any) -> bool:
        return (
            any(called is known for known in self._callables)
            or isinstance(called, Macro | LoopContext | Joiner | Undefined)
            or (isinstance(called, types.MethodType) and isinstance(owner, LoopContext | Cycler))
        )


def _check_power(base: Any, exponent: Any) -> None:
    num_bits = max(1, base.bit_length() if isinstance(base, int) else 1)
    if abs(exponent) * num_bits > MAX_INT_BITS:
        raise LimitExceeded(f"an integer of more than {MAX_INT_BITS} bits")


def _call_string_method(
    budget: Budget, text: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    budget.text(len(text))
    own = {key: value for key, value in kwargs.items() if key not in ("_loop_vars", "_block_vars")}
    if name == "join":
        return joined(budget, text, *args, **own)
    if name == "replace":
        return replaced(budget, text, *args, **own)
    result = getattr(text, name)(*args, **own)
    budget.value(result)
    return result
