"""A program as data flow: branches of steps, the requests among them, and where each text comes from.

    Graph -- branches[0] -- steps: TextStep "Tips on " {topic}   RoleStep   AskStep 0 "tip"   ForkStep (1, 2)   JoinStep (1, 2)
          |- branches[1] -- steps: ...
          `- asks[0]: gen "tip", waits for ..., draws on ...

Owns the nodes, all frozen: a pass takes a graph and returns what it found, or another graph. Must not know how a graph is recorded, drawn
or used. A step that is a *guess* may not come in another run, nor what stands behind it on its branch: another way of the program was seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["gen", "select"]


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a text. Without sources it is constant."""

    text: str
    sources: frozenset[str] = frozenset()
    """Arguments (`topic`) and results (`$0` for ask 0) that it was seen to depend on."""
    is_computed: bool = False
    """A result is not in it as it came: Python made something of it."""


@dataclass(frozen=True, slots=True)
class TextStep:
    """Text appended at once, or what adjacent texts were folded to. `num_read`: of `Graph.reads`, those before it."""

    parts: tuple[Part, ...]
    num_read: int = 0
    is_guess: bool = False

    @property
    def text(self) -> str:
        """All of it, as it was in the traced run."""
        return "".join(part.text for part in self.parts)


@dataclass(frozen=True, slots=True)
class RoleStep:
    """A chat message begins or ends."""

    role: str
    begins: bool
    is_guess: bool = False


@dataclass(frozen=True, slots=True)
class AskStep:
    """A gen or select: `asks[ask]` of the graph."""

    ask: int
    is_guess: bool = False


@dataclass(frozen=True, slots=True)
class ForkStep:
    """Branches that continue from here."""

    children: tuple[int, ...]
    is_guess: bool = False


@dataclass(frozen=True, slots=True)
class JoinStep:
    """Branches end here."""

    children: tuple[int, ...]
    is_guess: bool = False


Step = TextStep | RoleStep | AskStep | ForkStep | JoinStep


@dataclass(frozen=True, slots=True)
class Ask:
    """One gen or select, numbered in the program's order."""

    number: int
    branch: int
    kind: Kind
    name: str
    place: str
    """The program's file:line."""
    max_tokens: int | None = None
    """Of a gen, if it names one."""
    constraint: str = ""
    """What the output must be, "" for anything."""
    choices: tuple[str, ...] = ()
    num_outputs: int = 1
    is_repeatable: bool = True
    """Equal text gives an equal result: temperature 0, or a seed of its own."""
    reads: tuple[int, ...] = ()
    """Asks whose results the program had read before it came to this one: it cannot come earlier."""
    result: tuple[str, ...] = ()
    """What was played as its outputs when the program was traced."""


@dataclass(frozen=True, slots=True)
class BranchGraph:
    """One branch. `parent` is the branch it was forked from, None for the program's own."""

    number: int
    parent: int | None
    steps: tuple[Step, ...]
    may_go_on: bool = False
    """Another way of the program was seen to do more here."""


@dataclass(frozen=True, slots=True)
class Graph:
    """A program as it ran once on placeholders."""

    program: str
    branches: tuple[BranchGraph, ...]
    asks: tuple[Ask, ...]
    arguments: tuple[str, ...] = ()
    """Names of the arguments that the traced run was given."""
    stopped: str = ""
    """Why the trace could not go on to the end of the program; "" if it did."""
    reads: tuple[int, ...] = ()
    """Asks in the order in which the program first waited for their results."""

    def path(self, ask: Ask) -> Iterator[Step]:
        """The steps before an ask, from the root of its branch on, last first."""
        number: int | None = ask.branch
        until: int | None = None  # the branch that was forked off
        while number is not None:
            branch = self.branches[number]
            steps = branch.steps
            end = next(i for i, step in enumerate(steps) if _is_end(step, ask, until))
            yield from reversed(steps[:end])
            number, until = branch.parent, number


def _is_end(step: Step, ask: Ask, child: int | None) -> bool:
    if child is not None:
        return isinstance(step, ForkStep) and child in step.children
    return isinstance(step, AskStep) and step.ask == ask.number
