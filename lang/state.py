"""The `s` of a program: append with `+=`, read with `s["x"]`, fork.

Owns the program's view of a branch as far as it adds to it; appending never waits. Reading is `reading.py`'s. Must not know messages or
how waiting is done.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import ProgramError
from .chat import RoleMark
from .fork_group import ForkGroup
from .ir import act_on, as_node
from .place import user_place
from .primitives.roles import BeginRole, EndRole, Role
from .reading import ReadableState
from .variable import Known, Span

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager

    from .ir import Node


class State(ReadableState):
    """A program's text and variables, running or finished."""

    # ------------------------------------------------------------------------------------ appending

    def __iadd__(self, value: Node | str) -> State:
        """Append text or nodes. Returns at once; results are waited for where they are read.

        Routines, such as an agent or a pattern, read what they ask: they return when they are done.
        """
        self._append(as_node(value))
        return self

    def __add__(self, other: object) -> NoReturn:
        raise ProgramError(
            "a state is appended to in place, it is no operand of +", hint="Write s += ..."
        )

    def _append(self, node: Node) -> None:
        act_on(self, self._branch, node)

    def system(self, content: Node | str | None = None) -> AbstractContextManager[State]:
        """`with s.system(): s += ...`, or `s.system("...")`."""
        return self.role("system", content)

    def user(self, content: Node | str | None = None) -> AbstractContextManager[State]:
        """`with s.user(): s += ...`, or `s.user("...")`."""
        return self.role("user", content)

    def assistant(self, content: Node | str | None = None) -> AbstractContextManager[State]:
        """`with s.assistant(): s += gen("x")`, or `s.assistant(gen("x"))`."""
        return self.role("assistant", content)

    def role(self, role: str, content: Node | str | None = None) -> AbstractContextManager[State]:
        """A chat message of any role the model's template knows."""
        if content is not None:
            self._append(Role(role, as_node(content)))
            return _nothing(self)
        return self._role_block(role)

    @contextmanager
    def _role_block(self, role: str) -> Generator[State]:
        self._append(BeginRole(role))
        try:
            yield self
        except BaseException:
            with suppress(ProgramError):  # the block's own error counts
                self._append(EndRole(role))
            raise
        self._append(EndRole(role))

    @contextmanager
    def var_scope(self, name: str) -> Generator[State]:
        """What is appended inside becomes the text `s[name]`."""
        pieces, variables = self._branch.pieces, self._branch.variables
        start = len(pieces)
        variables[name] = Span(pieces, start, None)
        try:
            yield self
        finally:
            variables[name] = Span(pieces, start, len(pieces))

    def __setitem__(self, name: str, value: Any) -> None:
        """Set a variable by hand; the text stays as it is."""
        self._branch.variables[name] = Known(value)

    def sync(self) -> State:
        """Wait for everything on this branch; raise what failed."""
        self.text()
        return self

    # ------------------------------------------------------------------------------------ branching

    def fork(self, num_forks: int = 1, *, size: int | None = None) -> ForkGroup[State]:
        """`num_forks` states that continue from here, sharing all that was computed. Iterate, index, `+=` and `join` the group.

        In a `with` block the group is joined at its end. `size` is SGLang's name for the number.
        """
        num_forks = num_forks if size is None else size
        if not isinstance(num_forks, int) or num_forks < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ProgramError(
                f"fork({num_forks!r}): a fork has at least 1 child", place="num_forks"
            )
        place = user_place()
        children = [State(branch) for branch in self._branch.fork(num_forks)]
        return ForkGroup(self, children, place)

    def copy(self) -> State:
        """One state that continues from here, beside this one; in a `with` block it ends with it."""
        return State(self._branch.fork(1)[0])

    def __enter__(self) -> State:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self.sync()
        finally:
            self._branch.close()

    # ------------------------------------------------------------------------------------ for join

    def own_variables(self) -> tuple[str, ...]:
        """Names set on this branch, not taken over from its parent."""
        return self._branch.own_variables()

    def own_nodes(self) -> list[Node]:
        """What this branch added since its fork, as nodes of constant text and roles. Waits for its results."""
        nodes: list[Node] = []
        for piece in self._branch.pieces:
            if isinstance(piece, RoleMark):
                nodes.append(BeginRole(piece.role) if piece.begins else EndRole(piece.role))
            else:
                nodes.append(as_node(self._resolve(piece)))
        return nodes

    def open_role(self) -> str | None:
        """The role of the chat message that is open."""
        return self._branch.open_role

    def close(self) -> None:
        """End this branch: it stays readable, nothing can be appended."""
        self._branch.close()


@contextmanager
def _nothing(state: State) -> Generator[State]:
    yield state
