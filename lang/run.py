"""What the branches of one run share.

Owns the run's backend, default options, seed, deadline and lock, the list of what is open and what failed, and the orderly end: settle,
abort, close. Must not know how a thread or greenlet waits (a function given from outside), nor program bodies.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from ..errors import Aborted, RadixError, TimedOut
from ..runtime.messages import Abort, Usage, sum_usage
from .variable import Failure

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Mapping

    from .backend import Backend
    from .branch import Branch
    from .news import News
    from .variable import Variable


_FIRST_REST_S, _LONGEST_REST_S = 0.05, 5.0


class Run:
    """One execution of a program on a backend.

    `timeout_s` counts from creation. `wait(future, deadline)` returns when the future is done or the monotonic deadline has passed.
    """

    def __init__(
        self,
        backend: Backend,
        wait: Callable[[Future[Any], float | None], None],
        *,
        options: Mapping[str, Any],
        seed: int | None = None,
        timeout_s: float | None = None,
        namespace: str = "",
        strict_text: bool = False,
        retries: int = 0,
    ) -> None:
        self.backend = backend
        self.options = options
        self.seed = seed
        self.namespace = namespace
        self.strict_text = strict_text
        self.retries = retries  # of a request that failed for a passing reason
        self.lock = threading.RLock()
        self.branches: dict[Branch, None] = {}  # open ones, oldest first
        self.open: dict[Variable, None] = {}  # promised and not done, oldest first
        self.failures: list[Failure] = []
        self.usage = Usage()
        self.error: BaseException | None = None
        self.ret_value: Any = None  # of the program's function
        self.index: int | None = None  # of its item, in a batch
        self.is_over = False
        self.news: News | None = None  # of a live run: who watches it looks there
        self.loop: AbstractEventLoop | None = None  # of an awaited run: async tools run on it
        self._left: deque[Callable[[], None]] = deque()  # for the program's thread
        self._wait = wait
        self._timeout_s = timeout_s
        self._began_s = time.monotonic()
        self._ended_s: float | None = None
        is_bounded = (
            timeout_s is not None and timeout_s < threading.TIMEOUT_MAX
        )  # no lock waits longer
        self._deadline = time.monotonic() + timeout_s if timeout_s and is_bounded else None

    @property
    def time_s(self) -> float:
        """Seconds from the beginning to the end, or until now."""
        return (self._ended_s or time.monotonic()) - self._began_s

    def wait_for(self, variable: Variable) -> None:
        """Until the variable is done. TimedOut past the run's deadline."""
        if variable.done.done():
            return
        for each in (*variable.pending_before(), variable):
            self._wait_for_one(each)

    def _wait_for_one(self, variable: Variable) -> None:
        while not variable.done.done():
            turn = variable.turn or variable.done
            self._wait(turn, self._deadline)
            if turn.done():
                self._do_what_is_left()
                continue
            error = TimedOut(
                f"{variable.name!r} had no result within the run's {self._timeout_s} s",
                place="timeout_s",
            )
            error.add_note(f"waiting for {variable.name!r}, submitted at {variable.place}")
            raise error

    def later(self, variable: Variable, work: Callable[[], None]) -> None:
        """Something is to be done on the program's thread before the variable can be done."""
        self._left.append(work)
        variable.ring()
        self.tell()

    def _do_what_is_left(self) -> None:
        while self._left:
            self._left.popleft()()

    def rest(self, num_failures: int) -> None:
        """Wait before a request is sent again, longer each time, letting other programs run."""
        self.wait(Future(), min(_FIRST_REST_S * 2.0 ** (num_failures - 1), _LONGEST_REST_S))

    def count(self, usage: Usage) -> None:
        """A request used so many tokens."""
        self.usage = sum_usage((self.usage, usage))

    def wait(self, future: Future[Any], timeout_s: float | None = None) -> bool:
        """Until something outside the backend is there, letting other programs run; False after `timeout_s`. TimedOut past the run's deadline."""
        deadline = self._deadline
        if timeout_s is not None:
            own = time.monotonic() + timeout_s
            deadline = own if deadline is None else min(own, deadline)
        self._wait(future, deadline)
        if not future.done() and deadline is not None and deadline == self._deadline:
            raise TimedOut(
                f"the run had not ended within its {self._timeout_s} s", place="timeout_s"
            )
        return future.done()

    def settle(self) -> None:
        """Until nothing is open; raise the first failure that nobody has seen."""
        while True:
            with self.lock:
                variable = next(iter(self.open), None)
            if variable is None:
                break
            self.wait_for(variable)
        for failure in self.failures:
            if not failure.seen:
                failure.throw()

    def abort(self, error: BaseException) -> None:
        """Stop everything that is open; who reads one of those variables later gets `error`'s name."""
        self.error = error
        with self.lock:
            stopped = list(self.open)
            for variable in stopped:  # before the backend can answer that it aborted them
                variable.fail(Failure(_stopped(variable, error), seen=True, is_of_the_run=True))
            for variable in stopped:
                if variable.request:
                    self._send_quietly(Abort(variable.request))
            self.open.clear()
        self.tell()

    def close(self) -> None:
        """Close every branch that is still open."""
        with self.lock:
            self.is_over = True
            self._ended_s = self._ended_s or time.monotonic()
            for branch in list(self.branches):
                branch.close()

    def tell(self) -> None:
        """Have those who watch the run look again."""
        if self.news is not None:
            self.news.ring()

    def _send_quietly(self, message: Abort) -> None:
        try:
            self.backend.send(message)
        except RadixError:
            return  # the backend is gone, and with it the request


def _stopped(variable: Variable, error: BaseException) -> Aborted:
    stopped = Aborted(f"{variable.name!r} was stopped: the run ended with {error!r}")
    stopped.__cause__ = error
    stopped.add_note(f"it was submitted at {variable.place}")
    return stopped
