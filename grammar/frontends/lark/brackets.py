"""What is read so far between two brackets of a Lark grammar.

Owns how alternatives, intersections and sequences bind: a sequence first, then `&`, then `|`. Knows nothing of tokens but where they stand.
"""

from __future__ import annotations

from .nodes import Both, Call, Choice, Node, Not, Sequence, Times
from .scanner import Token

_CLOSING = {"(": ")", "[": "]", "{": "}"}


class Bracket:
    """An open bracket; the arguments of the template `name`; or, with neither, the body of a definition."""

    def __init__(self, opening: Token, name: Token | None = None) -> None:
        self.opening = opening
        self.closing = _CLOSING.get(opening.kind, "")
        self._name = name
        self._items: list[Node] = []
        self._factors: list[Node] = []  # of the alternative, between &
        self._branches: list[Node] = []
        self._arguments: list[Node] = []
        self._negations: list[int] = []  # places of ~ before the next item
        self._and_at = 0

    @property
    def is_call(self) -> bool:
        """Whether arguments of a template are read."""
        return self._name is not None

    def negate(self, at: int) -> None:
        """The next item is negated."""
        self._negations.append(at)

    def negated(self, item: Node) -> Node:
        """`item` with the negations before it."""
        while self._negations:
            item = Not(item, self._negations.pop())
        return item

    @property
    def is_waiting(self) -> bool:
        """Whether a negation still waits for its item."""
        return bool(self._negations)

    def add(self, item: Node) -> None:
        """One more item of the sequence."""
        self._items.append(item)

    def end_factor(self, at: int) -> None:
        """A `&` at `at`: what stands before it is one side."""
        self._factors.append(_sequence(self._items))
        self._items = []
        self._and_at = at

    def end_branch(self) -> None:
        """A `|`: the alternative is whole."""
        self._factors.append(_sequence(self._items))
        is_one = len(self._factors) == 1
        self._branches.append(
            self._factors[0] if is_one else Both(tuple(self._factors), self._and_at)
        )
        self._items, self._factors = [], []

    def end_argument(self) -> None:
        """A comma between the arguments of a template."""
        self.end_branch()
        self._arguments.append(choice(self._branches))
        self._branches = []

    def whole(self) -> Node:
        """Everything between the brackets."""
        if self._name is not None:
            self.end_argument()
            return Call(self._name.text, tuple(self._arguments), self._name.at)
        self.end_branch()
        inner = choice(self._branches)
        return Times(inner, 0, 1) if self.opening.kind == "[" else inner


def choice(items: list[Node]) -> Node:
    """Any of `items`."""
    return items[0] if len(items) == 1 else Choice(tuple(items))


def _sequence(items: list[Node]) -> Node:
    return items[0] if len(items) == 1 else Sequence(tuple(items))
