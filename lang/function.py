"""`@function`: a plain Python function over a state becomes a program that runs on any backend.

Owns the Program class and what its callers may say: run, run_batch, arun, bind. Must not know branches, messages or greenlets; what a run
needs is imported when something runs, so that defining programs stays light.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, overload

from ..errors import ProgramError
from .backend import as_backend
from .sampling import OPTION_NAMES, clean_options, derive_seed

if TYPE_CHECKING:
    from .backend import Backend, HasBackend
    from .interpreter import Call
    from .state import State

_MAX_LIVE = 256  # enough to keep any batch full; more would only queue in the engine
_RUN_NAMES = frozenset({"backend", "timeout_s", "seed", "namespace", "strict_text"})
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Program:
    """A program. Call `run` to execute it; calling it with a state, inside another program, runs it in place."""

    def __init__(self, body: Callable[..., Any], bound: Mapping[str, Any] | None = None) -> None:
        """ProgramError if `body` is async, a generator, takes no state, or calls a parameter as an option of `run`."""
        if inspect.iscoroutinefunction(body) or inspect.isgeneratorfunction(body):
            raise ProgramError(
                f"{body.__qualname__} is async or a generator",
                hint="Write a plain function; `await program.arun(...)` runs it on an asyncio loop",
            )
        parameters = list(inspect.signature(body).parameters.values())
        if not parameters or parameters[0].kind is inspect.Parameter.KEYWORD_ONLY:
            raise ProgramError(
                f"{body.__qualname__} takes no state", hint="Its first parameter is `s`"
            )
        for parameter in parameters[1:]:
            if parameter.name in _RUN_NAMES and parameter.kind in _BY_NAME:
                raise ProgramError(
                    f"the parameter {parameter.name!r} of {body.__qualname__} is an option of its runs",
                    place=parameter.name,
                    hint="Give it another name",
                )
        self._body = body
        self._parameters = frozenset(p.name for p in parameters[1:])
        self._bound = dict(bound or {})
        update_wrapper(self, body)

    def __repr__(self) -> str:
        return f"<program {self._body.__qualname__}>"

    def __call__(self, s: State, *args: Any, **kwargs: Any) -> Any:
        """Run the body on the state of another program, in place; returns what it returns."""
        from .state import State

        if not isinstance(s, State):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ProgramError(f"{self!r} was called without a state", hint="Use .run(...)")
        own = {name: value for name, value in self._bound.items() if name in self._parameters}
        return self._body(s, *args, **{**own, **kwargs})

    def bind(self, **kwargs: Any) -> Program:
        """The same program with arguments of its function, or options of its runs, given in advance; a run may override them."""
        self._split(kwargs)
        return Program(self._body, {**self._bound, **kwargs})

    def run(
        self,
        *args: Any,
        backend: Backend | HasBackend | None = None,
        timeout_s: float | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> State:
        """Execute in the calling thread; returns the finished state.

        `args` and `kwargs` go to the function; sampling arguments (`temperature=`, `max_tokens=`, ... as for `gen`) that are not among
        its parameters are defaults for its gens. `timeout_s` is in seconds, for the whole run. With `seed`, every gen gets a seed of its
        own, derived from it and the gen's place, so the run can be repeated and forks differ. `namespace=` keeps the run's cache apart;
        `strict_text=True` refuses characters that no token spells.

        Raises what the body raises; a failure that nobody read raises at the end. Either way nothing stays open.
        """
        from .interpreter import execute

        given = {**kwargs, **_named(backend=backend, timeout_s=timeout_s, seed=seed)}
        return execute(self._call(args, given))

    async def arun(
        self,
        *args: Any,
        backend: Backend | HasBackend | None = None,
        timeout_s: float | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> State:
        """As `run`, on the running asyncio loop: reading a result lets other tasks run. Cancelling the task aborts the run."""
        from .interpreter import run_async

        given = {**kwargs, **_named(backend=backend, timeout_s=timeout_s, seed=seed)}
        return await run_async(self._call(args, given))

    def run_batch(
        self,
        batch: Sequence[Mapping[str, Any]],
        *,
        backend: Backend | HasBackend | None = None,
        timeout_s: float | None = None,
        seed: int | None = None,
        num_threads: int | str = "auto",
        **kwargs: Any,
    ) -> list[State]:
        """Execute once per item of `batch` (its keyword arguments), all on the calling thread; states in the order of the batch.

        One that fails does not disturb the others: its state's `.error()` is the exception, and reading what it did not set raises it.
        `timeout_s` holds for each; each gets its own seed, derived from `seed`. `num_threads` says how many programs are live at once
        (the name is SGLang's; no threads are made).
        """
        from .interpreter import run_many

        max_live = _MAX_LIVE if num_threads == "auto" else num_threads
        if not isinstance(max_live, int) or max_live < 1:
            raise ProgramError(f"num_threads={num_threads!r} is not a positive number")
        shared = {**kwargs, **_named(backend=as_backend(backend or self._bound.get("backend")))}
        for index, item in enumerate(batch):
            if not isinstance(item, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ProgramError(
                    f"{item!r:.80} is not a dict of arguments", place=f"batch[{index}]"
                )
            self._split(item)

        def calls() -> Any:
            for index, item in enumerate(batch):
                own_seed = None if seed is None else derive_seed(seed, (index,), 0)
                named = _named(timeout_s=timeout_s, seed=own_seed)
                yield self._call((), {**shared, **named, **item})

        return run_many(calls(), max_live)

    def _split(
        self, given: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Arguments of the function, sampling defaults, options of the run. A parameter of the function comes first."""
        own: dict[str, Any] = {}
        sampling: dict[str, Any] = {}
        of_run: dict[str, Any] = {}
        for name, value in given.items():
            if name in _RUN_NAMES:
                of_run[name] = value
            elif name in OPTION_NAMES and name not in self._parameters:
                sampling[name] = value
            else:
                own[name] = value
        return own, clean_options(sampling), of_run

    def _call(self, args: tuple[Any, ...], given: Mapping[str, Any]) -> Call:
        from .branch import Branch
        from .interpreter import Call, wait_for
        from .run import Run
        from .state import State

        own, sampling, of_run = self._split({**self._bound, **given})
        run = Run(
            as_backend(of_run.get("backend")),
            wait_for,
            options=sampling,
            seed=of_run.get("seed"),
            timeout_s=of_run.get("timeout_s"),
            namespace=of_run.get("namespace", ""),
            strict_text=of_run.get("strict_text", False),
        )
        return Call(run, State(Branch(run)), partial(_invoke, self._body, args, own))


@overload
def function(body: Callable[..., Any]) -> Program: ...
@overload
def function(body: None = None) -> Callable[[Callable[..., Any]], Program]: ...
def function(
    body: Callable[..., Any] | None = None,
) -> Program | Callable[[Callable[..., Any]], Program]:
    """Make a program of a function whose first parameter is the state: `@function def f(s, question): s += ... + gen("answer")`."""
    return Program if body is None else Program(body)


def _invoke(
    body: Callable[..., Any], args: tuple[Any, ...], own: Mapping[str, Any], s: State
) -> Any:
    return body(s, *args, **own)


def _named(**values: Any) -> dict[str, Any]:
    """The options that were given; None means not given."""
    return {name: value for name, value in values.items() if value is not None}
