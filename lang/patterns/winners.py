"""What the patterns share: parts given as nodes or functions, results read from forks where some may fail, one fork taken over.

Owns the rule which failures a pattern goes on after. Must not know any pattern.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ...errors import OutputError, ProgramError
from ..ir import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from ..state import State

    Part = Node | str | Callable[[State], Any]


def append(s: State, part: Part) -> None:
    """Append a node or text, or let a function (a program, too) act on the state."""
    if callable(part) and not isinstance(part, Node):
        part(s)
    else:
        s += part


def read_all(forks: Iterable[State], name: str) -> tuple[list[tuple[int, Any]], list[OutputError]]:
    """(number of the fork, value of `name`) of those that have a value, and the errors of those whose output is none.

    Raises what else failed, and the first error if none has a value.
    """
    values: list[tuple[int, Any]] = []
    failed: list[OutputError] = []
    for number, fork in enumerate(forks):
        try:
            fork.sync()
            values.append((number, fork[name]))
        except OutputError as error:
            error.add_note(f"attempt {number}")
            failed.append(error)
        except Exception as error:
            error.add_note(f"attempt {number}")
            raise
    if not values:
        if failed:
            raise failed[0]
        raise ProgramError("there is no attempt to read", place=name)
    return values, failed


def take_over(s: State, fork: State) -> None:
    """Append to the state what a fork of it has added, as constant text, and its variables."""
    for node in fork.own_nodes():
        s += node
    for name in fork.own_variables():
        with suppress(OutputError):  # it has no value to take over
            s[name] = fork[name]


@contextmanager
def ended_behind() -> Generator[list[State]]:
    """A list for branches: those in it are ended when the block is left, whatever it raised."""
    opened: list[State] = []
    try:
        yield opened
    finally:
        close_all(opened)


def close_all(forks: Iterable[State]) -> None:
    """End branches that are not needed any more, when what they asked is there; they stay readable."""
    for fork in forks:
        with suppress(Exception):  # nobody needs it; what failed was told by who read it
            fork.sync()
        fork.close()


def check_number(name: str, value: Any, least: int = 1) -> None:
    """ProgramError unless it is a whole number of at least `least`."""
    if type(value) is not int or value < least:
        raise ProgramError(f"{name}={value!r:.80} is not a number from {least} on", place=name)
