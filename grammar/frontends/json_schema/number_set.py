"""A set of numbers, as keywords describe it: bounds, multiples, excluded values.

Owns the data type and membership. One set is a conjunction; a disjunction of sets is several shapes. Knows nothing of text.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

import msgspec
from msgspec.structs import replace


class NumberSet(msgspec.Struct, frozen=True, gc=False):
    """Numbers inside bounds that are multiples of all of `multiples` and of none of `not_multiples`, and are not in `excluded`."""

    low: Decimal | None = None
    high: Decimal | None = None
    low_open: bool = False  # low itself is out
    high_open: bool = False
    multiples: tuple[Fraction, ...] = ()
    not_multiples: tuple[Fraction, ...] = ()
    excluded: tuple[Decimal, ...] = ()

    def above(self, bound: Decimal, is_open: bool) -> NumberSet:
        """With the lower bound `bound` too."""
        if self.low is None or bound > self.low or (bound == self.low and is_open):
            return replace(self, low=bound, low_open=is_open)
        return self

    def below(self, bound: Decimal, is_open: bool) -> NumberSet:
        """With the upper bound `bound` too."""
        if self.high is None or bound < self.high or (bound == self.high and is_open):
            return replace(self, high=bound, high_open=is_open)
        return self

    def divided(self, step: Fraction) -> NumberSet:
        """Multiples of `step` only."""
        return self if step in self.multiples else replace(self, multiples=(*self.multiples, step))

    def undivided(self, step: Fraction) -> NumberSet:
        """Only what is not a multiple of `step`."""
        return replace(self, not_multiples=(*self.not_multiples, step))

    def without(self, value: Decimal) -> NumberSet:
        """All but `value`."""
        return replace(self, excluded=(*self.excluded, value))

    def holds(self, value: Decimal) -> bool:
        """Is `value` in the set?"""
        if self.low is not None and (value < self.low or (self.low_open and value == self.low)):
            return False
        if self.high is not None and (value > self.high or (self.high_open and value == self.high)):
            return False
        if self.multiples or self.not_multiples:
            exact = Fraction(value)
            if any((exact / step).denominator != 1 for step in self.multiples):
                return False
            if any((exact / step).denominator == 1 for step in self.not_multiples):
                return False
        return value not in self.excluded

    @property
    def is_empty(self) -> bool:
        """Do the bounds leave nothing?"""
        if self.low is None or self.high is None:
            return False
        return self.low > self.high or (self.low == self.high and (self.low_open or self.high_open))

    def whole_bounds(self) -> tuple[int | None, int | None]:
        """The least and greatest whole number inside the bounds."""
        low = high = None
        if self.low is not None:
            low = ceil(self.low) + (1 if self.low_open and self.low == ceil(self.low) else 0)
        if self.high is not None:
            high = floor(self.high) - (1 if self.high_open and self.high == floor(self.high) else 0)
        return low, high
