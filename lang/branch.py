"""One branch of a run: what the program added to it and what came back.

Owns the record (pieces, variables, open role), and turns answers into settled variables. Recording is immediate and never waits; the
outbox sends. Must not know how anyone waits for a result, nor the order and number of messages on the wire.

    program thread:  add_text / generate / choose / fork --> record --> outbox.do(send)
    backend thread:  answer --> settle the variable --> (select: append the choice, release the outbox)

All of it under the run's lock.
"""

from __future__ import annotations

from concurrent.futures import CancelledError
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from ..errors import Aborted, ProgramError, RadixError, ServiceError
from ..grammar.spec import JsonSchema
from ..runtime.messages import Generate, Hints, RoleBegin, RoleEnd, Score, Text
from .chat import RoleMark, check_begin, check_end
from .companion import ALONE
from .constraints import text_of
from .news import StreamEvent
from .outbox import Outbox, neutral_start
from .place import user_place
from .plain_text import check_text
from .sampling import build_params, derive_seed
from .variable import Failure, Meta, Span, Variable, explain, sum_usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from ..grammar.spec import Spec
    from ..runtime.messages import Delta, Finished, Output, SamplingParams, Scored
    from .companion import Companion
    from .place import Place
    from .run import Run
    from .variable import Readable

    Decide = Callable[[Scored, Scored | None, int | None], tuple[int, tuple[float, ...]]]
    Ranked = Callable[[Scored, Scored | None], tuple[int, tuple[float, ...]]]

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
    ) -> None:
        """Continue by sampling; the result is filed under `name`, or gen_0, gen_1, ... by its number on the branch."""
        with self.run.lock:
            self._check_open()
            sampling = build_params(self.run.options, options, self._next_seed())
            is_json = isinstance(constraint, JsonSchema)
            variable = self._promise(name, "gen", decode, sampling.n, is_json)
            hints = self.companion.generating(variable, sampling, constraint)
            self.outbox.do(partial(self._send_generate, variable, sampling, constraint, hints))

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
            work = partial(self._send_score, variable, tuple(choices), rank, unconditional, hints)
            self.outbox.do(work)

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
            self.outbox.do(partial(self._send_fork, children, user_place()), num_children)
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

    def close(self) -> None:
        """Nothing more can be added; the backend forgets the branch."""
        with self.run.lock:
            if not self.is_closed:
                self.is_closed = True
                self.companion.closed()
                self.run.branches.pop(self, None)
                self.outbox.close()

    # ------------------------------------------------------------------------------------ sending

    def _send_generate(
        self,
        variable: Variable,
        sampling: SamplingParams,
        constraint: Spec | None,
        hints: Hints | None,
    ) -> None:
        def send() -> Sequence[Future[Finished]]:
            wire_id = self.outbox.wire_id
            is_live = self.run.news is not None
            message = Generate(
                variable.request,
                wire_id,
                sampling=sampling,
                constraint=constraint,
                stream=is_live,
                hints=hints or self.outbox.hints(),
            )
            if not is_live:
                return (self.run.backend.generate(message),)
            return (self.run.backend.generate(message, partial(self._grew, variable)),)

        for future in self._start(variable, send):
            future.add_done_callback(partial(self._generated, variable))

    def _send_score(
        self,
        variable: Variable,
        choices: tuple[str, ...],
        rank: Ranked,
        unconditional: bool,
        hints: Hints | None,
    ) -> None:
        backend = self.run.backend

        def send() -> Sequence[Future[Scored]]:
            known = hints or Hints()
            message = Score(variable.request, self.outbox.wire_id, choices, hints=known)
            futures = [backend.score(message)]
            if unconditional:
                alone = (neutral_start(backend.facts),)  # the choices without the text
                request = backend.new_id(variable.name)
                futures.append(backend.score(Score(request, None, choices, alone)))
            self.outbox.is_held = True
            return futures

        futures = self._start(variable, send)
        for future in futures:
            future.add_done_callback(partial(self._scored, variable, choices, rank, futures))

    def _send_fork(self, children: list[Branch], place: Place) -> None:
        for child in children:
            child.error = self.error
        if self.error is None and (self.last is None or self.last.failure is None):
            try:
                self.outbox.fork([child.outbox for child in children])
            except Exception as error:  # noqa: BLE001  raised where the program reads
                cause = explain(_as_radix(error), "forking", place, self.text_so_far())
                for child in children:
                    child.error = cause
        for child in children:
            child.outbox.release()

    def _start(
        self, variable: Variable, send: Callable[[], Sequence[Future[Any]]]
    ) -> Sequence[Future[Any]]:
        """Send a request, unless what it depends on has failed. Nothing was sent: no futures."""
        earlier = variable.before.failure if variable.before is not None else None
        if earlier is None and self.error is not None:
            earlier = self._failure(variable, self.error)
        if earlier is not None:
            self._fail(variable, earlier)
            return ()
        try:
            self.outbox.begin()
            self.outbox.flush()
            variable.request = self.run.backend.new_id(variable.name)
            return send()
        except Exception as error:  # noqa: BLE001  raised where the program reads
            self._fail(variable, self._failure(variable, _as_radix(error)))
            return ()

    # ------------------------------------------------------------------------------------ answers, on any thread

    def _grew(self, variable: Variable, delta: Delta) -> None:
        with self.run.lock:
            if delta.index == 0 and delta.text and not variable.done.done():
                self._tell(variable, delta.text)

    def _generated(self, variable: Variable, future: Future[Finished]) -> None:
        with self.run.lock:
            try:
                self._settle(variable, Meta.of(variable.name, future.result()))
            except BaseException as error:  # noqa: BLE001  raised where the program reads
                self._fail(variable, self._failure(variable, error))

    def _scored(
        self,
        variable: Variable,
        choices: tuple[str, ...],
        rank: Ranked,
        futures: Sequence[Future[Scored]],
        _: Future[Scored],
    ) -> None:
        with self.run.lock:
            if variable.done.done() or not all(future.done() for future in futures):
                return
            try:
                self._append_choice(variable, choices, rank, [f.result() for f in futures])
            except BaseException as error:  # noqa: BLE001  raised where the program reads
                self._fail(variable, self._failure(variable, error))
            self.outbox.release()

    def _append_choice(
        self, variable: Variable, choices: tuple[str, ...], rank: Ranked, scored: list[Scored]
    ) -> None:
        index, scores = rank(scored[0], scored[1] if len(scored) > 1 else None)
        meta = Meta(
            name=variable.name,
            finish_reason="choice",
            usage=sum_usage([each.usage for each in scored]),
            token_ids=scored[0].token_ids[index],
            scores=dict(zip(choices, scores, strict=True)),
        )
        self.outbox.add(Text(choices[index]))
        self._settle(variable, meta, choices[index])

    def _settle(self, variable: Variable, meta: Meta, chosen: str | None = None) -> None:
        if variable.done.done():
            return  # the run was aborted meanwhile
        self.run.usage = sum_usage((self.run.usage, meta.usage))
        self.run.open.pop(variable, None)
        variable.settle(meta, chosen)
        if variable.failure is None:
            self._tell(variable, variable.text[sum(map(len, variable.streamed or ())) :], meta)
        self.run.tell()

    def _fail(self, variable: Variable, failure: Failure) -> None:
        self.run.open.pop(variable, None)
        variable.fail(failure)
        if variable.before is None or variable.before.failure is None:
            self.run.failures.append(failure)
        self.run.tell()

    def _tell(self, variable: Variable, text: str, meta: Meta | None = None) -> None:
        """To those who watch the run."""
        if self.run.news is None:
            return
        if text:
            variable.streamed = variable.streamed or []
            variable.streamed.append(text)
        self.run.news.add(StreamEvent(variable.name, self.path, text, meta))

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
        return variable

    def _failure(self, variable: Variable, error: BaseException) -> Failure:
        if isinstance(error, CancelledError):
            error = Aborted("the request was cancelled")
        doing = f"running {variable.name!r}"
        return Failure(explain(error, doing, variable.place, self.text_so_far(variable)))

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


def _as_radix(error: Exception) -> RadixError:
    if isinstance(error, RadixError):
        return error
    own = ServiceError(f"the backend could not take the request: {error!r}")
    own.__cause__ = error
    return own
