"""What a backend was asked, as data that says the same in every run: the content of a branch instead of its name.

    branch = pieces: [text, {"role": "user"}, text, {"end": "user"}, ...], neighbouring texts joined
    request = {"kind": "gen", "name": "tip", "prompt": pieces, "sampling": {...}, "constraint": {...}} -> a key

Owns the content of the open branches of one backend, grown by messages and by what was generated, and the form of a request. Must not know
files or answers. The content of a request whose branch waits for an earlier result is known when that result is: `Branch.pieces` holds a
slot for it until then.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from ..errors import ProgramError
from ..runtime.messages import (
    Append,
    CloseBranch,
    Fork,
    Generate,
    Ids,
    OpenBranch,
    RoleBegin,
    RoleEnd,
    Score,
    Text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..runtime.messages import Segment


@dataclass(slots=True, eq=False)
class Slot:
    """A result's place on a branch; `text` is None until it came."""

    text: str | None = None


@dataclass(slots=True, eq=False)
class Branch:
    """One branch's content."""

    namespace: str = ""
    strict_text: bool = False
    pieces: list[Segment | Slot] = field(default_factory=list["Segment | Slot"])


class Transcripts:
    """The open branches. The caller holds a lock; ProgramError for a branch that is not open."""

    def __init__(self) -> None:
        self._branches: dict[str, Branch] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Branches not closed yet."""
        return tuple(self._branches)

    def send(self, message: OpenBranch | Append | Fork | CloseBranch) -> None:
        """Take a message in. One for a branch that is not open changes nothing, as at any backend."""
        if isinstance(message, OpenBranch):
            self._branches[message.branch] = Branch(message.namespace, message.strict_text)
            return
        branch = self._branches.get(message.branch)
        if branch is None:
            return
        if isinstance(message, Append):
            branch.pieces += message.segments
        elif isinstance(message, Fork):
            for name in message.children:
                twin = Branch(branch.namespace, branch.strict_text, list(branch.pieces))
                self._branches[name] = twin
        else:
            del self._branches[message.branch]

    def ask(self, message: Generate | Score) -> Asked:
        """A request where its branch stands now. What a gen gives will stand behind it."""
        if message.branch is None:
            strict = isinstance(message, Generate) and message.strict_text
            branch = Branch(message.namespace, strict, list(message.segments))
        else:
            found = self._branches.get(message.branch)
            if found is None:
                raise ProgramError(f"the branch {message.branch!r} is not open", place="branch")
            branch = found
        asked = Asked(message, branch.namespace, branch.strict_text, tuple(branch.pieces))
        if isinstance(message, Generate):
            branch.pieces.append(asked.slot)
        return asked


@dataclass(slots=True, eq=False)
class Asked:
    """One request with the content it was asked on; `slot` takes its text."""

    message: Generate | Score
    namespace: str
    strict_text: bool
    pieces: tuple[Segment | Slot, ...]
    slot: Slot = field(default_factory=Slot)

    @property
    def is_known(self) -> bool:
        """Did all results before it come?"""
        return all(not isinstance(p, Slot) or p.text is not None for p in self.pieces)

    def form(self) -> dict[str, Any]:
        """The request as plain data, without names that differ from run to run. Only once `is_known`."""
        message = self.message
        form: dict[str, Any] = {
            "kind": "gen" if isinstance(message, Generate) else "select",
            "name": variable_of(message.request),
            "prompt": _plain(self.pieces),
        }
        if self.namespace:
            form["namespace"] = self.namespace
        if self.strict_text:
            form["strict_text"] = True
        if isinstance(message, Score):
            form["choices"] = list(message.choices)
            return form
        form["sampling"] = msgspec.to_builtins(message.sampling, str_keys=True)
        if message.constraint is not None:
            form["constraint"] = msgspec.to_builtins(message.constraint, str_keys=True)
        return form


def variable_of(request: str) -> str:
    """The variable's name in a request's: backends add a number behind # or a dot."""
    head, mark, tail = request.rpartition("#" if "#" in request else ".")
    return head if mark and tail.isdecimal() else request


def key_of(form: dict[str, Any]) -> str:
    """Equal requests, equal key. The variable's name is for readers and does not count."""
    counted = {name: value for name, value in form.items() if name != "name"}
    text = json.dumps(counted, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def prompt_text(form: dict[str, Any]) -> str:
    """The prompt of a form as one text, roles as marks, for comparing and showing."""
    parts: list[str] = []
    for piece in form["prompt"]:
        if isinstance(piece, str):
            parts.append(piece)
        elif "role" in piece:
            parts.append(f"<{piece['role']}>")
        elif "end" in piece:
            parts.append(f"</{piece['end']}>")
        else:
            parts.append(json.dumps(piece, ensure_ascii=False))
    return "".join(parts)


def _plain(pieces: Iterable[Segment | Slot]) -> list[Any]:
    plain: list[Any] = []
    for piece in pieces:
        if isinstance(piece, Text | Slot):
            text = piece.text or ""
            if plain and isinstance(plain[-1], str):
                plain[-1] += text
            elif text:
                plain.append(text)
        elif isinstance(piece, RoleBegin):
            plain.append({"role": piece.role})
        elif isinstance(piece, RoleEnd):
            plain.append({"end": piece.role})
        elif isinstance(piece, Ids):
            plain.append({"ids": list(piece.token_ids)})
        else:
            plain.append(msgspec.to_builtins(piece, str_keys=True))
    return plain
