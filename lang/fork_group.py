"""The children of one fork, as a group.

Owns `+=` over all children and `join`. Must not know branches or messages: it works on states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast, overload

from ..errors import ProgramError
from .chat import check_begin, check_end
from .primitives.roles import BeginRole, EndRole

if TYPE_CHECKING:
    from .ir import Node
    from .place import Place

_GATHER = ("gather", "gather_variable")
_CONCAT = ("concat", "concate_and_append")  # the second of each is SGLang's name


class ForkedState(Protocol):
    """What a group needs of a state."""

    def __iadd__(self, value: Node | str) -> Any: ...
    def __getitem__(self, name: str) -> Any: ...
    def __setitem__(self, name: str, value: Any) -> None: ...
    def own_variables(self) -> tuple[str, ...]:
        """Names set since the fork."""
        ...

    def own_nodes(self) -> list[Node]:
        """What was appended since the fork."""
        ...

    def sync(self) -> Any:
        """Wait for all, raise what failed."""
        ...

    def open_role(self) -> str | None:
        """The role of the open chat message."""
        ...

    def close(self) -> None:
        """End the branch."""
        ...


S = TypeVar("S", bound=ForkedState)
T = TypeVar("T")


class ForkGroup(Sequence[S], Generic[S]):
    """The states of a fork: iterate, index, `group += ...`, `group.join()`."""

    def __init__(self, parent: S, children: list[S], place: Place) -> None:
        self._parent = parent
        self._children = children
        self._place = place

    def __enter__(self) -> ForkGroup[S]:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.join()
            return
        for child in self._children:
            child.close()

    def __len__(self) -> int:
        return len(self._children)

    def __iter__(self) -> Iterator[S]:
        return iter(self._children)

    @overload
    def __getitem__(self, index: int) -> S: ...
    @overload
    def __getitem__(self, index: slice) -> list[S]: ...
    def __getitem__(self, index: int | slice) -> S | list[S]:
        return self._children[index]

    def __setitem__(self, index: int, state: S) -> None:
        """Only what `group[i] += ...` does: put the same state back."""
        if self._children[index] is not state:
            raise ProgramError("a child of a fork cannot be replaced", place=f"[{index}]")

    def __iadd__(
        self, value: Node | str | Sequence[Node | str] | Callable[[int], Any]
    ) -> ForkGroup[S]:
        """Append to every child: the same text or node, item i of a list, or what a function of i returns."""
        for child, item in zip(self._children, self._spread(value), strict=True):
            child += item
        return self

    def join(self, mode: str = "gather") -> None:
        """Wait for all children and end them; they stay readable.

        "gather" sets, in the parent, each variable that children set to the list of their values, in order of the children. "concat"
        appends to the parent's text what each child added since the fork, in order, as constant text; variables stay in the children.
        If a child failed its error is raised, with the child's index in a note (and the other failed ones), and the parent gets nothing.
        """
        if mode not in _GATHER + _CONCAT:
            raise ProgramError(f"unknown join mode {mode!r}", place="mode", hint="gather or concat")
        try:
            if mode in _GATHER:
                self._gather()
            else:
                added = self._each(_added)
                self._check_roles(added)
                for node in chain.from_iterable(added):
                    self._parent += node
        finally:
            for child in self._children:
                child.close()

    def _gather(self) -> None:
        values = self._each(_own_values)
        for name in dict.fromkeys(name for own in values for name in own):
            self._parent[name] = [own[name] for own in values if name in own]

    def _check_roles(self, added: list[list[Node]]) -> None:
        """ProgramError if the children's chat messages, one after another, do not fit into the parent's."""
        role = self._parent.open_role()
        for index, node in ((i, node) for i, nodes in enumerate(added) for node in nodes):
            try:
                if isinstance(node, BeginRole):
                    check_begin(node.role, role)
                    role = node.role
                elif isinstance(node, EndRole):
                    check_end(node.role, role)
                    role = None
            except ProgramError as error:
                error.add_note(f"child {index} of fork({len(self)}) at {self._place}")
                raise

    def _each(self, read: Callable[[S], T]) -> list[T]:
        """What `read` gives for each child. Raises the first failure once all children ended."""
        results: list[T] = []
        failed: list[tuple[int, Exception]] = []
        for index, child in enumerate(self._children):
            try:
                child.sync()
                results.append(read(child))
            except Exception as error:  # noqa: BLE001  raised below
                failed.append((index, error))
        if failed:
            index, error = failed[0]
            error.add_note(f"child {index} of fork({len(self)}) at {self._place}")
            if len(failed) > 1:
                others = ", ".join(str(other) for other, _ in failed[1:])
                error.add_note(f"children {others} failed too")
            raise error
        return results

    def _spread(self, value: Any) -> list[Any]:
        if callable(value):
            return [value(index) for index in range(len(self))]
        if isinstance(value, list | tuple):
            items = cast("Sequence[Any]", value)
            if len(items) != len(self):
                raise ProgramError(f"{len(items)} items for {len(self)} children of a fork")
            return list(items)
        return [value] * len(self)


def _own_values(child: ForkedState) -> dict[str, Any]:
    return {name: child[name] for name in child.own_variables()}


def _added(child: ForkedState) -> list[Node]:
    return child.own_nodes()
