"""What a chat template may cost: the limits, and the budget of one rendering that is charged against them.

Owns counting and the clock. Knows nothing of messages, and of Jinja only its errors and its context, which carries the budget to the
guards. CPU time of the thread is measured, so a loaded machine does not fail an honest template.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

import jinja2
from jinja2.runtime import Context, Undefined

MAX_INT_BITS = 4096
_CHARS_PER_STEP = 1024
_STEPS_BETWEEN_LOOKS = 8


@dataclass(frozen=True, slots=True)
class TemplateLimits:
    """What a template may cost. Exceeding one raises LimitExceeded, which names it."""

    template_chars: int = 65_536
    statements: int = 1_000
    output_chars: int = 4_000_000
    work_chars: int = 64_000_000  # of all strings made on the way
    steps: int = 500_000  # loop rounds, calls, items of lists made, 1024 characters of strings made
    cpu_s: float = 1.0


class LimitExceeded(jinja2.TemplateRuntimeError):
    """The template asked for more than a limit; the message names it."""


class Refused(jinja2.TemplateError):
    """The template itself refused its input by `raise_exception`."""


class Budget:
    """What is left to one rendering."""

    __slots__ = ("_cpu_end_s", "_limits", "_next_look", "_num_steps", "_work_chars")

    def __init__(self, limits: TemplateLimits) -> None:
        self._limits = limits
        self._num_steps = 0
        self._next_look = _STEPS_BETWEEN_LOOKS
        self._work_chars = 0
        self._cpu_end_s = time.thread_time() + limits.cpu_s

    def step(self, num_steps: int = 1) -> None:
        """Charge work of about a microsecond each."""
        self._num_steps += num_steps
        if self._num_steps > self._limits.steps:
            raise LimitExceeded(f"more than {self._limits.steps} steps")
        if self._num_steps >= self._next_look:
            self._next_look = self._num_steps + _STEPS_BETWEEN_LOOKS
            if time.thread_time() > self._cpu_end_s:
                raise LimitExceeded(f"more than {self._limits.cpu_s:g} s of computing")

    def text(self, num_chars: int) -> None:
        """Charge a string, before it is made where its size is known before."""
        if num_chars > self._limits.output_chars:
            raise LimitExceeded(f"a text of more than {self._limits.output_chars} characters")
        self._work_chars += num_chars
        if self._work_chars > self._limits.work_chars:
            raise LimitExceeded(f"more than {self._limits.work_chars} characters of work")
        self.step(num_chars // _CHARS_PER_STEP)

    def value(self, value: Any) -> None:
        """Charge a value that came to be: its characters and, through all nests, its items."""
        todo = [value]
        while todo:
            item = todo.pop()
            if isinstance(item, str):
                self.text(len(item))
            elif isinstance(item, Mapping):
                members = cast("Mapping[Any, Any]", item)
                self.step(1 + 2 * len(members))
                todo.extend(members.keys())
                todo.extend(members.values())
            elif isinstance(item, list | tuple | set | frozenset):
                items = cast("Collection[Any]", item)
                self.step(1 + len(items))
                todo.extend(items)
            elif isinstance(item, int) and item.bit_length() > MAX_INT_BITS:
                raise LimitExceeded(f"an integer of more than {MAX_INT_BITS} bits")

    def printed(self, value: Any) -> str:
        """`str(value)`, charged; only for values whose printed form is bounded by their size."""
        if isinstance(value, str):
            self.text(len(value))
            return value
        if not isinstance(value, _PRINTABLE):
            raise jinja2.exceptions.SecurityError(f"a {type(value).__name__} cannot be printed")
        self.value(value)
        text = str(cast("object", value))
        self.text(len(text))
        return text


_PRINTABLE = (int, float, bool, type(None), list, tuple, dict, Undefined, range)


class BudgetContext(Context):
    """Jinja's context, carrying the budget of its rendering."""

    budget: Budget

    def derived(self, locals: dict[str, Any] | None = None) -> Context:
        """The context of an inner scope: the same budget."""
        child = super().derived(locals)
        if isinstance(child, BudgetContext):
            child.budget = self.budget
        return child


def budget_of(context: Context) -> Budget:
    """The budget of the rendering that `context` belongs to."""
    if not isinstance(context, BudgetContext):
        raise jinja2.exceptions.SecurityError("the template left its context")
    return context.budget
