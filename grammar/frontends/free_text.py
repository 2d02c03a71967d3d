"""Free text that ends where one of some triggers comes: the rules of an Aho-Corasick automaton.

Owns those rules and nothing else. Source: Aho & Corasick, "Efficient string matching", CACM 1975.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..expr import EMPTY, NEVER, Expr, alt, chars, lit, outside_ranges, ref, seq


class FreeText:
    """Writes the rules of free text, one for each proper prefix of a trigger.

    The rule `calls TRIGGER`, which the caller adds, is what follows a trigger. A phase begins at its rule `PHASE `, with the space.
    """

    def __init__(self, triggers: Sequence[str], rules: dict[str, Expr]) -> None:
        self._triggers = set(triggers)
        self._prefixes = {t[:size]: None for t in triggers for size in range(len(t))}
        self._characters = sorted(set("".join(triggers)))
        self._others = chars(*outside_ranges((ord(c), ord(c)) for c in self._characters))
        self._rules = rules

    def add(self, phase: str, after: str, *, may_end: bool, may_call: bool) -> None:
        """The rules of one phase; `after` is the phase that a tag leads to."""
        for prefix in self._prefixes:
            self._rules[f"{phase} {prefix}"] = self._state(prefix, phase, after, may_end, may_call)

    def _state(self, prefix: str, phase: str, after: str, may_end: bool, may_call: bool) -> Expr:
        moves: dict[str, list[str]] = {}
        ways: list[Expr] = [EMPTY if may_end else NEVER]
        for character in self._characters:
            reached = self._reached(prefix + character)
            if reached not in self._triggers:
                moves.setdefault(reached, []).append(character)
            elif may_call:
                ways.append(seq(lit(character), ref(f"calls {reached}"), ref(f"{after} ")))
        for reached, characters in moves.items():
            ways.append(seq(chars("".join(characters)), ref(f"{phase} {reached}")))
        return alt(*ways, seq(self._others, ref(f"{phase} ")))

    def _reached(self, text: str) -> str:
        """The longest end of `text` that begins a trigger, or is one."""
        while text not in self._prefixes and text not in self._triggers:
            text = text[1:]
        return text
