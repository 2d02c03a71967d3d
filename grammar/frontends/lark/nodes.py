"""The syntax tree of a Lark grammar, and a walk over it that needs no Python recursion.

Owns the node types. Nodes are equal if they mean the same, wherever they stand: `at`, the place in the source, does not count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Text:
    """A string."""

    value: str
    ignores_case: bool
    at: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression in Python syntax."""

    source: str
    flags: str
    at: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Span:
    """One character from `first` to `last`."""

    first: str
    last: str
    at: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Schema:
    """A JSON text valid under the schema `text`."""

    text: str
    at: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Name:
    """A rule, a terminal, or a parameter of a template."""

    name: str
    at: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A template with its arguments."""

    name: str
    arguments: tuple[Node, ...]
    at: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after another."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Any of."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Times:
    """`item`, `low` to `high` times (None: without end)."""

    item: Node
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Both:
    """What all of `items` match; in terminals only."""

    items: tuple[Node, ...]
    at: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    """Every text that `item` does not match; in terminals only."""

    item: Node
    at: int = field(compare=False)


Leaf = Text | Pattern | Span
Node = Leaf | Schema | Name | Call | Sequence | Choice | Times | Both | Not


@dataclass(frozen=True, slots=True)
class Definition:
    """A rule, a template (with `parameters`) or a terminal."""

    name: str
    parameters: tuple[str, ...]
    priority: int  # 0 unless given
    body: Node
    at: int


def is_terminal(name: str) -> bool:
    """Whether a name is a terminal's: its letters are upper case."""
    return name.lstrip("_")[:1].isupper()


def parts_of(node: Node) -> tuple[Node, ...]:
    """The direct parts of a node; arguments of a template count."""
    match node:
        case Sequence(items) | Choice(items) | Both(items):
            return items
        case Times(item) | Not(item):
            return (item,)
        case Call(_, arguments):
            return arguments
        case _:
            return ()


def fold(root: Node, make: Callable[[Node, list[T]], T]) -> T:
    """What `make` says of `root`, given what it said of the parts, innermost first."""
    done: list[T] = []
    work: list[tuple[Node, bool]] = [(root, False)]
    while work:
        node, is_ready = work.pop()
        parts = parts_of(node)
        if parts and not is_ready:
            work.append((node, True))
            work += [(part, False) for part in reversed(parts)]
            continue
        values = done[len(done) - len(parts) :]
        del done[len(done) - len(parts) :]
        done.append(make(node, values))
    return done[0]


def nodes_in(root: Node) -> list[Node]:
    """`root` and all nodes below it, in the order of the source."""
    found: list[Node] = []
    work = [root]
    while work:
        node = work.pop()
        found.append(node)
        work += reversed(parts_of(node))
    return found
