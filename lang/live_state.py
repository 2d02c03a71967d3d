"""The state of a run that goes on while it is read: what `program.run(..., stream=True)` returns.

Owns the user's view of a live run: iterators over new text, growing objects and everything, each in a plain and an async form over one
core (a cursor that looks, a live run that goes on). Must not know greenlets, messages or positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from ..errors import UnknownVariable
from .cursors import EventCursor, ObjectCursor, TextCursor, readable
from .reading import ReadableState

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from types import TracebackType

    from .cursors import Cursor
    from .live_run import LiveRun
    from .news import StreamEvent
    from .variable import Meta, Readable

T = TypeVar("T")


class LiveState(ReadableState):
    """A program that is running. Use it in a `with` block: leaving it ends the run, and whatever is still open is aborted.

    The program goes on while something here is read, in the thread that began it. Reading `s["x"]` waits until the program has set x and x
    has its value; `text`, `messages`, `ret_value` and `sync` wait for the end of the run. An error of the program raises in the iterator
    that meets it, at `finish()`, else at the end of the `with` block.
    """

    def __init__(self, live: LiveRun, body_state: ReadableState) -> None:
        super().__init__(body_state._branch)
        self._live = live

    def __enter__(self) -> LiveState:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        if error is None:
            self._live.raise_unseen()

    async def __aenter__(self) -> LiveState:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, trace)

    def close(self) -> None:
        """End the run now: what is open is aborted. What is finished stays readable. Nothing happens to a run that has ended."""
        self._live.close()

    # ------------------------------------------------------------------------------------ streams

    @overload
    def text_iter(
        self, var_name: str | None = None, *, return_meta_data: Literal[False] = False
    ) -> Generator[str]: ...
    @overload
    def text_iter(
        self, var_name: str | None = None, *, return_meta_data: Literal[True]
    ) -> Generator[tuple[str, Meta | None]]: ...
    def text_iter(
        self, var_name: str | None = None, *, return_meta_data: bool = False
    ) -> Generator[Any]:
        """New text as it comes. Joined, it is `s[var_name]` (the first, if n > 1), or without a name all of `s.text()`.

        The variable may be set by a gen, a select, a `var_scope` or by hand, now or later. With `return_meta_data` each item is a pair
        (text, meta): meta is None until the result is complete; the last pair, whose text may be "", has its Meta.
        """
        pairs = self._items(TextCursor(self._live, self._branch, var_name))
        return pairs if return_meta_data else (text for text, _ in pairs if text)

    @overload
    def text_async_iter(
        self, var_name: str | None = None, *, return_meta_data: Literal[False] = False
    ) -> AsyncGenerator[str]: ...
    @overload
    def text_async_iter(
        self, var_name: str | None = None, *, return_meta_data: Literal[True]
    ) -> AsyncGenerator[tuple[str, Meta | None]]: ...
    def text_async_iter(
        self, var_name: str | None = None, *, return_meta_data: bool = False
    ) -> AsyncGenerator[Any]:
        """As `text_iter`, on the running asyncio loop: while nothing comes other tasks run."""
        pairs = self._items_async(TextCursor(self._live, self._branch, var_name))
        return pairs if return_meta_data else (text async for text, _ in pairs if text)

    def object_iter(self, var_name: str) -> Generator[Any]:
        """The value of a gen with `schema=` or `json_schema=` while it grows, each time there is more of it.

        Values are dicts, lists, texts and numbers as far as they are written: strings and lists grow, numbers come when they are
        complete. The last one is the result: an instance of the schema, or the parsed JSON. OutputError if that cannot be had.
        """
        return self._items(ObjectCursor(self._live, self._branch, var_name))

    def object_async_iter(self, var_name: str) -> AsyncGenerator[Any]:
        """As `object_iter`, on the running asyncio loop."""
        return self._items_async(ObjectCursor(self._live, self._branch, var_name))

    def event_iter(self) -> Generator[StreamEvent]:
        """Everything as it comes: new text of every gen and select, in every fork, until the run has ended."""
        return self._items(EventCursor(self._live))

    def event_async_iter(self) -> AsyncGenerator[StreamEvent]:
        """As `event_iter`, on the running asyncio loop."""
        return self._items_async(EventCursor(self._live))

    # ------------------------------------------------------------------------------------ to the end

    def finish(self) -> LiveState:
        """Let the program run to its end; raises what made it fail."""
        self._go_on_until(lambda: False)
        self._live.raise_error()
        return self

    async def afinish(self) -> LiveState:
        """As `finish`, on the running asyncio loop."""
        async for _ in self.event_async_iter():
            pass
        self._live.raise_error()
        return self

    def sync(self) -> LiveState:
        """As `finish`."""
        return self.finish()

    @property
    def ret_value(self) -> Any:
        """What the program's function returned; waits for the end of the run."""
        self.finish()
        return super().ret_value

    def text(self) -> str:
        """All of the text; waits for the end of the run."""
        self.finish()
        return super().text()

    def messages(self) -> list[dict[str, str]]:
        """The chat messages, each {"role", "content"}; waits for the end of the run."""
        self.finish()
        return super().messages()

    # ------------------------------------------------------------------------------------ small parts

    def _readable(self, name: str) -> Readable:
        self._go_on_until(lambda: name in self._branch.variables)
        found = readable(self._live, self._branch, name)
        if found is None:
            raise UnknownVariable(f"nothing has set the variable {name!r}", place=name)
        return found

    def _go_on_until(self, is_enough: Callable[[], bool]) -> None:
        live = self._live
        while True:
            num_seen = live.news.num_rung
            live.go_on()
            if is_enough() or live.is_over:
                return
            live.wait(num_seen)

    def _items(self, cursor: Cursor[T]) -> Generator[T]:
        live = self._live
        while True:
            num_seen = live.news.num_rung
            live.go_on()
            items = cursor.take()
            yield from items
            if cursor.is_over:
                break
            if not items:
                live.wait(num_seen)
        live.go_on()  # an error right behind it is not left to chance
        live.raise_unseen()

    async def _items_async(self, cursor: Cursor[T]) -> AsyncGenerator[T]:
        live = self._live
        while True:
            num_seen = live.news.num_rung
            live.go_on()
            items = cursor.take()
            for item in items:
                yield item
            if cursor.is_over:
                break
            if not items:
                await live.wait_async(num_seen)
        live.go_on()
        live.raise_unseen()
