"""What the messages without an answer do to a client's branches: open, append, fork, close.

They only queue, or change the branch when their turn comes. An error has nobody to go to then, so it breaks the branch: the next request
on it gets the error. Owns no state; knows no request, engine or socket.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ..errors import ProgramError, RadixError, ServiceError
from . import messages as m
from .branches import Branch
from .sessions import BranchQueue, ForkInto, Session

log = logging.getLogger(__name__)

BranchMessage = m.OpenBranch | m.Append | m.Fork | m.CloseBranch


def apply_branch_message(
    session: Session, message: BranchMessage, new_branch: Callable[[str, bool], Branch]
) -> BranchQueue | None:
    """Take a message into `session`; the queue that has something to do now, or None. Unknown branches are no error here."""
    queue = session.branches.get(message.branch)
    match message:
        case m.OpenBranch(name, namespace, strict_text):
            opened = BranchQueue(name, new_branch(namespace, strict_text))
            if queue is not None:
                opened.broken = m.WireError.of(
                    ProgramError(f"branch {name!r} was opened twice", place="branch")
                )
            session.branches[name] = opened
        case m.Append():
            if queue is not None:
                queue.operations.append(message)
        case m.Fork(name, names):
            children = [BranchQueue(child, None) for child in names]
            session.branches.update(zip(names, children, strict=True))
            if queue is not None:
                queue.operations.append(ForkInto(children))
            else:
                for child in children:
                    child.branch = new_branch("", False)
                    child.broken = m.WireError.of(no_branch(name))
        case m.CloseBranch(name):
            session.branches.pop(name, None)  # the queue lives on until what waits in it is done
    return queue


def change_branch(
    queue: BranchQueue, branch: Branch, operation: m.Append | ForkInto
) -> list[BranchQueue]:
    """Carry out a queued append or fork; the children that exist now."""
    try:
        if queue.broken is None:
            if isinstance(operation, m.Append):
                branch.append(operation.segments)
            else:
                branch.settle()  # once, instead of in every child
    except Exception as error:  # noqa: BLE001 - a mistake or a defect breaks this branch, not the service
        queue.broken = as_wire_error(error)
    if isinstance(operation, m.Append):
        return []
    for child in operation.children:
        child.branch = branch.copy()
        child.broken = queue.broken
    return operation.children


def as_wire_error(error: Exception) -> m.WireError:
    """`error` as the answer of whom it concerns; a defect is logged and named as one."""
    if not isinstance(error, RadixError):
        log.error("an operation failed", exc_info=error)
        error = ServiceError(f"internal error in the gateway: {error!r}")
    return m.WireError.of(error)


def no_branch(name: str) -> ProgramError:
    """The error for a request on a branch that does not exist."""
    return ProgramError(
        f"there is no branch {name!r}",
        place="branch",
        hint="It was closed, or its client was silent for longer than its lease, or the gateway was restarted",
    )
