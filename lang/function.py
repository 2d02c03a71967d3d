"""`@function`: a plain Python function over a state becomes a program that runs on any backend.

Owns the Program class: run, arun, bind, compile, save. What may be said to it is `arguments.py`'s, its batches are `batch_runs.py`'s. Must not
know branches, messages or greenlets; what a run needs is imported when something runs, so that defining programs stays light.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, overload

from ..errors import ProgramError
from .arguments import Arguments
from .backend import as_backend, speculating
from .batch_runs import BatchRuns, named
from .warming import cache_beginning

if TYPE_CHECKING:
    from concurrent.futures import Future
    from pathlib import Path

    # a bare `Program` is one of any parameters
    from typing_extensions import ParamSpec, TypeVar

    from .backend import Backend, HasBackend
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


class Program(BatchRuns, Generic[P, R]):
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

    trace = graph  # SGLang's name
    cache = cache_beginning

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
        `strict_text=True` refuses characters that no token spells. `retries=n` asks again, up to n times each, for what failed for a
        passing reason (an engine that is restarted, a full queue), unless a part of it was already streamed.

        Raises ProgramError for wrong arguments, and what the body raises; a failure that nobody read raises at the end. Either way
        nothing stays open. A live state raises where it is read: see `LiveState`.
        """
        from .interpreter import execute

        given = {**kwargs, **named(backend=backend, timeout_s=timeout_s, seed=seed)}
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

        given = {**kwargs, **named(backend=backend, timeout_s=timeout_s, seed=seed)}
        call = self._call(args, given)
        return _live(call) if stream else await run_async(call)

    def _companion(self, backend: Backend) -> Companion | None:
        """What goes along with a run that asks `backend`, unless another one is given."""
        return None

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
            speculating(as_backend(of_run.get("backend")), of_run.get("num_api_spec_tokens")),
            wait or wait_for,
            options=sampling,
            seed=of_run.get("seed"),
            timeout_s=of_run.get("timeout_s"),
            namespace=of_run.get("namespace", ""),
            strict_text=of_run.get("strict_text", False),
            retries=of_run.get("retries") or 0,
        )
        along = companion or self._companion(run.backend) or ALONE
        state = State(Branch(run, companion=along))
        return Call(run, state, partial(_invoke, self._body, args, own))


@overload
def function(body: Callable[Concatenate[State, P], R]) -> Program[P, R]: ...
@overload
def function(
    body: None = None, *, num_api_spec_tokens: int | None = ...
) -> Callable[[Callable[Concatenate[State, P], R]], Program[P, R]]: ...
def function(
    body: Callable[Concatenate[State, P], R] | None = None,
    *,
    num_api_spec_tokens: int | None = None,
) -> Program[P, R] | Callable[[Callable[Concatenate[State, P], R]], Program[P, R]]:
    """Make a program of a function whose first parameter is the state: `@function def f(s, question): s += ... + gen("answer")`.

    `num_api_spec_tokens`: on a remote server one call may write so many tokens; see `lang.backend.speculating`.
    """
    bound = {} if num_api_spec_tokens is None else {"num_api_spec_tokens": num_api_spec_tokens}
    return partial(Program, bound=bound) if body is None else Program(body, bound)


def _live(call: Call) -> LiveState:
    from .live_run import LiveRun
    from .live_state import LiveState

    return LiveState(LiveRun(call), call.state)


def _invoke(
    body: Callable[..., Any], args: tuple[Any, ...], own: Mapping[str, Any], s: State
) -> Any:
    return body(s, *args, **own)
