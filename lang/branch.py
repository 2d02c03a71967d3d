"""One branch of a run: what the program added to it and what came back.

Owns the record: pieces, variables, the open role. Recording is immediate and never waits; `asking` sends and settles. Must not know how
anyone waits for a result, nor the order and number of messages on the wire.

    program thread:  add_text / generate / choose / fork --> record --> outbox.do(asking.send_...)
    backend thread:  answer --> asking: settle the variable --> (select: append the choice, release the outbox)

All of it under the run's lock.
"""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from ..errors import ProgramError
from ..grammar.spec import JsonSchema
from ..runtime.messages import RoleBegin, RoleEnd, Text
from .asking import send_fork, send_generate, send_score
from .beside import MessageSoFar, send_beside
from .chat import RoleMark, check_begin, check_end
from .companion import ALONE
from .constraints import text_of
from .outbox import Outbox
from .place import user_place
from .plain_text import check_text
from .sampling import build_params, derive_seed
from .sglang_names import until_match
from .variable import Derived, Span, Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..grammar.spec import Spec
    from ..runtime.messages import Output, Scored, Segment
    from .beside import Beside
    from .companion import Companion
    from .run import Run
    from .variable import Meta, Readable

    Decide = Callable[[Scored, Scored | None, int | None], tuple[int, tuple[float, ...]]]

Piece = str | RoleMark | Variable


class Branch:
    """See the module. `path` is the (fork number, child number) pairs from the root, `origin` the parent and its length then."""

    def __init__(
        self,
        run: Run,
        path: tuple[int, ...] = (),
        origin: tuple[Branch, int] | None = None,
        companion: Companion = ALONE,
    ) -> None:
        self.run = run
        self.companion = companion
        self.path = path
        self.pieces: list[Piece] = []
        self.variables: dict[str, Readable] = {}
        self.last: Variable | None = None  # whatever follows depends on it
        self.open_role: str | None = None
        self.is_closed = False
        self.error: BaseException | None = None  # why the backend has no such branch
        self.outbox = Outbox(run.backend, run.namespace, run.strict_text)
        self._origin = origin
        self._inherited: dict[str, Readable] = {}
        self.children: list[Branch] = []  # forked from here, joined or not
        self._num_gens = self._num_forks = 0
        run.branches[self] = None

    # ------------------------------------------------------------------------------------ recording

    def add_text(self, text: str) -> None:
        """Constant text at the end."""
        with self.run.lock:
            self._check_open()
            check_text(text)
            self.pieces.append(text)
            self.companion.text(text)
            self.outbox.do(partial(self.outbox.add, Text(text)))

    def begin_role(self, role: str) -> None:
        """Open a chat message."""
        with self.run.lock:
            self._check_open()
            check_text(role)
            check_begin(role, self.open_role)
            self.open_role = role
            self.pieces.append(RoleMark(role, begins=True))
            self.companion.role(role, begins=True)
            self.outbox.do(partial(self.outbox.add, RoleBegin(role)))

    def end_role(self, role: str) -> None:
        """Close the open chat message."""
        with self.run.lock:
            self._check_open()
            check_end(role, self.open_role)
            self.open_role = None
            self.pieces.append(RoleMark(role, begins=False))
            self.companion.role(role, begins=False)
            self.outbox.do(partial(self.outbox.add, RoleEnd(role)))

    def generate(
        self,
        name: str | None,
        options: Mapping[str, object],
        constraint: Spec | None,
        decode: Callable[[Output], object],
        beside: Beside | None = None,
    ) -> None:
        """Continue by sampling; the result is filed under `name`, or gen_0, gen_1, ... by its number on the branch.

        With `beside` it is asked on a copy of the branch, and what comes of it is appended here.
        """
        with self.run.lock:
            self._check_open()
            merged: dict[str, Any] = {**self.run.options, **options}
            stop_regex = merged.pop("stop_regex", None)
            if stop_regex is not None and constraint is None:
                constraint = until_match(stop_regex)
            sampling = build_params({}, merged, self._next_seed())
            is_json = isinstance(constraint, JsonSchema)
            variable = self._promise(name, "gen", decode, sampling.n, is_json)
            hints = self.companion.generating(variable, sampling, constraint)
            work: Callable[[], object]
            if beside is not None:
                variable.turn = Future()
                work = partial(send_beside, self, variable, sampling, constraint, beside)
            else:
                work = partial(send_generate, self, variable, sampling, constraint, hints)
            self.outbox.do(work)

    def choose(
        self, name: str | None, choices: Sequence[str], decide: Decide, *, unconditional: bool
    ) -> None:
        """Append the choice that `decide` takes; filed under `name`, or select_0, ..."""
        with self.run.lock:
            self._check_open()
            seed = self._next_seed()

            def rank(scored: Scored, alone: Scored | None) -> tuple[int, tuple[float, ...]]:
                return decide(scored, alone, seed)

            variable = self._promise(name, "select", text_of, 1)
            hints = self.companion.choosing(variable, choices)
            work = partial(send_score, self, variable, tuple(choices), rank, unconditional, hints)
            self.outbox.do(work)

    def also(self, suffix: str, read: Callable[[Meta], object]) -> None:
        """File what `read` finds in the meta data of the result asked last."""
        with self.run.lock:
            if self.last is not None:
                self.variables[f"{self.last.name}{suffix}"] = Derived(self.last, read)

    def fork(self, num_children: int) -> list[Branch]:
        """Children that continue from here, made by one message."""
        with self.run.lock:
            self._check_open()
            fork_number, self._num_forks = self._num_forks, self._num_forks + 1
            origin = (self, len(self.pieces))
            companions = self.companion.forked(num_children)
            children = [
                Branch(self.run, (*self.path, fork_number, i), origin, companion)
                for i, companion in enumerate(companions)
            ]
            for child in children:
                child.last, child.open_role = self.last, self.open_role
                child.inherit(self.variables)
                child.outbox.is_held = True
            self.children += children
            self.outbox.do(partial(send_fork, self, children, user_place()), num_children)
            return children

    def inherit(self, variables: Mapping[str, Readable]) -> None:
        """Take over a parent's variables; what it sets later stays its own."""
        self._inherited = {
            name: each.until_now() if isinstance(each, Span) else each
            for name, each in variables.items()
        }
        self.variables = dict(self._inherited)

    # ------------------------------------------------------------------------------------ reading

    def own_variables(self) -> tuple[str, ...]:
        """Names set on this branch itself."""
        inherited = self._inherited
        return tuple(n for n, each in self.variables.items() if inherited.get(n) is not each)

    def all_pieces(self) -> Iterator[Piece]:
        """Every piece from the root on."""
        sources: list[tuple[Branch, int]] = [(self, len(self.pieces))]
        while (origin := sources[-1][0]._origin) is not None:
            sources.append(origin)
        return chain.from_iterable(b.pieces[:length] for b, length in reversed(sources))

    def text_so_far(self, before: Variable | None = None) -> str:
        """The text that is known now, up to the first open result (or to `before`)."""
        known: list[str] = []
        for piece in self.all_pieces():
            if isinstance(piece, Variable):
                if piece is before or not piece.done.done() or piece.failure is not None:
                    break
                known.append(piece.text)
            elif isinstance(piece, str):
                known.append(piece)
        return "".join(known)

    def segments_before(self, variable: Variable) -> list[Segment]:
        """All of the branch up to a variable, as it would be written anew. Results before it must be there."""
        segments: list[Segment] = []
        for piece in self.all_pieces():
            if piece is variable:
                break
            if isinstance(piece, RoleMark):
                segments.append(RoleBegin(piece.role) if piece.begins else RoleEnd(piece.role))
            else:
                segments.append(Text(piece if isinstance(piece, str) else piece.text))
        return [each for each in segments if not isinstance(each, Text) or each.text]

    def message_before(self, variable: Variable) -> MessageSoFar:
        """The chat message in which a variable stands, as far as it goes before it. Results before it must be there."""
        role, text = None, ""
        for piece in self.all_pieces():
            if piece is variable:
                break
            if isinstance(piece, RoleMark):
                role, text = (piece.role if piece.begins else None), ""
            else:
                text += piece if isinstance(piece, str) else piece.text
        return MessageSoFar(role, text)

    def close(self) -> None:
        """Nothing more can be added; the backend forgets the branch."""
        with self.run.lock:
            if not self.is_closed:
                self.is_closed = True
                self.companion.closed()
                self.run.branches.pop(self, None)
                self.outbox.close()

    # ------------------------------------------------------------------------------------ small parts

    def _promise(
        self,
        name: str | None,
        kind: str,
        decode: Callable[[Output], object],
        num_outputs: int,
        is_json: bool = False,
    ) -> Variable:
        if name is None:
            name = f"{kind}_{self._num_gens - 1}"
        variable = Variable(name, user_place(), self.last, decode, num_outputs, is_json)
        self.pieces.append(variable)
        self.variables[name] = variable
        self.last = variable
        self.run.open[variable] = None
        if self.run.retries:
            variable.turn = Future()
        return variable

    def _next_seed(self) -> int | None:
        ordinal, self._num_gens = self._num_gens, self._num_gens + 1
        run_seed = self.run.seed
        return None if run_seed is None else derive_seed(run_seed, self.path, ordinal)

    def _check_open(self) -> None:
        if self.is_closed:
            raise ProgramError(
                "this branch has ended",
                hint="Append before its run returns, or before the join of its group",
            )
