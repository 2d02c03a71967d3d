"""Several results from one call: text that the model wrote beyond the end of a result serves the next one, if the program's own text agrees.

    call: "Name: Ada\nBorn: 1815\nDied: 1852"        stop="\n" cuts the first result at "Ada"; "\nBorn: 1815\n..." is kept
    program: + "\nBorn: "                             the kept text begins with it: 11 characters are consumed
    program: + gen("born", stop="\n")                 "1815": no call

Where the texts differ, what was kept is dropped and the next result is asked for as usual. Results are those of single calls: only what does
not depend on the number of calls is served so (temperature 0, or sampling without a seed, with equal arguments; no constraint, one output,
no log-probabilities); forks never share what was sampled. A limit in tokens is kept exactly where the server tells the tokens, else only where the number of bytes proves it.

The idea is SGLang's (`num_api_spec_tokens`). Owns the kept text of one branch. Knows no server.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from .. import messages as m


@dataclass(frozen=True, slots=True)
class Written:
    """A text the model wrote, its tokens if the server told them, and whether the model ended after it."""

    text: str = ""
    tokens: tuple[str, ...] | None = None
    is_ended: bool = False

    def after(self, num_characters: int) -> Written:
        """What stands behind the first characters; a token that they cut is counted with its rest."""
        if self.tokens is None:
            return Written(self.text[num_characters:], None, self.is_ended)
        rest: list[str] = []
        start = 0
        for token in self.tokens:
            if start + len(token) > num_characters:
                rest.append(token[max(num_characters - start, 0) :])
            start += len(token)
        return Written(self.text[num_characters:], tuple(rest), self.is_ended)

    def num_tokens(self, num_characters: int) -> int | None:
        """Tokens that the first characters took; without tokens their bytes, of which there are never fewer."""
        if self.tokens is None:
            return len(self.text[:num_characters].encode())
        start = 0
        for number, token in enumerate(self.tokens):
            if start >= num_characters:
                return number
            start += len(token)
        return len(self.tokens)

    def first_tokens(self, num: int) -> str | None:
        """The text of the first tokens, if they are known and so many."""
        if self.tokens is None or len(self.tokens) < num:
            return None
        return "".join(self.tokens[:num])


@dataclass(frozen=True, slots=True)
class Cut:
    """The part of a text that is one result."""

    text: str
    finish_reason: str
    matched_stop: str | None
    num_characters: int  # of the written text, that the result ends


def cut(written: Written, sampling: m.SamplingParams) -> Cut | None:
    """The result that the model would have given for `sampling`; None if the text does not tell."""
    found = [
        (at, -len(stop), stop) for stop in sampling.stop if (at := written.text.find(stop)) >= 0
    ]
    limit = sampling.max_tokens
    if found:
        at, _, stop = min(found)
        end = at + len(stop)
        if limit is None or (written.num_tokens(end) or 0) <= limit:
            kept = end if sampling.include_stop else at
            return Cut(written.text[:kept], "stop", stop, kept)
    elif written.is_ended and (
        limit is None or (written.num_tokens(len(written.text)) or 0) <= limit
    ):
        return Cut(written.text, "stop", None, len(written.text))
    text = written.first_tokens(limit) if limit is not None else None
    return None if text is None else Cut(text, "length", None, len(text))


def is_eligible(message: m.Generate) -> bool:
    """May the result of `message` come from a call that wrote more?"""
    sampling = message.sampling
    plain = m.SamplingParams()
    is_plain = all(
        getattr(sampling, name) == getattr(plain, name)
        for name in (
            "n",
            "min_tokens",
            "ignore_eos",
            "stop_token_ids",
            "logprobs",
            "prompt_logprobs",
        )
    )
    is_repeatable = sampling.temperature == 0 or sampling.seed is None
    return is_plain and is_repeatable and message.constraint is None


def widened(message: m.Generate, num_tokens: int) -> m.Generate:
    """The call that writes on for the results behind this one."""
    limit = max(num_tokens, message.sampling.max_tokens or 0)
    sampling = msgspec.structs.replace(
        message.sampling, stop=(), include_stop=False, max_tokens=limit
    )
    return msgspec.structs.replace(message, sampling=sampling, stream=False)


class Ahead:
    """What the model has written beyond the end of one branch. `num_tokens`: how far a call may go; 0: not at all."""

    __slots__ = ("_is_blind", "_kind", "_written", "num_tokens")

    def __init__(self, num_tokens: int = 0) -> None:
        self.num_tokens = num_tokens
        self._written: Written | None = None
        self._kind = m.SamplingParams()
        self._is_blind = False  # the server does not tell its tokens

    def copy(self) -> Ahead:
        """The same for a fork; without the text if it was sampled: forks that go on with one draw would all say the same."""
        twin = Ahead(self.num_tokens)
        if self._kind.temperature == 0:
            twin._written, twin._kind = self._written, self._kind
        twin._is_blind = self._is_blind
        return twin

    def append(self, segments: Sequence[m.Segment]) -> None:
        """The program's own text: consumed where it agrees, else nothing is kept."""
        for segment in segments:
            if self._written is None:
                return
            is_text = isinstance(segment, m.Text)
            if is_text and self._written.text.startswith(segment.text):
                self._written = self._written.after(len(segment.text))
            else:
                self._written = None

    def take(self, message: m.Generate) -> Cut | None:
        """The result, if what is kept tells it; it is consumed."""
        written, self._written = self._written, None
        if written is None or not is_eligible(message) or _kind(message.sampling) != self._kind:
            return None
        found = cut(written, message.sampling)
        if found is not None:
            self._written = written.after(found.num_characters)
        return found

    def may_write(self, message: m.Generate) -> bool:
        """Is a call worth it that writes on? Not where its first result could not be told."""
        is_told = message.sampling.max_tokens is None or not self._is_blind
        return self.num_tokens > 0 and is_told and is_eligible(message)

    def keep(self, message: m.Generate, written: Written) -> Cut | None:
        """A call wrote this: its first result, and the rest for later. None: the result needs a call of its own."""
        self._written = None
        self._is_blind = written.tokens is None
        found = cut(written, message.sampling)
        if found is not None:
            self._written = written.after(found.num_characters)
            self._kind = _kind(message.sampling)
        return found


def _kind(sampling: m.SamplingParams) -> m.SamplingParams:
    """All that must be equal between two results of one call."""
    return msgspec.structs.replace(
        sampling, stop=(), include_stop=False, max_tokens=None, seed=None, jump_forward=True
    )


def as_written(output: m.Output, tokens: tuple[str, ...] | None) -> Written:
    """A call's whole output."""
    is_sound = tokens is not None and "".join(tokens) == output.text
    return replace(Written(output.text, None, output.finish_reason == "stop"), tokens=tokens if is_sound else None)  # fmt: skip
