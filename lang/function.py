"""`@function`: a plain Python function over a state becomes a program that runs on any backend.

Owns the Program class: run, arun, run_batch, arun_batch, bind. What may be said to it is `arguments.py`'s, the options of a batch are
`batch.py`'s. Must not know branches, messages or greenlets; what a run needs is imported when something runs, so that defining programs
stays light.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, overload

from ..errors import ProgramError
from .arguments import Arguments
from .backend import as_backend
from .sampling import derive_seed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Coroutine, Generator, Iterator
    from concurrent.futures import Future
    from contextlib import AbstractContextManager
    from pathlib import Path

    # a bare `Program` is one of any parameters
    from typing_extensions import ParamSpec, TypeVar

    from .backend import Backend, HasBackend
    from .batch import BatchProgress
    from .companion import Companion
    from .compiler.compiled import CompiledProgram
    from .compiler.drawing import Drawing
    from .interpreter import Call
    from .live_state import LiveState
    from .state import State

    P = ParamSpec("P", default=...)
    R = TypeVar("R", default=Any)
else:
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")


class Program(Generic[P, R]):
    """A program. Call `run` to execute it; calling it with a state, inside another program, runs it in place."""

    def __init__(
        self, body: Callable[Concatenate[State, P], R], bound: Mapping[str, Any] | None = None
    ) -> None:
        """ProgramError if `body` is async, a generator, takes no state, or calls a parameter as an option of `run`."""
        self._body = body
        self._arguments = Arguments(body)
        self._bound = dict(bound or {})
        update_wrapper(self, body)

    def __repr__(self) -> str:
        return f"<program {self._arguments.name}>"

    def __call__(self, s: State, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the body on the state of another program, in place; returns what it returns. ProgramError for wrong arguments."""
        from .state import State

        if not isinstance(s, State):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ProgramError(f"{self!r} was called without a state", hint="Use .run(...)")
        filled = self._arguments.by_position(len(args))
        own = {
            name: value
            for name, value in self._bound.items()
            if name in self._arguments.names and name not in filled
        }
        given = {**own, **kwargs}
        self._arguments.check(args, given)
        body: Callable[..., R] = self._body  # bound arguments need not be given
        return body(s, *args, **given)

    def compile(self, *args: Any, **kwargs: Any) -> CompiledProgram[P, R]:
        """The same program with a plan of what it does, found by running its body a few times on placeholders for results.

        `args` and `kwargs` are a sample of what it will be run with. Results do not depend on the plan: it tells the runtime what comes
        next, and lets the items of a batch share what is equal. Do not compile a function that does something besides.
        """
        from .compiler.compiled import CompiledProgram

        return CompiledProgram(self._body, self._bound, (args, kwargs))

    def graph(self, *args: Any, **kwargs: Any) -> Drawing:
        """What the program does with these arguments, as a graph: `print` it, or `.svg()`. See `compile`."""
        return self.compile(*args, **kwargs).drawing

    def save(self, path: str | Path, *args: Any, **kwargs: Any) -> None:
        """Write what the program does to a file of JSON, from which `Program.load` makes a program without this one's Python.

        `args` and `kwargs` are a sample of its arguments, each a text; bound ones are saved as they are, options of runs are not. It is traced as by
        `compile`. ProgramError, with its line, for a program that cannot be saved because it may do something else for other texts.
        """
        from .compiler.saving import script_of
        from .compiler.script import write

        write(script_of(Program(self._body, self._bound), args, kwargs), path)

    @staticmethod
    def load(path: str | Path) -> Program[..., Any]:
        """The program in a file that `save` wrote. ConfigError, with its place, for a file that is damaged or of another version."""
        from .compiler.playing import load

        return load(path)

    def bind(self, **kwargs: Any) -> Program[..., R]:
        """The same program with arguments of its function, or options of its runs, given in advance; a run may override them."""
        self._arguments.split(kwargs)
        return self._with({**self._bound, **kwargs})

    def _with(self, bound: Mapping[str, Any]) -> Program[..., R]:
        return Program(self._body, bound)

    @overload
    def run(
        self,
        *args: Any,
        stream: Literal[False] = ...,
        backend: Backend | HasBackend | None = ...,
        timeout_s: float | None = ...,
        seed: int | None = ...,
        **kwargs: Any,
    ) -> State: ...
    @overload
    def run(
        self,
        *args: Any,
        stream: Literal[True],
        backend: Backend | HasBackend | None = ...,
        timeout_s: float | None = ...,
        seed: int | None = ...,
        **kwargs: Any,
    ) -> LiveState: ...
    def run(
        self,
        *args: Any,
        stream: bool = False,
        backend: Backend | HasBackend | None = None,
        timeout_s: float | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> State | LiveState:
        """Execute in the calling thread; returns the finished state, or with `stream=True` at once one to read while it runs.

        `args` and `kwargs` go to the function; sampling arguments (`temperature=`, `max_tokens=`, ... as for `gen`) that are not among
        its parameters are defaults for its gens. `timeout_s` is in seconds, for the whole run. With `seed`, every gen gets a seed of its
        own, derived from it and the gen's place, so the run can be repeated and forks differ. `namespace=` keeps the run's cache apart;
        `strict_text=True` refuses characters that no token spells.

        Raises ProgramError for wrong arguments, and what the body raises; a failure that nobody read raises at the end. Either way
        nothing stays open. A live state raises where it is read: see `LiveState`.
        """
        from .interpreter import execute

        given = {**kwargs, **_named(backend=backend, timeout_s=timeout_s, seed=seed)}
        call = self._call(args, given)
        return _live(call) if stream else execute(call)

    @overload
    async def arun(
        self,
        *args: Any,
        stream: Literal[False] = ...,
        backend: Backend | HasBackend | None = ...,
        timeout_s: float | None = ...,
        seed: int | None = ...,
        **kwargs: Any,
    ) -> State: ...
    @overload
    async def arun(
        self,
        *args: Any,
        stream: Literal[True],
        backend: Backend | HasBackend | None = ...,
        timeout_s: float | None = ...,
        seed: int | None = ...,
        **kwargs: Any,
    ) -> LiveState: ...
    async def arun(
        self,
        *args: Any,
        stream: bool = False,
        backend: Backend | HasBackend | None = None,
        timeout_s: float | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> State | LiveState:
        """As `run`, on the running asyncio loop: reading a result lets other tasks run. Cancelling the task aborts the run."""
        from .interpreter import run_async

        given = {**kwargs, **_named(backend=backend, timeout_s=timeout_s, seed=seed)}
        call = self._call(args, given)
        return _live(call) if stream else await run_async(call)

    @overload
    def run_batch(
        self,
        batch: Sequence[Mapping[str, Any]],
        *,
        backend: Backend | HasBackend | None = ...,
        timeout_s: float | None = ...,
        seed: int | None = ...,
        num_threads: int | str = ...,
        progress_bar: bool | BatchProgress | None = ...,
        generator_style: Literal[False] = ...,
        **kwargs: Any,
    ) -> list[State]: ...
    @overload
    def run_batch(
        self,
        batch: Iterable[Mapping[str, Any]],
        *,
        backend: Backend | HasBackend | None = ...,
        timeout_s: float | None = ...,
        seed: int | None = ...,
        num_threads: int | str = ...,
        progress_bar: bool | BatchProgress | None = ...,
        generator_style: Literal[True],
        **kwargs: Any,
    ) -> Generator[State]: ...
    def run_batch(
        self,
        batch: Iterable[Mapping[str, Any]],
        *,
        backend: Backend | HasBackend | None = None,
        timeout_s: float | None = None,
        seed: int | None = None,
        num_threads: int | str = "auto",
        progress_bar: bool | BatchProgress | None = None,
        generator_style: bool = False,
        **kwargs: Any,
    ) -> list[State] | Generator[State]:
        """Execute once per item of `batch` (its keyword arguments), all on the calling thread; states in the order of the batch.

        One that fails does not disturb the others: its state's `.error()` is the exception, and reading what it did not set raises it.
        `timeout_s` holds for each; each gets its own seed, derived from `seed`. `num_threads` says how many programs are live at once
        (the name is SGLang's; no threads are made). `progress_bar`: None shows one where stderr is a terminal.

        With `generator_style` the states come as their runs end (`state.index` says which item), and `batch` may be any iterable: items
        are taken as there is room for them. Leaving the iteration aborts what is still running.

        Items and names are checked before anything runs (of an iterable: when they are taken); ProgramError names the place.
        """
        from .batch import in_order, states

        options = (backend, timeout_s, seed, num_threads, progress_bar, generator_style)
        parts = self._batch(batch, kwargs, *options)
        return states(*parts) if generator_style else in_order(states(*parts))

    @overload
    def arun_batch(
        self,
        batch: Sequence[Mapping[str, Any]],
        *,
        backend: Backend | HasBackend | None = ...,
        timeout_s: float | None = ...,
        seed: int | None = ...,
        num_threads: int | str = ...,
        progress_bar: bool | BatchProgress | None = ...,
        generator_style: Literal[False] = ...,
        **kwargs: Any,
    ) -> Coroutine[Any, Any, list[State]]: ...
    @overload
    def arun_batch(
        self,
        batch: Iterable[Mapping[str, Any]],
        *,
        backend: Backend | HasBackend | None = ...,
        timeout_s: float | None = ...,
        seed: int | None = ...,
        num_threads: int | str = ...,
        progress_bar: bool | BatchProgress | None = ...,
        generator_style: Literal[True],
        **kwargs: Any,
    ) -> AsyncGenerator[State]: ...
    def arun_batch(
        self,
        batch: Iterable[Mapping[str, Any]],
        *,
        backend: Backend | HasBackend | None = None,
        timeout_s: float | None = None,
        seed: int | None = None,
        num_threads: int | str = "auto",
        progress_bar: bool | BatchProgress | None = None,
        generator_style: bool = False,
        **kwargs: Any,
    ) -> Awaitable[list[State]] | AsyncGenerator[State]:
        """As `run_batch`, on the running asyncio loop: `await` the list, or with `generator_style` iterate by `async for`.

        Cancelling the task aborts all of them.
        """
        from .batch import arrivals, in_order_async

        options = (backend, timeout_s, seed, num_threads, progress_bar, generator_style)
        arriving = arrivals(*self._batch(batch, kwargs, *options))
        return arriving if generator_style else in_order_async(arriving)

    def _batch(
        self,
        batch: Iterable[Mapping[str, Any]],
        kwargs: Mapping[str, Any],
        backend: Backend | HasBackend | None,
        timeout_s: float | None,
        seed: int | None,
        num_threads: int | str,
        progress_bar: bool | BatchProgress | None,
        generator_style: bool,
    ) -> tuple[Any, int, Any]:
        """The calls of a batch, how many are live at once, and what shows their progress."""
        from .batch import max_live_of, progress_of

        self._arguments.check_batch(
            num_threads=num_threads, progress_bar=progress_bar, generator_style=generator_style
        )
        max_live = max_live_of(num_threads)
        inner = as_backend(self._bound.get("backend") if backend is None else backend)
        shared = {**kwargs, "backend": inner}
        self._arguments.split({**kwargs, **_named(timeout_s=timeout_s, seed=seed)})
        if isinstance(batch, Sequence):
            for index, item in enumerate(batch):
                self._check_item(index, item, shared)
        elif not generator_style:
            raise ProgramError(
                f"a batch is a list of dicts, not a {type(batch).__name__}",
                place="batch",
                hint="generator_style=True takes any iterable",
            )

        def calls() -> Iterator[Call]:
            with self._sharing(inner, batch) as asked:
                for index, item in enumerate(batch):
                    if not isinstance(batch, Sequence):
                        self._check_item(index, item, shared)
                    own_seed = None if seed is None else derive_seed(seed, (index,), 0)
                    named = _named(timeout_s=timeout_s, seed=own_seed)
                    call = self._call((), {**shared, "backend": asked, **named, **item})
                    call.run.index = index
                    yield call

        return calls(), max_live, progress_of(inner, batch, progress_bar)

    def _sharing(self, backend: Backend, batch: object) -> AbstractContextManager[Backend]:
        """What the runs of a batch ask, until its last item was taken."""
        return nullcontext(backend)

    def _companion(self, backend: Backend) -> Companion | None:
        """What goes along with a run that asks `backend`, unless another one is given."""
        return None

    def _check_item(self, index: int, item: object, shared: Mapping[str, Any]) -> None:
        if not isinstance(item, Mapping):
            raise ProgramError(f"{item!r:.80} is not a dict of arguments", place=f"batch[{index}]")
        try:
            own, _, _ = self._arguments.split({**self._bound, **shared, **item})
            self._arguments.check((), own)
        except ProgramError as error:
            error.place = f"batch[{index}].{error.place}".rstrip(".")
            raise

    def _call(
        self,
        args: tuple[Any, ...],
        given: Mapping[str, Any],
        wait: Callable[[Future[Any], float | None], None] | None = None,
        companion: Companion | None = None,
    ) -> Call:
        """One run, ready to be executed. `wait` replaces the way to wait, `companion` goes along with the program's own branch."""
        from .branch import Branch
        from .companion import ALONE
        from .interpreter import Call, wait_for
        from .run import Run
        from .state import State

        filled = self._arguments.by_position(len(args))
        bound = {name: value for name, value in self._bound.items() if name not in filled}
        own, sampling, of_run = self._arguments.split({**bound, **given})
        self._arguments.check(args, own)
        run = Run(
            as_backend(of_run.get("backend")),
            wait or wait_for,
            options=sampling,
            seed=of_run.get("seed"),
            timeout_s=of_run.get("timeout_s"),
            namespace=of_run.get("namespace", ""),
            strict_text=of_run.get("strict_text", False),
        )
        along = companion or self._companion(run.backend) or ALONE
        state = State(Branch(run, companion=along))
        return Call(run, state, partial(_invoke, self._body, args, own))


@overload
def function(body: Callable[Concatenate[State, P], R]) -> Program[P, R]: ...
@overload
def function(
    body: None = None,
) -> Callable[[Callable[Concatenate[State, P], R]], Program[P, R]]: ...
def function(
    body: Callable[Concatenate[State, P], R] | None = None,
) -> Program[P, R] | Callable[[Callable[Concatenate[State, P], R]], Program[P, R]]:
    """Make a program of a function whose first parameter is the state: `@function def f(s, question): s += ... + gen("answer")`."""
    return Program if body is None else Program(body)


def _live(call: Call) -> LiveState:
    from .live_run import LiveRun
    from .live_state import LiveState

    return LiveState(LiveRun(call), call.state)


def _invoke(
    body: Callable[..., Any], args: tuple[Any, ...], own: Mapping[str, Any], s: State
) -> Any:
    return body(s, *args, **own)


def _named(**values: Any) -> dict[str, Any]:
    """The options that were given; None means not given."""
    return {name: value for name, value in values.items() if value is not None}
