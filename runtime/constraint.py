"""One request's grammar position and the engine's policy on top of it. Owns a matcher; knows no automaton and no model.

The matcher says what the language allows. On top of it stand three rules of the engine:

- closing in time: once the shortest way out fits the tokens that remain, masks are asked with that budget, so the text
  always closes; when not even the first way out fits, the budget rule is off and the output may end by "length";
- bans (EOS and stop ids before min_tokens, EOS under ignore_eos) leave the mask, unless nothing else would remain: a
  complete sentence beats them;
- a matcher that fails or raises is a message, never an exception that could reach another request.
"""

from __future__ import annotations

from typing import Protocol

from .plan import U32


class MatcherLike(Protocol):
    """What the engine asks of a grammar matcher (see `grammar.matcher`)."""

    @property
    def is_accepting(self) -> bool:
        """The text so far is a sentence."""
        ...

    @property
    def is_complete(self) -> bool:
        """The text so far is a sentence and nothing may follow."""
        ...

    @property
    def error(self) -> str | None:
        """Why the matcher refused a token, or None."""
        ...

    def fill_mask(self, out: U32, budget: int | None = None) -> None:
        """Write the allowed tokens as bits; with `budget`, only those after which the text can still close."""
        ...

    def advance(self, token_id: int) -> bool:
        """Consume one token; False means refused."""
        ...

    def fork(self) -> MatcherLike:
        """An independent matcher at the same place."""
        ...

    def forced_bytes(self, max_bytes: int = 256) -> bytes:
        """The only continuation, cut to whole code points; empty when there is a choice."""
        ...

    def distance(self) -> int:
        """An upper bound on the tokens to a complete sentence."""
        ...


class Constraint:
    """A matcher with the engine's rules. `max_tokens` is the request's whole output budget."""

    __slots__ = ("_closes_in_time", "matcher")

    def __init__(self, matcher: MatcherLike, max_tokens: int) -> None:
        self.matcher = matcher
        self._closes_in_time = matcher.distance() <= max_tokens

    def fill_mask(self, out: U32, remaining: int, bans: U32 | None) -> None:
        """Write this request's mask into `out` [W]. `remaining` tokens may still come, this one included."""
        self.matcher.fill_mask(out, remaining if self._closes_in_time else None)
        if bans is not None:
            rest = out & ~bans
            if rest.any():
                out[:] = rest

    def accept(self, token_id: int) -> str | None:
        """Consume a sampled token. None when accepted, else what went wrong."""
        try:
            if self.matcher.advance(token_id):
                return None
            return self.matcher.error or f"the grammar refused token {token_id}"
        except Exception as error:  # noqa: BLE001 - a defect of one grammar must not reach other requests
            return f"the grammar failed on token {token_id}: {error!r}"

    def can_follow(self, matcher: MatcherLike, remaining: int) -> bool:
        """May `matcher`, some forced tokens ahead, replace the present one with `remaining` tokens left?"""
        return not self._closes_in_time or matcher.is_accepting or matcher.distance() <= remaining

    @property
    def is_accepting(self) -> bool:
        """The text so far is a sentence of the grammar."""
        return self.matcher.is_accepting

    @property
    def is_complete(self) -> bool:
        """The text so far is a sentence and nothing may follow it."""
        return self.matcher.is_complete

    def fork(self) -> Constraint:
        """An independent constraint at the same place, for a sibling sample."""
        twin = Constraint.__new__(Constraint)
        twin.matcher = self.matcher.fork()
        twin._closes_in_time = self._closes_in_time
        return twin
