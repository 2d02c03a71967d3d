"""The error tree of radixlm. Owns every exception a user can meet; imports only the standard library.

    RadixError
    |-- UserError            the request or program is wrong; the message names the value and its place
    |   |-- ConfigError      an option of the engine, a server or the command line
    |   |-- SamplingError    a sampling argument (temperature, top_p, ...)
    |   |-- PromptError      empty prompt, text the vocabulary cannot spell, a template that refuses the messages
    |   |   `-- ContextOverflow  the prompt is longer than the context or the page pool
    |   |-- GrammarError     a regex, schema or choice list that is refused; `place` is a JSON pointer or column
    |   |-- ModelError       a model that is missing, damaged or unsupported
    |   `-- ProgramError     misuse of the language (two constraints on one gen, a role left open, ...)
    |       `-- UnknownVariable  reading what no gen will set; a KeyError too
    |-- ServiceError         the request was right, the service could not do it; `retryable` says whether again
    |   |-- EngineDied       the engine process ended while the request was pending
    |   |-- Aborted          the request was cancelled, or its client went away
    |   |-- TimedOut         no answer within the time the caller allowed
    |   `-- Overloaded       a queue is full
    |-- OutputError          the output cannot be used as asked (for example `.value` of a cut JSON text)
    `-- InvariantError       an internal store contradicts itself: a bug of radixlm, never a user's mistake

An error crosses a socket as `WireError` (in `runtime.messages`): its code is the class name.
"""

from __future__ import annotations


class RadixError(Exception):
    """Base of all errors of radixlm.

    `message` is one sentence a user can act on; `place` says where the offending value stands (JSON
    pointer, "line:column", argument name) or is empty; `hint` is an optional remedy.
    """

    retryable = False

    def __init__(self, message: str, *, place: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.message} (at {self.place})" if self.place else self.message
        return f"{text}. {self.hint}" if self.hint else text


class UserError(RadixError):
    """The request, program or option is wrong as given."""


class ConfigError(UserError):
    """An option of the engine, a server or the command line is wrong."""


class SamplingError(UserError):
    """A sampling argument is out of range; `place` is its name."""


class PromptError(UserError):
    """The prompt cannot be run: empty, longer than the context, or not spellable when that was refused."""


class ContextOverflow(PromptError):
    """The prompt is longer than the model's context, or than the page pool; the message names both numbers."""


class GrammarError(UserError):
    """A constraint was refused. `place` is a JSON pointer (schemas) or a column (regex); `keyword` names the construct."""

    def __init__(self, message: str, *, place: str = "", hint: str = "", keyword: str = "") -> None:
        super().__init__(message, place=place, hint=hint)
        self.keyword = keyword


class ModelError(UserError):
    """A model is missing, damaged or of an unsupported kind."""


class ProgramError(UserError):
    """The language was misused: two constraints on one gen, an empty choice list, a branch that has ended."""


class UnknownVariable(ProgramError, KeyError):
    """A program's variable was read that nothing has set and nothing submitted so far will set. It is a KeyError too."""


class ServiceError(RadixError):
    """The request was right, the service could not do it."""

    retryable = True


class EngineDied(ServiceError):
    """The engine process ended while the request was pending."""


class Aborted(ServiceError):
    """The request was cancelled, or its client went away."""

    retryable = False


class TimedOut(ServiceError):
    """No answer came within the time the caller allowed."""


class Overloaded(ServiceError):
    """A queue is full."""


class OutputError(RadixError):
    """The output cannot be used as asked, for example a JSON text that max_tokens cut."""


class InvariantError(RadixError):
    """An internal store contradicts itself: a bug of radixlm, never a user's mistake."""


def by_name(name: str) -> type[RadixError]:
    """The error class called `name`, or ServiceError when a newer peer sent a name unknown here."""
    found = globals().get(name)
    if isinstance(found, type) and issubclass(found, RadixError):
        return found
    return ServiceError
