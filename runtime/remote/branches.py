"""The branches of a remote backend, kept on this side: what each holds, and what waits on it.

    a branch = its pieces so far + a queue of messages; a request holds what is behind it, a fork copies (references, not text)

Owns the promises of `lang.backend`: the messages of one branch are carried out in order; when a request fails, what follows on its branch
fails with the same error, and so do the forks of that branch. Runs on one thread, starts nothing: a request whose turn has come is handed
to `start`, which calls `answered` or `failed` once. Knows no server.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from ...errors import ProgramError
from .. import messages as m
from .adapter import OnDelta
from .prompts import Piece
from .speculation import Ahead


@dataclass(slots=True, eq=False)
class Job:
    """A request and where its answer goes."""

    message: m.Generate | m.Score
    future: Future[Any]
    on_delta: OnDelta | None = None
    dropped: BaseException | None = None  # it was answered with this before its turn came


@dataclass(slots=True, eq=False)
class _ForkInto:
    children: list[RemoteBranch]


@dataclass(slots=True, eq=False)
class RemoteBranch:
    """One branch. `ahead` is text the model has written beyond its end."""

    name: str
    namespace: str = ""
    strict_text: bool = False
    ahead: Ahead = field(default_factory=Ahead)
    is_there: bool = True  # False: its Fork is not carried out yet
    has_forks: bool = False
    pieces: list[Piece] = field(default_factory=list[Piece])
    queue: deque[m.Append | _ForkInto | Job] = field(default_factory=deque[Any])
    job: Job | None = None  # being answered
    failure: BaseException | None = None


class BranchTable:
    """All open branches. `start(branch, job)` is called when a request's turn has come, `fail(job, error)` when it never will."""

    def __init__(
        self,
        start: Callable[[RemoteBranch, Job], None],
        fail: Callable[[Job, BaseException], None],
    ) -> None:
        self._branches: dict[str, RemoteBranch] = {}
        self._start = start
        self._fail = fail

    def __len__(self) -> int:
        return len(self._branches)

    def open(self, message: m.OpenBranch, num_ahead: int) -> None:
        """A new, empty branch; `num_ahead`: tokens a request may write for those after it, 0 for none."""
        branch = RemoteBranch(message.branch, message.namespace, message.strict_text)
        branch.ahead = Ahead(num_ahead)
        if message.branch in self._branches:
            branch.failure = ProgramError(
                f"branch {message.branch!r} was opened twice", place="branch"
            )
        self._branches[message.branch] = branch

    def send(self, message: m.Append | m.Fork | m.CloseBranch) -> None:
        """Carry out a message once what is before it on its branch is done. An unknown branch is no error here."""
        branch = self._branches.get(message.branch)
        if isinstance(message, m.CloseBranch):
            self._branches.pop(message.branch, None)  # lives on until what waits in it is done
            return
        work: m.Append | _ForkInto
        if isinstance(message, m.Fork):
            work = _ForkInto([RemoteBranch(name, is_there=False) for name in message.children])
            self._branches.update(zip(message.children, work.children, strict=True))
            if branch is None:
                for child in work.children:
                    child.failure, child.is_there = _not_open(message.branch), True
        else:
            work = message
        if branch is not None:
            branch.queue.append(work)
            self.pump(branch)

    def ask(self, job: Job) -> None:
        """Start a request once what is before it on its branch is done; one without a branch has its own."""
        message = job.message
        if message.branch is None:
            branch = RemoteBranch("", message.namespace, getattr(message, "strict_text", False))
            branch.pieces = list(message.segments)
        else:
            known = self._branches.get(message.branch)
            if known is None:
                self._fail(job, _not_open(message.branch))
                return
            branch = known
        branch.queue.append(job)
        self.pump(branch)

    def answered(self, branch: RemoteBranch, failure: BaseException | None) -> None:
        """The branch's request has ended; go on with what is behind it."""
        branch.job = None
        branch.failure = branch.failure or failure
        self.pump(branch)

    def fail_all(self, failure: BaseException) -> None:
        """Nothing more is asked for on the branches that are open."""
        for branch in self._branches.values():
            branch.failure = branch.failure or failure

    def pump(self, branch: RemoteBranch) -> None:
        """Carry out what is due on a branch."""
        while branch.queue and branch.is_there and branch.job is None:
            work = branch.queue.popleft()
            if isinstance(work, m.Append):
                branch.pieces += work.segments
                branch.ahead.append(work.segments)
            elif isinstance(work, _ForkInto):
                for child in work.children:
                    self._copy(branch, child)
            elif work.dropped is not None:
                branch.failure = branch.failure or work.dropped
            elif branch.failure is not None:
                self._fail(work, branch.failure)
            else:
                branch.job = work
                self._start(branch, work)

    def _copy(self, branch: RemoteBranch, child: RemoteBranch) -> None:
        child.namespace, child.strict_text = branch.namespace, branch.strict_text
        child.pieces, child.failure = list(branch.pieces), branch.failure
        child.ahead = branch.ahead.copy()
        branch.has_forks = child.has_forks = child.is_there = True
        self.pump(child)


def _not_open(name: str) -> ProgramError:
    return ProgramError(f"the branch {name!r} is not open", place="branch")
