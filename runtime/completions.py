"""What `Engine.generate` gives back: finished samples as values with attributes. Owns no socket and no schema; how a text becomes a value
is a function handed in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import messages as m

Decode = Callable[[m.Output], Any]


class Sample:
    """One finished sample of a request."""

    __slots__ = ("_decode", "_output")

    def __init__(self, output: m.Output, decode: Decode) -> None:
        self._output = output
        self._decode = decode

    @property
    def text(self) -> str:
        """The text, without stop string (unless `include_stop`) and stop token."""
        return self._output.text

    @property
    def token_ids(self) -> tuple[int, ...]:
        """All ids that were sampled or forced, stop tokens included."""
        return self._output.token_ids

    @property
    def value(self) -> Any:
        """The text as what was asked for: the parsed JSON, the instance of `schema`, the choice, or the text itself.

        Raises OutputError when the text is not complete (cut by max_tokens) or a validator refuses it.
        """
        return self._decode(self._output)

    @property
    def finish_reason(self) -> str:
        """Why it ended: "stop" or "length"."""
        return self._output.finish_reason

    @property
    def matched_stop(self) -> str | int | None:
        """The stop string or token id that ended it."""
        return self._output.matched_stop

    @property
    def logprobs(self) -> tuple[m.TokenLogprob, ...] | None:
        """Log-probabilities of `token_ids`, when asked for."""
        return self._output.logprobs

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text!r}, finish_reason={self.finish_reason!r})"


class Completion(Sample):
    """A finished request. Its own attributes are those of the first sample; `outputs` holds all n."""

    __slots__ = ("_finished", "outputs")

    def __init__(self, finished: m.Finished, decode: Decode) -> None:
        super().__init__(finished.outputs[0], decode)
        self._finished = finished
        self.outputs = tuple(Sample(output, decode) for output in finished.outputs)

    @property
    def usage(self) -> m.Usage:
        """Token counts: prompt_tokens, cached_tokens, completion_tokens (all samples), forced_tokens."""
        return self._finished.usage

    @property
    def seed(self) -> int:
        """The seed that repeats this result."""
        return self._finished.seed

    @property
    def replaced(self) -> tuple[str, ...]:
        """Characters of the prompt that no token spells and that were replaced."""
        return self._finished.replaced

    @property
    def prompt_logprobs(self) -> tuple[m.TokenLogprob | None, ...] | None:
        """Log-probabilities of the prompt's tokens, when asked for; None where a position has none."""
        return self._finished.prompt_logprobs
