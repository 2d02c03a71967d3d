"""What the language needs of a runtime, and nothing more.

Owns the `Backend` Protocol, the rule by which `backend=` arguments are understood, and the process-wide default. The ZMQ client, a
remote server and `lang.testing.ScriptedBackend` satisfy it alike, so one program runs unchanged on each. Must not know sockets,
processes, tokens or models.

The messages of one branch are carried out in the order sent. Names of branches and requests come from `new_id`, so nothing waits for
a reply. When a request on a branch fails, what was queued behind it on that branch fails too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol, cast, runtime_checkable

from ..errors import ConfigError, ProgramError

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from ..runtime.messages import (
        Abort,
        Append,
        CloseBranch,
        Delta,
        Finished,
        Fork,
        Generate,
        OpenBranch,
        Ready,
        Score,
        Scored,
    )


@runtime_checkable
class Backend(Protocol):
    """A runtime that keeps branches of text, continues them by sampling and scores continuations.

    All methods may be called from any thread and return at once.
    """

    @property
    def facts(self) -> Ready:
        """Facts of the model: name, context length, vocabulary size, stop tokens."""
        ...

    def new_id(self, prefix: str) -> str:
        """A name for a branch or request, unique in this backend; `prefix` (a variable's name) helps people reading traces."""
        ...

    def send(self, message: OpenBranch | Append | Fork | CloseBranch | Abort) -> None:
        """Send a message that has no answer. A branch that is closed already, or a request that ended, is no error."""
        ...

    def generate(
        self, message: Generate, on_delta: Callable[[Delta], None] | None = None
    ) -> Future[Finished]:
        """Continue a branch. The future fails with an error of `errors.py`; `on_delta` gets new text if `message.stream`.

        Callbacks run on a thread of the backend and must not block.
        """
        ...

    def score(self, message: Score) -> Future[Scored]:
        """Log-probabilities of each choice as the continuation of a branch. The branch itself is unchanged."""
        ...


@runtime_checkable
class HasBackend(Protocol):
    """Anything that carries a backend, such as `radixlm.Engine`."""

    @property
    def backend(self) -> Backend:
        """The backend to use."""
        ...


@runtime_checkable
class Speculating(Protocol):
    """A backend on which one call costs much more than some tokens, so that it may write on for the results behind its own."""

    def speculating(self, num_tokens: int) -> Backend:
        """This backend for one program; each of its calls may write up to `num_tokens`. Results are the same."""
        ...


def speculating(backend: Backend, num_tokens: int | None) -> Backend:
    """`backend` as a program with `num_api_spec_tokens` uses it; the same one where it would not help, as on a local engine.

    One call may then write so many tokens, and what it wrote behind its own result serves the next gens, as far as it agrees with the program's
    text: the same results with fewer calls.
    """
    if num_tokens is None or not isinstance(backend, Speculating):
        return backend
    return backend.speculating(num_tokens)


class DefaultBackend:
    """The process-wide default: the language's only global, set on purpose by `set_default_backend`."""

    current: ClassVar[Backend | HasBackend | None] = None


def set_default_backend(backend: Backend | HasBackend | None) -> None:
    """Use `backend` (a Backend, or an object with `.backend` such as Engine) where a run names none. None clears it."""
    if backend is not None:
        as_backend(backend)
    DefaultBackend.current = backend


def as_backend(candidate: Backend | HasBackend | None) -> Backend:
    """The Backend behind `candidate`, or behind the default when it is None.

    Raises ProgramError when there is none, ConfigError when the object is something else.
    """
    chosen = DefaultBackend.current if candidate is None else candidate
    if chosen is None:
        raise ProgramError(
            "no backend to run on",
            place="backend",
            hint="Pass backend=engine, or call set_default_backend(engine) once",
        )
    inner = getattr(chosen, "backend", None)
    if inner is not None:
        return cast("Backend", inner)
    if callable(getattr(chosen, "generate", None)) and callable(getattr(chosen, "send", None)):
        return cast("Backend", chosen)
    raise ConfigError(
        f"{chosen!r} is not a backend and has no `.backend`",
        place="backend",
        hint="Pass a radixlm.Engine, a RuntimeEndpoint, OpenAI, Anthropic or ScriptedBackend",
    )
