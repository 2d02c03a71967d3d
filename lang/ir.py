"""The nodes of a program: what `s += ...` takes, as frozen data.

Owns the base class, plain text, concatenation and the view of a branch that nodes act on. A node is data that also knows how to submit
itself, so that a new primitive is one file in `primitives/`. Must not know messages, backends, greenlets or how waiting is done.

Nodes cannot be turned into strings: an f-string around a gen would silently put its repr into the prompt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from ..errors import ProgramError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..grammar.spec import Spec
    from ..runtime.messages import Output, Scored
    from .beside import Beside
    from .state import State
    from .variable import Meta


class BranchOps(Protocol):
    """What a node may do to the branch it is submitted to. Nothing here waits."""

    def add_text(self, text: str) -> None:
        """Constant text at the end of the branch."""
        ...

    def begin_role(self, role: str) -> None:
        """Open a chat message. ProgramError if one is open."""
        ...

    def end_role(self, role: str) -> None:
        """Close the open chat message. ProgramError if `role` is not the open one."""
        ...

    def generate(
        self,
        name: str | None,
        options: Mapping[str, object],
        constraint: Spec | None,
        decode: Callable[[Output], object],
        beside: Beside | None = None,
    ) -> None:
        """Continue the branch by sampling; each output becomes a value by `decode`, when it is first read.

        With `beside` the asking is done on a copy of the branch, and what comes of it is appended.
        """
        ...

    def also(self, suffix: str, read: Callable[[Meta], object]) -> None:
        """File what `read` finds in the meta data of the gen appended last under its name and `suffix`."""
        ...

    def choose(
        self,
        name: str | None,
        choices: Sequence[str],
        decide: Callable[[Scored, Scored | None, int | None], tuple[int, tuple[float, ...]]],
        *,
        unconditional: bool,
    ) -> None:
        """Append one of `choices`. `decide(scores, unconditional scores, seed)` gives its index and each choice's score."""
        ...


@dataclass(frozen=True)
class Node:
    """One piece of a program. `+` joins nodes and text from left to right."""

    def submit(self, branch: BranchOps) -> None:
        """Hand this node's work to the branch."""
        raise NotImplementedError(type(self).__name__)

    def __add__(self, other: object) -> Concat:
        return Concat((*_items(self), *_items(as_node(other))))

    def __radd__(self, other: object) -> Concat:
        return Concat((*_items(as_node(other)), *_items(self)))

    def __str__(self) -> str:
        raise ProgramError(
            f"a {type(self).__name__.lower()} cannot be formatted into a string",
            hint="Write 'text' + gen(...) instead of an f-string around it",
        )

    def __format__(self, format_spec: str) -> str:
        return str(self)


@dataclass(frozen=True)
class Text(Node):
    """Constant text."""

    text: str

    def submit(self, branch: BranchOps) -> None:
        """Append the text."""
        if self.text:
            branch.add_text(self.text)


@dataclass(frozen=True)
class Concat(Node):
    """Nodes one after another."""

    items: tuple[Node, ...]

    def submit(self, branch: BranchOps) -> None:
        """Submit each, in order."""
        for item in self.items:
            item.submit(branch)


@dataclass(frozen=True)
class Routine(Node):
    """A part of a program that reads what it asked before it goes on: it is given the state itself. Stands between messages, not in one."""

    def act(self, s: State) -> None:
        """Do its work on the state, as a program called with it would."""
        raise NotImplementedError(type(self).__name__)

    def submit(self, branch: BranchOps) -> None:
        """ProgramError: a branch alone cannot wait."""
        raise ProgramError(
            f"{type(self).__name__} stands inside another node",
            hint="It writes messages of its own: append it with s += ... outside of user(...), assistant(...)",
        )


def act_on(s: State, branch: BranchOps, node: Node) -> None:
    """Submit a node, and let the routines in it act on the state, in order."""
    for item in _items(node):
        if isinstance(item, Routine):
            item.act(s)
        else:
            item.submit(branch)


def as_node(value: object) -> Node:
    """`value` as a node: nodes stay, strings become Text, anything else is a ProgramError."""
    if isinstance(value, Node):
        return value
    if isinstance(value, str):
        return Text(value)
    kind = type(value).__name__
    hint = f"Write str(...) around the {kind}" if isinstance(value, int | float) else ""
    if isinstance(value, list | tuple):
        length = len(cast("Sequence[object]", value))
        hint = f"Add its {length} items one by one; only a group of forks takes a list"
    raise ProgramError(f"a program cannot append a {kind}: {value!r:.80}", hint=hint)


def _items(node: Node) -> tuple[Node, ...]:
    return node.items if isinstance(node, Concat) else (node,)
