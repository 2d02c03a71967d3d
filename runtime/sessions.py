"""The gateway's bookkeeping of clients: their branches as queues of operations, and their requests under way.

    Session (a client) -- branches: name -> BranchQueue -- operations waiting in order: Append, ForkInto, Work
                       `- requests: name -> Work (a Generate or Score that is not answered yet)

Data and its small rules only; what happens with it is decided in `gateway`. Knows no socket.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from .branches import Branch
from .messages import Append, Done, Generate, Score, WireError
from .output_text import OutputText


@dataclass(slots=True, eq=False)
class Work:
    """A Generate or Score from its arrival to its answer. `parts` are the engine's requests: one, or one per choice."""

    session: Session
    queue: BranchQueue
    message: Generate | Score
    number: int  # of the session, never used again: a late word on an earlier request of the same name meets nobody
    is_answered: bool = False
    is_submitted: bool = False
    is_cancelled: bool = False  # the engine was told to end it; its answer is still to come
    program: str = ""
    outputs: list[OutputText] = field(default_factory=list[OutputText])
    num_streamed: list[int] = field(
        default_factory=list[int]
    )  # token ids of each output given out as Delta
    parts: dict[str, int] = field(
        default_factory=dict[str, int]
    )  # the engine's name of a part -> its index
    parts_done: dict[int, Done] = field(default_factory=dict[int, Done])
    choice_ids: Sequence[Sequence[int]] = ()
    choice_heads: Sequence[tuple[int, int]] = ()  # see gateway_answers._head_of
    choice_start: int = 0  # position of the first token that belongs to the choices

    @property
    def name(self) -> str:
        """The request's name, chosen by the client."""
        return self.message.request


@dataclass(slots=True, eq=False)
class ForkInto:
    """A fork waiting in its parent's queue, with the queues of its children, which exist from the moment it was asked for."""

    children: list[BranchQueue]


Operation = Append | ForkInto | Work


@dataclass(slots=True, eq=False)
class BranchQueue:
    """A branch and what waits on it. `branch` is None until the fork that makes it was carried out."""

    name: str | None  # None: the anonymous branch of one request
    branch: Branch | None
    operations: deque[Operation] = field(default_factory=deque[Operation])
    running: Work | None = None
    broken: WireError | None = None  # an operation failed: every later request fails with this


@dataclass(slots=True, eq=False)
class Session:
    """One client. `number` is never used again, so that names of a lost client's requests cannot meet those of a new one."""

    client: bytes
    number: int
    last_seen_s: float
    pid: int = 0
    branches: dict[str, BranchQueue] = field(default_factory=dict[str, BranchQueue])
    requests: dict[str, Work] = field(default_factory=dict[str, Work])
    greeted: bool = False
    wants_ready: bool = False  # it said hello, and was not told of the engine that is ready now
    num_works: int = 0
