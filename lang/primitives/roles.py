"""Chat roles: `s += user("...")`, `with s.user():`, and the begin/end forms.

Owns the role nodes. How a model writes its messages is the gateway's business. Roles do not nest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..ir import Node, as_node

if TYPE_CHECKING:
    from ..ir import BranchOps


@dataclass(frozen=True)
class BeginRole(Node):
    """Start of a chat message."""

    role: str

    def submit(self, branch: BranchOps) -> None:
        """Open the message."""
        branch.begin_role(self.role)


@dataclass(frozen=True)
class EndRole(Node):
    """End of a chat message."""

    role: str

    def submit(self, branch: BranchOps) -> None:
        """Close the message."""
        branch.end_role(self.role)


@dataclass(frozen=True)
class Role(Node):
    """A whole chat message."""

    role: str
    content: Node

    def submit(self, branch: BranchOps) -> None:
        """Open the message, submit its content, close it; close it too when the content is refused."""
        branch.begin_role(self.role)
        try:
            self.content.submit(branch)
        finally:
            branch.end_role(self.role)


def system(content: Node | str) -> Role:
    """A system message."""
    return Role("system", as_node(content))


def user(content: Node | str) -> Role:
    """A user message."""
    return Role("user", as_node(content))


def assistant(content: Node | str) -> Role:
    """An assistant message: `s += assistant(gen("answer"))`."""
    return Role("assistant", as_node(content))


def system_begin() -> BeginRole:
    """Start of a system message."""
    return BeginRole("system")


def system_end() -> EndRole:
    """End of a system message."""
    return EndRole("system")


def user_begin() -> BeginRole:
    """Start of a user message."""
    return BeginRole("user")


def user_end() -> EndRole:
    """End of a user message."""
    return EndRole("user")


def assistant_begin() -> BeginRole:
    """Start of an assistant message."""
    return BeginRole("assistant")


def assistant_end() -> EndRole:
    """End of an assistant message."""
    return EndRole("assistant")
