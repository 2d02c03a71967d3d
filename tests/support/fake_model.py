"""A model for fake servers: words that depend on all the text before them, so that a text continued in parts equals one continued at once.

Under a constraint it writes a sample of it. A `book` is continued where the prompt ends within it.
"""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from radixlm.grammar.spec import Gbnf, JsonSchema, Lark, Spec
from radixlm.lang.compiler.samples import sample_of

_WORDS = (
    " sun",
    " rain",
    " wind",
    " snow",
    " hail",
    " fog",
    ",",
    " and",
    " or",
    " a",
    " the",
    "\nNext:",
    " é",
    " 日",
)
_TOKEN = re.compile(r"\s*\S+|\s+")


@dataclass(frozen=True)
class Wrote:
    text: str
    tokens: tuple[str, ...]
    reason: str  # "stop" | "length"
    stop: str | None = None


class FakeModel:
    """Deterministic at temperature 0 and with a seed."""

    def __init__(self, book: str = "") -> None:
        self.book = book
        self._numbers = itertools.count()

    def write(
        self,
        prompt: str,
        *,
        constraint: Spec | None = None,
        max_tokens: int | None = None,
        stop: Sequence[str] = (),
        temperature: float = 0.0,
        seed: int | None = None,
        index: int = 0,
        include_stop: bool = False,
    ) -> Wrote:
        salt = ""
        if temperature > 0:
            salt = f"{seed if seed is not None else f'n{next(self._numbers)}'}/{index}"
        limit = 40 if max_tokens is None else max_tokens
        tokens = self._tokens(prompt, salt, limit + 1, constraint)
        text = ""
        kept: list[str] = []
        for token in tokens[:limit]:
            kept.append(token)
            text += token
            found = [(at, one) for one in stop if (at := text.find(one)) >= 0]
            if found:
                at, one = min(found)
                end = at + len(one) if include_stop else at
                return Wrote(text[:end], tuple(kept), "stop", one)
        return Wrote(text, tuple(kept), "stop" if len(tokens) <= limit else "length")

    def score(self, prompt: str, choice: str) -> list[float]:
        """Of each token of a choice."""
        return [
            -(zlib.crc32((prompt + token).encode()) % 90 + 1) / 10 for token in tokens_of(choice)
        ]

    def _tokens(self, prompt: str, salt: str, num: int, constraint: Spec | None) -> list[str]:
        if constraint is not None:
            return tokens_of(_sample(constraint, zlib.crc32((prompt + salt).encode())))
        if self.book and self._place(prompt) is not None:
            return tokens_of(self.book[self._place(prompt) :])[:num]
        tokens: list[str] = []
        for _ in range(num):
            number = zlib.crc32((salt + prompt).encode())
            if number % 29 == 0 and tokens:
                break
            tokens.append(_WORDS[number % len(_WORDS)])
            prompt += tokens[-1]
        return tokens

    def _place(self, prompt: str) -> int | None:
        for length in range(min(len(prompt), len(self.book)), -1, -1):
            if prompt.endswith(self.book[:length]):
                return length
        return None


def tokens_of(text: str) -> list[str]:
    return _TOKEN.findall(text)


def _sample(constraint: Spec, number: int) -> str:
    if isinstance(constraint, Lark | Gbnf):
        literals = re.findall(r'"([^"]*)"', constraint.text)
        return literals[number % len(literals)]
    if isinstance(constraint, JsonSchema):
        return sample_of(constraint, number % 2)
    return sample_of(constraint, number)
