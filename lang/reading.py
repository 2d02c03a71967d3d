"""The reading side of a state: variables, text, messages, meta data, errors.

Owns what `State` (a program's own view) and `LiveState` (the view of who watches it run) have in common. Reading waits for just the result
that is read. A variable that fails raises where it is read; its error has notes with the program's line and the text so far. Must not know
messages or how waiting is done.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from ..errors import ProgramError, UnknownVariable
from .chat import RoleMark, to_messages
from .variable import Derived, Known, Meta, Span, Variable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..runtime.messages import Usage
    from .branch import Branch, Piece
    from .variable import Failure, Readable


class ReadableState:
    """A program's text and variables, for reading."""

    def __init__(self, branch: Branch) -> None:
        self._branch = branch

    @property
    def ret_value(self) -> Any:
        """What the program's function returned; None before it has."""
        return self._branch.run.ret_value

    @property
    def index(self) -> int | None:
        """Number of the item in its batch, from 0; None outside a batch."""
        return self._branch.run.index

    def __getitem__(self, name: str) -> Any:
        """The value of a variable, when it is there: text, a list if n > 1, or an instance of the gen's `schema`.

        Raises UnknownVariable (a KeyError) at once if nothing sets it, else what made it fail.
        """
        readable = self._readable(name)
        if isinstance(readable, Known):
            return readable.value
        if isinstance(readable, Span):
            return self._text_of(readable.pieces[readable.start : readable.end])
        if isinstance(readable, Derived):
            self._branch.run.wait_for(readable.variable)
            return readable.value()
        return self.value_of(readable)

    def value_of(self, variable: Variable) -> Any:
        """The value of a gen or select of this run, when it is there."""
        self._branch.run.wait_for(variable)
        try:
            return variable.value()
        except Exception:
            variable.is_refusal_met |= not self._branch.run.is_over
            raise

    def output_text(self, variable: Variable, output: int = 0) -> str:
        """The text of one output of a gen, or of a select, when it is there."""
        first = self._resolve(variable)
        return first if variable.meta is None or not output else variable.meta.outputs[output].text

    def last_result(self) -> Variable:
        """The gen or select that was appended last, here or before the fork."""
        last = self._branch.last
        if last is None:
            raise ProgramError("nothing was asked on this branch yet")
        return last

    def __contains__(self, name: str) -> bool:
        return name in self._branch.variables

    def keys(self) -> tuple[str, ...]:
        """Names of all variables, in the order they were set; `dict(s)` reads them all."""
        return tuple(self._branch.variables)

    def text(self) -> str:
        """All text so far, constants and results, when all of it is there. Roles leave no marks in it: see `messages`."""
        return self._text_of(self._branch.all_pieces())

    def messages(self) -> list[dict[str, str]]:
        """The chat messages so far, each {"role", "content"}. Text outside roles is in none of them."""
        pieces = self._branch.all_pieces()
        return to_messages(p if isinstance(p, RoleMark) else self._resolve(p) for p in pieces)

    def get_meta(self, name: str) -> Meta:
        """Finish reason, usage, token ids, logprobs, scores of a gen or select."""
        readable = self._readable(name)
        if not isinstance(readable, Variable):
            raise ProgramError(f"{name!r} is no gen or select, it has no meta data", place=name)
        self._branch.run.wait_for(readable)
        if readable.failure is not None:
            readable.failure.throw()
        if readable.meta is None:
            raise ProgramError(f"{name!r} has no meta data", place=name)
        return readable.meta

    def get_meta_info(self, name: str) -> Any:
        """What `get_meta` knows, as a dict in SGLang's form; a list of them if n > 1."""
        from .meta_info import meta_info, output_info

        meta, variable = self.get_meta(name), self._readable(name)
        request = variable.request if isinstance(variable, Variable) else ""
        spell = getattr(self._branch.run.backend, "token_texts", None)
        if len(meta.outputs) > 1:
            return [output_info(meta, output, request, spell) for output in meta.outputs]
        return meta_info(meta, request, spell)

    def usage(self) -> Usage:
        """Token counts of the whole run so far, over all its branches; `.steps` of the model among them."""
        return self._branch.run.usage

    @property
    def time_s(self) -> float:
        """Seconds that the run took, or has taken so far."""
        return self._branch.run.time_s

    def error(self) -> BaseException | None:
        """What made this run or branch fail, as far as it is known now; None while all is well. Nothing is waited for.

        The forks of a branch belong to it, joined or not. Known too, without reading them: results that are no value of their schema or
        choices (`OutputError`). What the program itself has met is not an error of the branch, unless its own last result failed.
        """
        run, last = self._branch.run, self._branch.last
        failure = last.failure if last is not None else None
        if failure is None:
            failure = next(filter(None, map(_unseen_failure, _with_forks(self._branch))), None)
        if failure is not None:
            failure.seen = True
            return run.error or failure.error
        return run.error or next(filter(None, map(_refusal, _with_forks(self._branch))), None)

    def sync(self) -> ReadableState:
        """Wait for everything on this branch; raise what failed."""
        self.text()
        return self

    # ------------------------------------------------------------------------------------ small parts

    def _readable(self, name: str) -> Readable:
        return find(self._branch, name)

    def _text_of(self, pieces: Iterable[Piece]) -> str:
        return "".join(self._resolve(p) for p in pieces if not isinstance(p, RoleMark))

    def _resolve(self, piece: str | Variable) -> str:
        if isinstance(piece, str):
            return piece
        self._branch.run.wait_for(piece)
        if piece.failure is not None:
            piece.failure.throw()
        return piece.text


def find(branch: Branch, name: str) -> Readable:
    """What is called `name` on the branch; raises what ended the run, else UnknownVariable."""
    readable = branch.variables.get(name)
    if readable is not None:
        return readable
    if branch.run.error is not None:
        raise branch.run.error
    near = get_close_matches(name, branch.variables, n=1)
    names = ", ".join(branch.variables)
    known = f"Known: {names}" if names else "No variable is set yet"
    raise UnknownVariable(
        f"nothing sets the variable {name!r}",
        place=name,
        hint=f"Did you mean {near[0]!r}?" if near else known,
    )


def _with_forks(branch: Branch) -> Iterator[Branch]:
    """A branch and all that were forked from it, joined or not."""
    todo = [branch]
    while todo:
        branch = todo.pop()
        yield branch
        todo.extend(reversed(branch.children))


def _unseen_failure(branch: Branch) -> Failure | None:
    failure = branch.last.failure if branch.last is not None else None
    return None if failure is None or failure.seen else failure


def _refusal(branch: Branch) -> Exception | None:
    """What reading a variable would raise because its result is no value of its type; None if the program has met that error itself."""
    for each in branch.variables.values():
        if isinstance(each, Variable) and each.done.done() and each.failure is None:
            refusal = each.refusal()
            if refusal is not None and not each.is_refusal_met:
                return refusal
    return None
