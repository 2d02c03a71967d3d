"""The `s` of a program: append with `+=`, read with `s["x"]`, fork.

Owns the user's view of a branch: reading waits for just the result that is read, appending never waits. Must not know messages or how
waiting is done. A variable that fails raises where it is read; its error has notes with the program's line and the text so far.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from ..errors import ProgramError, UnknownVariable
from .chat import RoleMark, to_messages
from .fork_group import ForkGroup
from .ir import as_node
from .place import user_place
from .primitives.roles import BeginRole, EndRole, Role
from .variable import Known, Meta, Span, Variable

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from contextlib import AbstractContextManager

    from ..runtime.messages import Usage
    from .branch import Branch, Piece
    from .ir import Node


class State:
    """A program's text and variables, running or finished.

    `ret_value` is what the program's function returned.
    """

    def __init__(self, branch: Branch) -> None:
        self._branch = branch
        self.ret_value: Any = None

    # ------------------------------------------------------------------------------------ appending

    def __iadd__(self, value: Node | str) -> State:
        """Append text or nodes. Returns at once; results are waited for where they are read."""
        as_node(value).submit(self._branch)
        return self

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
            Role(role, as_node(content)).submit(self._branch)
            return _nothing(self)
        return self._role_block(role)

    @contextmanager
    def _role_block(self, role: str) -> Generator[State]:
        BeginRole(role).submit(self._branch)
        try:
            yield self
        except BaseException:
            with suppress(ProgramError):  # the block's own error counts
                EndRole(role).submit(self._branch)
            raise
        EndRole(role).submit(self._branch)

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

    # ------------------------------------------------------------------------------------ reading

    def __getitem__(self, name: str) -> Any:
        """The value of a variable, when it is there: text, a list if n > 1, or an instance of the gen's `schema`.

        Raises UnknownVariable (a KeyError) at once if nothing sets it, else what made it fail.
        """
        readable = self._readable(name)
        if isinstance(readable, Known):
            return readable.value
        if isinstance(readable, Span):
            return self._text_of(readable.pieces[readable.start : readable.end])
        self._branch.run.wait_for(readable)
        return readable.value()

    def __setitem__(self, name: str, value: Any) -> None:
        """Set a variable by hand; the text stays as it is."""
        self._branch.variables[name] = Known(value)

    def __contains__(self, name: str) -> bool:
        return name in self._branch.variables

    def keys(self) -> tuple[str, ...]:
        """Names of all variables, in the order they were set; `dict(s)` reads them all."""
        return tuple(self._branch.variables)

    def text(self) -> str:
        """All text so far, constants and results, when all of it is there. Roles leave no marks in it: see `messages`."""
        return self._text_of(self._branch.all_pieces())

    def messages(self) -> list[dict[str, str]]:
        """The chat messages so far, each {"role", "content"}. Text outside roles is in none of them."""
        pieces = self._branch.all_pieces()
        return to_messages(p if isinstance(p, RoleMark) else self._resolve(p) for p in pieces)

    def get_meta(self, name: str) -> Meta:
        """Finish reason, usage, token ids, logprobs, scores of a gen or select."""
        readable = self._readable(name)
        if not isinstance(readable, Variable):
            raise ProgramError(f"{name!r} is no gen or select, it has no meta data", place=name)
        self._branch.run.wait_for(readable)
        if readable.failure is not None:
            readable.failure.throw()
        if readable.meta is None:
            raise ProgramError(f"{name!r} has no meta data", place=name)
        return readable.meta

    def usage(self) -> Usage:
        """Token counts of the whole run so far, over all its branches."""
        return self._branch.run.usage

    def error(self) -> BaseException | None:
        """What made this run or branch fail, as far as it is known now; None while all is well."""
        run = self._branch.run
        last = self._branch.last
        if last is not None and last.failure is not None:
            last.failure.seen = True
            return run.error or last.failure.error
        return run.error

    def sync(self) -> State:
        """Wait for everything on this branch; raise what failed."""
        self.text()
        return self

    # ------------------------------------------------------------------------------------ branching

    def fork(self, num_forks: int = 1) -> ForkGroup[State]:
        """`num_forks` states that continue from here, sharing all that was computed. Iterate, index, `+=` and `join` the group."""
        if not isinstance(num_forks, int) or num_forks < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ProgramError(
                f"fork({num_forks!r}): a fork has at least 1 child", place="num_forks"
            )
        place = user_place()
        children = [State(branch) for branch in self._branch.fork(num_forks)]
        return ForkGroup(self, children, place)

    def copy(self) -> State:
        """One state that continues from here, beside this one."""
        return State(self._branch.fork(1)[0])

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

    # ------------------------------------------------------------------------------------ small parts

    def _readable(self, name: str) -> Variable | Known | Span:
        readable = self._branch.variables.get(name)
        if readable is not None:
            return readable
        if self._branch.run.error is not None:
            raise self._branch.run.error
        near = get_close_matches(name, self.keys(), n=1)
        known = f"Known: {', '.join(self.keys())}" if self.keys() else "No variable is set yet"
        raise UnknownVariable(
            f"nothing sets the variable {name!r}",
            place=name,
            hint=f"Did you mean {near[0]!r}?" if near else known,
        )

    def _text_of(self, pieces: Iterable[Piece]) -> str:
        return "".join(self._resolve(p) for p in pieces if not isinstance(p, RoleMark))

    def _resolve(self, piece: str | Variable) -> str:
        if isinstance(piece, str):
            return piece
        self._branch.run.wait_for(piece)
        if piece.failure is not None:
            piece.failure.throw()
        return piece.text


@contextmanager
def _nothing(state: State) -> Generator[State]:
    yield state
