"""What a reader of a live run has not seen yet: of one variable, of the whole text, of a growing object, of everything.

Owns the positions. A cursor only looks (`take`), it never waits; who reads it waits in between. Must not know bodies, threads or loops.
What failed raises in `take`, after the text that had come before the failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..errors import OutputError, ProgramError
from .chat import RoleMark
from .reading import find
from .variable import Derived, Known, Span, Variable

if TYPE_CHECKING:
    from .branch import Branch
    from .live_run import LiveRun
    from .news import StreamEvent
    from .variable import Meta, Readable

T = TypeVar("T")
TextAndMeta = tuple[str, "Meta | None"]


class Cursor(Protocol[T]):
    """A position in what is being written."""

    @property
    def is_over(self) -> bool:
        """Nothing will come after what was taken."""
        ...

    def take(self) -> list[T]:
        """What came since, perhaps nothing."""
        ...


class _Growth:
    """The text of one gen or select, as it grows."""

    def __init__(self, variable: Variable) -> None:
        self.variable = variable
        self.is_over = False
        self._num_taken = 0

    def take(self, live: LiveRun) -> str:
        """The new text. The caller holds the run's lock."""
        streamed = self.variable.streamed or []
        text = "".join(streamed[self._num_taken :])
        self._num_taken = len(streamed)
        if self.variable.done.done() and not text:
            check(self.variable, live)
            self.is_over = True
        elif self.variable.done.done():
            self.is_over = self.variable.failure is None
        return text


class TextCursor:
    """The text of a variable, set now or later, or, without a name, of the whole program; with the meta data of a variable at its end."""

    def __init__(self, live: LiveRun, branch: Branch, name: str | None) -> None:
        self._live = live
        self._branch = branch
        self._name = name
        self._source: Readable | None = Span(branch.pieces, 0, None) if name is None else None
        self._index = 0  # of the piece to read, in a span
        self._growth: _Growth | None = None
        self.is_over = False

    def take(self) -> list[TextAndMeta]:
        """See Cursor. Pairs of new text and, at the end of a variable, its meta data."""
        with self._live.run.lock:
            if self._source is None and self._name is not None:
                self._source = readable(self._live, self._branch, self._name)
                if isinstance(self._source, Span):
                    self._index = self._source.start
            if self._source is None:
                return []
            if isinstance(self._source, Known):
                return self._known(self._source.value)
            if isinstance(self._source, Variable):
                return self._grown(self._source)
            if isinstance(self._source, Derived):
                return self._derived(self._source)
            text = self._span(self._source)
            return [(text, None)] if text else []

    def _known(self, value: object) -> list[TextAndMeta]:
        if not isinstance(value, str):
            raise ProgramError(
                f"{self._name!r} is set by the program to a {type(value).__name__}, there is no text to stream",
                place=self._name or "",
                hint="Read it with s[...]; event_iter() streams the results of forked children",
            )
        self.is_over = True
        return [(value, None)]

    def _derived(self, derived: Derived) -> list[TextAndMeta]:
        if not derived.variable.done.done():
            return []
        check(derived.variable, self._live)
        return self._known(derived.value())

    def _grown(self, variable: Variable) -> list[TextAndMeta]:
        self._growth = self._growth or _Growth(variable)
        text = self._growth.take(self._live)
        self.is_over = self._growth.is_over
        return [(text, variable.meta if self.is_over else None)] if text or self.is_over else []

    def _span(self, span: Span) -> str:
        new: list[str] = []
        while self._index < self._end(span):
            piece = span.pieces[self._index]
            if isinstance(piece, Variable):
                growth = self._growth = self._growth or _Growth(piece)
                if (
                    not new or piece.failure is None
                ):  # an error only when what was before it is given
                    new.append(growth.take(self._live))
                if not growth.is_over:
                    return "".join(new)
                self._growth = None
            elif not isinstance(piece, RoleMark):
                new.append(piece)
            self._index += 1
        self.is_over = self._is_closed(span)
        return "".join(new)

    def _end(self, span: Span) -> int:
        now = self._now(span)
        return len(span.pieces) if now.end is None else now.end

    def _is_closed(self, span: Span) -> bool:
        return self._live.is_over or self._now(span).end is not None

    def _now(self, span: Span) -> Span:
        """The span as it stands in the branch: a `var_scope` is closed when its block is left."""
        now = self._branch.variables.get(self._name) if self._name is not None else None
        is_same = isinstance(now, Span) and now.start == span.start and now.pieces is span.pieces
        return now if is_same and isinstance(now, Span) else span


class ObjectCursor:
    """The value of a JSON gen as it grows: plain values of what is there, each differing from the one before; the last is the result."""

    def __init__(self, live: LiveRun, branch: Branch, name: str) -> None:
        self._live = live
        self._branch = branch
        self._name = name
        self._variable: Variable | None = None
        self._num_read = 0  # parts of the text
        self._last: list[Any] = []
        self.is_over = False

    def take(self) -> list[Any]:
        """See Cursor."""
        with self._live.run.lock:
            if self._variable is None:
                source = readable(self._live, self._branch, self._name)
                if source is None:
                    return []
                self._variable = _json_variable(self._name, source)
            variable = self._variable
            if variable.done.done():
                check(variable, self._live)
                self.is_over = True
            elif len(variable.streamed or ()) == self._num_read:
                return []
            text = "".join(variable.streamed or ())
            self._num_read = len(variable.streamed or ())
        return [_final_object(variable, text)] if self.is_over else self._grown(text)

    def _grown(self, text: str) -> list[Any]:
        from .schema import partial_values

        values = partial_values(text)
        if not values or values == self._last:
            return []
        self._last = values
        return values


class EventCursor:
    """Everything, in the order it came: new text of every gen and select in every branch."""

    def __init__(self, live: LiveRun) -> None:
        self._live = live
        self._index = 0
        self.is_over = False

    def take(self) -> list[StreamEvent]:
        """See Cursor."""
        self.is_over = self._live.is_over
        new = self._live.news.events[self._index :]
        self._index += len(new)
        return new


def readable(live: LiveRun, branch: Branch, name: str) -> Readable | None:
    """What is called `name`, None if it may still come. Raises what ended the run, or UnknownVariable, when it cannot come any more."""
    found = branch.variables.get(name)
    if found is not None or not live.is_over:
        return found
    live.raise_unseen()
    try:
        return find(branch, name)
    except ProgramError as error:
        if any(event.name == name for event in live.news.events):
            error.add_note(f"a forked child has set {name!r}: event_iter() streams those too")
        raise


def check(variable: Variable, live: LiveRun) -> None:
    """Raise what made the variable fail: the run's own error if that stopped it."""
    failure = variable.failure
    if failure is None:
        return
    if failure.is_of_the_run and live.run.error is not None:
        live.saw(live.run.error)
        raise live.run.error
    live.saw(failure.error)
    failure.throw()


def _json_variable(name: str, source: Readable) -> Variable:
    if not isinstance(source, Variable) or not source.is_json:
        raise ProgramError(
            f"{name!r} is not a gen with schema= or json_schema=, there is no object to read",
            place=name,
            hint="text_iter streams text",
        )
    return source


def _final_object(variable: Variable, text: str) -> Any:
    value: Any = variable.value()
    if variable.num_outputs > 1:
        value = value[0]
    if not isinstance(value, str) or value != text:
        return value
    from .schema import whole_value

    try:
        return whole_value(text)
    except ValueError as error:
        cut = OutputError(f"the JSON text was cut: {text[-80:]!r}", hint="Allow more tokens")
        cut.add_note(f"reading {variable.name!r}, set at {variable.place}")
        raise cut from error
