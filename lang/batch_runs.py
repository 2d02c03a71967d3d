"""The half of a program that runs many items at once: run_batch and arun_batch.

Owns the check of items and options, and the calls of a batch. How many bodies share a thread is `crew.py`'s, the order of results and the progress
`batch.py`'s. Must not know branches, messages or greenlets; what a batch needs is imported when one runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal, overload

from ..errors import ProgramError
from .backend import as_backend
from .sampling import derive_seed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Iterator
    from concurrent.futures import Future
    from contextlib import AbstractContextManager

    from .arguments import Arguments
    from .backend import Backend, HasBackend
    from .batch import BatchProgress
    from .companion import Companion
    from .interpreter import Call
    from .state import State


class BatchRuns:
    """What `Program` is made of; see the module."""

    _arguments: Arguments
    _bound: dict[str, Any]

    def _call(
        self,
        args: tuple[Any, ...],
        given: Mapping[str, Any],
        wait: Callable[[Future[Any], float | None], None] | None = None,
        companion: Companion | None = None,
    ) -> Call:
        """One run, ready to be executed."""
        raise NotImplementedError

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
        self._arguments.split({**kwargs, **named(timeout_s=timeout_s, seed=seed)})
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
                    own = named(timeout_s=timeout_s, seed=own_seed)
                    call = self._call((), {**shared, "backend": asked, **own, **item})
                    call.run.index = index
                    yield call

        return calls(), max_live, progress_of(inner, batch, progress_bar)

    def _sharing(self, backend: Backend, batch: object) -> AbstractContextManager[Backend]:
        """What the runs of a batch ask, until its last item was taken."""
        return nullcontext(backend)

    def _check_item(self, index: int, item: object, shared: Mapping[str, Any]) -> None:
        if not isinstance(item, Mapping):
            wanted = ", ".join(f"{name!r}: ..." for name in sorted(self._arguments.names))
            raise ProgramError(
                f"{item!r:.80} is not a dict of arguments",
                place=f"batch[{index}]",
                hint=f"Write {{{wanted}}} for each item",
            )
        try:
            own, _, _ = self._arguments.split({**self._bound, **shared, **item})
            self._arguments.check((), own)
        except ProgramError as error:
            error.place = f"batch[{index}].{error.place}".rstrip(".")
            raise


def named(**values: Any) -> dict[str, Any]:
    """The options that were given; None means not given."""
    return {name: value for name, value in values.items() if value is not None}
