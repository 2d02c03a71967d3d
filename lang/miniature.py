"""The branches of a runtime in miniature, for ScriptedBackend: queues, forks and a tree of tokens seen.

Owns what a runtime promises of branches: the messages of one are carried out in order, a request holds what is behind it, a failed or
aborted request fails what is behind it, a fork copies. Must not know scripts, threads or models; the caller holds its lock.

Tokens are words with the white space before them; ids are hashes; cached tokens are those whose whole prefix was seen before.
"""

from __future__ import annotations

import re
import zlib
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import Aborted, ProgramError
from ..runtime.messages import (
    Append,
    CloseBranch,
    Fork,
    Generate,
    OpenBranch,
    RoleBegin,
    RoleEnd,
    Score,
    Text,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from ..runtime.messages import Delta, Segment

_WORD = re.compile(r"\s*\S+|\s+")


@dataclass(slots=True, eq=False)
class Job:
    """A request and where its answer goes."""

    message: Generate | Score
    future: Future[Any]
    on_delta: Callable[[Delta], None] | None = None
    reply: Any = None  # while it is given piece by piece
    rest: deque[Delta] = field(default_factory=deque[Any])

    def give(self, num_words: int) -> None:
        """Hand over the next words of the stream."""
        for _ in range(min(num_words, len(self.rest))):
            delta = self.rest.popleft()
            if self.on_delta is not None:
                self.on_delta(delta)


@dataclass(slots=True, eq=False)
class MiniBranch:
    """One branch: its text, its place in the tree of tokens, and what waits."""

    name: str
    node: dict[int, Any]  # the tree of tokens below this branch's computed ones
    is_ready: bool = True  # False: its Fork is not carried out yet
    parts: list[str] = field(default_factory=list[str])
    queue: deque[Append | Fork | CloseBranch | Job] = field(default_factory=deque[Any])
    job: Job | None = None  # being answered
    failure: BaseException | None = None
    num_tokens: int = 0
    unseen: list[int] = field(default_factory=list[int])  # appended, not computed yet

    @property
    def text(self) -> str:
        """All of its text; a role block reads <|im_start|>role\\n...<|im_end|>\\n."""
        return "".join(self.parts)


class Miniature:
    """All branches. `due` holds the branches whose next work is a request, in the order they came to it."""

    def __init__(self, vocab_size: int) -> None:
        self.branches: dict[str, MiniBranch] = {}
        self.due: deque[MiniBranch] = deque()
        self._vocab_size = vocab_size
        self._roots: dict[str, dict[int, Any]] = {}  # per namespace

    def open(self, message: OpenBranch) -> None:
        """A new, empty branch."""
        self.branches[message.branch] = MiniBranch(message.branch, self._root(message.namespace))

    def enqueue(self, work: Append | Fork | CloseBranch) -> None:
        """Carry out a message once what is before it on its branch is done. Closing twice is no error."""
        if isinstance(work, CloseBranch) and work.branch not in self.branches:
            return
        branch = self._branch(work.branch)
        if isinstance(work, Fork):
            for name in work.children:
                self.branches[name] = MiniBranch(name, {}, is_ready=False)
        branch.queue.append(work)
        self._pump(branch)

    def submit(self, job: Job) -> None:
        """Answer a request once what is before it on its branch is done; one without a branch has its own."""
        message = job.message
        if message.branch is None:
            branch = MiniBranch("", self._root(message.namespace))
            self._append(branch, message.segments)
        else:
            branch = self._branch(message.branch)
        branch.queue.append(job)
        self._pump(branch)

    def answered(self, branch: MiniBranch, failure: BaseException | None) -> None:
        """The branch's request has its answer or failed; go on with what is behind it."""
        branch.failure = branch.failure or failure
        branch.job = None
        self._pump(branch)

    def take_out(self, request: str) -> Job | None:
        """Remove a request that has no answer yet. None if there is none of that name, or its answer is under way."""
        for branch in (*self.branches.values(), *self.due):
            if branch.job is not None and branch.job.message.request == request:
                if branch not in self.due:
                    return None
                job = branch.job
                self.due.remove(branch)
                self.answered(branch, Aborted("the request before it on the branch was aborted"))
                return job
            for work in branch.queue:
                if isinstance(work, Job) and work.message.request == request:
                    branch.queue.remove(work)
                    return work
        return None

    def compute(self, branch: MiniBranch, num_completion: int) -> Usage:
        """Walk the branch's new tokens down the tree of all tokens seen; what was there is cached."""
        num_cached = branch.num_tokens
        is_seen = True
        for token_id in branch.unseen:
            is_seen = is_seen and token_id in branch.node
            num_cached += is_seen
            branch.node = branch.node.setdefault(token_id, {})
        branch.num_tokens += len(branch.unseen)
        branch.unseen.clear()
        num_cached = min(num_cached, max(branch.num_tokens - 1, 0))
        return Usage(branch.num_tokens, num_cached, num_completion)

    def extend(self, branch: MiniBranch, text: str) -> None:
        """Generated text at the end of the branch."""
        branch.parts.append(text)
        branch.unseen += self.ids(text)
        self.compute(branch, 0)

    def ids(self, text: str) -> tuple[int, ...]:
        """Token ids of a text."""
        return tuple(zlib.crc32(word.encode()) % self._vocab_size for word in words(text))

    def _branch(self, name: str) -> MiniBranch:
        branch = self.branches.get(name)
        if branch is None:
            raise ProgramError(f"a message came for the branch {name!r}, which is not open")
        return branch

    def _root(self, namespace: str) -> dict[int, Any]:
        return self._roots.setdefault(namespace, {})

    def _pump(self, branch: MiniBranch) -> None:
        while branch.queue and branch.is_ready and branch.job is None:
            work = branch.queue.popleft()
            if isinstance(work, Append):
                self._append(branch, work.segments)
            elif isinstance(work, Fork):
                self._fork(branch, work)
            elif isinstance(work, CloseBranch):
                self.branches.pop(branch.name, None)
            else:
                branch.job = work
                self.due.append(branch)

    def _fork(self, branch: MiniBranch, message: Fork) -> None:
        for child in [self.branches[name] for name in message.children if name in self.branches]:
            child.parts, child.unseen = [branch.text], list(branch.unseen)
            child.node, child.num_tokens = branch.node, branch.num_tokens
            child.failure, child.is_ready = branch.failure, True
            self._pump(child)

    def _append(self, branch: MiniBranch, segments: tuple[Segment, ...]) -> None:
        for segment in segments:
            text = ""
            if isinstance(segment, Text):
                text = segment.text
            elif isinstance(segment, RoleBegin):
                text = f"<|im_start|>{segment.role}\n"
            elif isinstance(segment, RoleEnd):
                text = "<|im_end|>\n"
            branch.parts.append(text)
            branch.unseen += self.ids(text)


def words(text: str) -> list[str]:
    """The text cut into words, each with the white space before it."""
    return _WORD.findall(text)
