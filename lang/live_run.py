"""A program that runs while somebody reads what it writes, without a thread: whoever reads continues it.

Owns the body's greenlet, the rule when it goes on, and its end. Must not know messages, nor which part of the text is read.

    reader --> go_on: is what the body waits for there? continue it --> look for something new --> nothing: wait for the news' bell
                       |                                                                            ^
    backend's thread --'-- new text, answers: the news ring ----------------------------------------'

A greenlet belongs to its thread, so the body goes on in the thread where the run began; results are readable from all.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from greenlet import GreenletExit, getcurrent

from ..errors import ProgramError
from .interpreter import Pause, arrival, end_body, execute, left_early, new_body, wait_for
from .news import News

if TYPE_CHECKING:
    from .interpreter import Call


class LiveRun:
    """See the module. The body has run to its first pause when this returns. Dropped unfinished, the run is aborted."""

    def __init__(self, call: Call) -> None:
        self.run = call.run
        self.news = News()
        self._call = call
        self._unseen: BaseException | None = None
        self._thread = threading.get_ident()
        self._pause: Pause | None = None
        self._is_running = False
        call.run.news = self.news
        self._body = new_body(partial(execute, call))
        self._resume()

    @property
    def is_over(self) -> bool:
        """The body has ended, and everything it asked for."""
        return self._body.dead or self.run.is_over

    def go_on(self) -> None:
        """Continue the body if what it waits for is there, or late. Returns at once when it is not."""
        pause = self._pause
        if self.is_over or pause is None or self._is_running:
            return
        is_late = pause.deadline is not None and pause.deadline <= time.monotonic()
        if pause.future.done() or is_late:
            self._resume()

    def wait(self, num_seen: int) -> None:
        """Until there is something new since `news.num_rung` was `num_seen`."""
        pause = self._next_news(num_seen)
        if pause is not None:
            wait_for(pause.future, pause.deadline)

    async def wait_async(self, num_seen: int) -> None:
        """The same, letting other tasks of the running loop run."""
        pause = self._next_news(num_seen)
        if pause is not None:
            await arrival(pause)

    def raise_unseen(self) -> None:
        """Raise what ended the run, unless it was raised before."""
        error, self._unseen = self._unseen, None
        if error is not None:
            raise error

    def raise_error(self) -> None:
        """Raise what ended the run, if it failed."""
        self._unseen = None
        if self.run.error is not None:
            raise self.run.error

    def saw(self, error: BaseException) -> None:
        """The reader has this error: it is not raised a second time."""
        if self._unseen is error:
            self._unseen = None

    def close(self) -> None:
        """End the run now, unless it has ended: the body is left by an exception, requests are aborted, branches closed."""
        if self.is_over:
            return
        if threading.get_ident() == self._thread:
            end_body(self._body, self._call, GreenletExit())
        else:  # the body itself is freed in its own thread
            self.run.abort(left_early())
            self.run.close()

    def _next_news(self, num_seen: int) -> Pause | None:
        bell = self.news.bell(num_seen)
        if bell is None or self.is_over:
            return None
        return Pause(bell, self._pause.deadline if self._pause is not None else None)

    def _resume(self) -> None:
        if threading.get_ident() != self._thread:
            raise ProgramError(
                "a live run goes on in the thread that began it",
                hint="Read it there; on an asyncio loop use text_async_iter",
            )
        self._body.parent = getcurrent()
        self._is_running = True
        try:
            outcome: Any = self._body.switch()
        except Exception as error:  # noqa: BLE001  raised where the reader looks
            self._unseen = error
            outcome = None
        finally:
            self._is_running = False
            self.news.ring()  # the body may have added something
        if isinstance(outcome, Pause) and not self.is_over:
            self._pause = outcome
            outcome.future.add_done_callback(self.news.ring)
