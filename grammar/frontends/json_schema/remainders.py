"""Divisibility of decimal texts as a deterministic automaton: what is left after division, digit by digit.

Owns the automaton of "digits, and after a point more digits, that together are a multiple of p/10**q": read as one number without the
point and with zeros behind it up to place q, a multiple of p, and behind place q only zeros. Leading zeros, signs and lengths are the
caller's. Remainders that no continuation tells apart are one state, so the factors 2 and 5 of p cost little. Knows nothing of schemas.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import count

import msgspec

from ....errors import GrammarError
from ...expr import Expr
from .acceptors import acceptor

MAX_REMAINDERS = 800
"""The most states of an automaton of multiples. Products with bounds and lengths are many times as large."""

_POINT, _ZERO = 0x2E, 0x30
_State = tuple[object, ...]


class Multiples(msgspec.Struct, frozen=True, gc=False):
    """The texts of multiples, how many states their automaton has, and how many remainders p has without its factors 2 and 5."""

    text: Expr
    num_states: int
    num_coprime: int


@lru_cache(maxsize=64)
def multiples_of(p: int, num_places: int, has_point: bool) -> Multiples:
    """Texts of digits, with a point and digits or (always without `has_point`) none, whose value is a multiple of p/10**num_places.

    GrammarError with keyword `multipleOf` if that takes more than `MAX_REMAINDERS` states.
    """
    states = _Remainders(p, num_places)
    start = states.whole(0)
    numbers: dict[_State, int] = {start[0]: 0}
    found = [start]
    rows: list[dict[int, list[int]]] = []
    accepting: set[int] = set()
    for number, (key, remainder) in enumerate(found):
        row: dict[int, list[int]] = {}
        for byte, after in states.moves(key, remainder, has_point=has_point):
            if after[0] not in numbers:
                if len(found) >= MAX_REMAINDERS:
                    raise GrammarError(
                        f"multipleOf leaves more than {MAX_REMAINDERS} remainders to tell apart",
                        keyword="multipleOf",
                    )
                numbers[after[0]] = len(found)
                found.append(after)
            row.setdefault(numbers[after[0]], []).append(byte)
        rows.append(row)
        if states.accepts(key, remainder):
            accepting.add(number)
    return Multiples(acceptor(rows, accepting), len(rows), states.num_coprime)


class _Remainders:
    """The states: a key that tells apart what must be told apart, and a remainder that stands for all of that key."""

    def __init__(self, p: int, num_places: int) -> None:
        self._p = p
        self._places = num_places
        self.num_coprime = p  # without the factors 2 and 5
        for factor in (2, 5):
            while self.num_coprime % factor == 0:
                self.num_coprime //= factor
        self._depth = next(n for n in count() if 10**n % (p // self.num_coprime) == 0)

    def whole(self, remainder: int) -> tuple[_State, int]:
        """Before the point, with that remainder so far."""
        # n more digits and all places make any number below 10**(n + places); those with which a multiple comes out are what matters
        missing = (
            self._missing(remainder, n + self._places)
            for n in range(max(self._depth - self._places, 0) + 1)
        )
        return ("whole", remainder % self.num_coprime, *missing), remainder

    def _missing(self, remainder: int, num_digits: int) -> int | None:
        """What must be added behind `num_digits` more digits to make a multiple: the least such number, None when it has more digits."""
        missing = -remainder * 10**num_digits % self._p
        return missing if missing < 10**num_digits else None

    def _place(self, place: int, remainder: int) -> tuple[_State, int] | None:
        missing = self._missing(remainder, self._places - place)
        return None if missing is None else (("place", place, missing), remainder)

    def moves(
        self, key: _State, remainder: int, *, has_point: bool
    ) -> list[tuple[int, tuple[_State, int]]]:
        """(byte, what follows) for every byte after which a multiple can still come."""
        moves: list[tuple[int, tuple[_State, int] | None]] = []
        if key[0] == "whole":
            moves += [
                (_ZERO + digit, self.whole((10 * remainder + digit) % self._p))
                for digit in range(10)
            ]
            if has_point:
                moves.append((_POINT, self._place(0, remainder)))
        else:
            place = key[1]
            assert isinstance(place, int)
            if place == self._places:
                moves.append((_ZERO, (key, remainder)))
            else:
                for digit in range(10):
                    after = (10 * remainder + digit) % self._p
                    moves.append((_ZERO + digit, self._place(place + 1, after)))
        return [(byte, after) for byte, after in moves if after is not None]

    def accepts(self, key: _State, remainder: int) -> bool:
        """Is the text so far a multiple? What stands behind it counts as zeros."""
        place = key[1] if key[0] == "place" else 0
        assert isinstance(place, int)
        return remainder * 10 ** (self._places - place) % self._p == 0
