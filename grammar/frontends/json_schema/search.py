"""The search for all ways to satisfy a conjunction of schemas.

Owns how choices are made: what leaves no choice is taken at once, options that contradict what is known are dropped before anything is
branched on, and so are demands that are met by what is known. Knows nothing of any keyword; `normal` reads the schemas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import GrammarError
from . import unevaluated_keywords
from .branch import Branch, Choice, Option, Origin, opposite
from .shape import Atom, Shape

if TYPE_CHECKING:
    from .normal import Normaliser

_MAX_BRANCHES = 10_000  # ways looked at for one conjunction of schemas
# from here on each branch is looked through for required properties without a value
_MANY_BRANCHES = 32


class TooManyWays(GrammarError):
    """A conjunction can be satisfied in more ways than are looked at."""


class Search:
    """One search through the options of a conjunction."""

    def __init__(self, normaliser: Normaliser, loose: bool, pointer: str) -> None:
        self._normaliser = normaliser
        self._is_loose = loose
        self._pointer = pointer
        self._num_branches = 0
        self._found: list[Shape] = []

    def run(self, branch: Branch) -> list[Shape]:
        """Every shape found."""
        self._explore(branch)
        return self._found

    def _finish(self, branch: Branch) -> None:
        shape = branch.shape
        shape.settle()
        shape.pointer = self._pointer
        if branch.evaluated:
            unevaluated_keywords.settle(self._normaliser.reading, branch)
        if not shape.is_contradictory:
            self._found.append(shape)

    def _explore(self, branch: Branch) -> None:
        if not self._propagate(branch):
            return
        if (
            self._num_branches > _MANY_BRANCHES
            and not self._is_loose
            and self._normaliser.is_empty_shape(branch.shape, 1)
        ):
            return
        if not branch.choices:
            self._finish(branch)
            return
        first = min(branch.choices, key=lambda choice: len(choice.requirement))
        others = [choice for choice in branch.choices if choice is not first]
        for option in first.requirement:
            self._num_branches += 1
            if self._num_branches > _MAX_BRANCHES:
                raise TooManyWays(
                    f"anyOf, oneOf, not and if leave more than {_MAX_BRANCHES} ways to satisfy this schema",
                    place=first.origin.atom.node.pointer,
                )
            narrowed = branch.fork(others)
            narrowed.take(option, first.origin, first.place)
            self._explore(narrowed)

    def _propagate(self, branch: Branch) -> bool:
        """Take everything that leaves no choice; False on a contradiction."""
        while True:
            if not self._read_pending(branch):
                return False
            if not branch.choices:
                return True
            open_choices: list[Choice] = []
            for choice in branch.choices:
                if branch.is_met(choice) or self._goes_without_saying(choice, branch):
                    continue
                options = [o for o in choice.requirement if not self._is_denied(o, branch)]
                if not options:
                    return False
                if len(options) == 1:
                    branch.take(options[0], choice.origin, choice.place)
                else:
                    open_choices.append(Choice(options, choice.origin, choice.place))
            branch.choices = open_choices
            if branch.shape.is_contradictory:
                return False
            if not branch.pending:
                return True

    def _read_pending(self, branch: Branch) -> bool:
        position = 0
        pending = branch.pending
        while position < len(pending):
            origin = pending[position]
            position += 1
            atom = origin.atom
            known = branch.seen.get(atom)
            if known is None:
                if branch.seen and opposite(atom) in branch.seen:
                    _refuse_circle(origin)
                    return False
                branch.seen[atom] = (origin.watches,)
                if not atom.positive and self._is_excluded(opposite(atom), branch):
                    continue  # it holds without saying
            else:
                _refuse_circle(origin)
                if origin.watches in known:
                    continue
                branch.seen[atom] = (*known, origin.watches)
            self._normaliser.read(origin, branch)
            if branch.shape.is_contradictory:
                return False
        pending.clear()
        return True

    def _is_denied(self, option: Option, branch: Branch) -> bool:
        """Does an option contradict what the branch holds already? With one choice left it is quicker to try."""
        for part in option:
            if isinstance(part, Atom) and (
                opposite(part) in branch.seen
                or (part.positive and len(branch.choices) > 1 and self._is_excluded(part, branch))
            ):
                return True
        return False

    def _goes_without_saying(self, choice: Choice, branch: Branch) -> bool:
        """Does the choice only make sure of a complement that what is known by now implies?"""
        atom = choice.origin.atom
        return not atom.positive and self._is_excluded(opposite(atom), branch)

    def _is_excluded(self, atom: Atom, branch: Branch) -> bool:
        """Is it plain that nothing of the branch satisfies `atom`?"""
        excludes, shape = self._normaliser.exclusion.excludes, branch.shape
        return any(
            other.positive and excludes(atom, other, shape.kinds, shape.required)
            for other in branch.seen
        )


def _refuse_circle(origin: Origin) -> None:
    if origin.above is not None and origin.above.stems_from(origin.atom):
        raise GrammarError(
            "the schema refers to itself without entering a value: it means nothing",
            place=origin.atom.node.pointer,
            keyword="$ref",
        )
