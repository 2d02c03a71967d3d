"""Member sets as the flat arrays of a program, and back.

Owns that translation, for the compiler's last pass and for whoever reads a program. Knows nothing of graphs or stacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from .member_sets import MemberSet, SetMove
from .program import I32, I64, GrammarProgram

_ORDERED = 1
_RUN = 1


class SetArrays(TypedDict):
    """The set fields of a GrammarProgram, apart from set_from and set_id."""

    set_exit: I32
    set_separator: I32
    set_lo: I64
    set_hi: I64
    set_flags: I32
    member_start: I32
    member_region: I32
    member_flags: I32
    clause_start: I32
    literal_start: I32
    literals: I32


def set_arrays(sets: Sequence[SetMove]) -> SetArrays:
    """All sets of a program."""
    rules = [table.rules for table in sets]
    clauses = [clause for rule in rules for clause in rule.clauses]
    literals = [_literals(needs, bars) for needs, bars in clauses]
    his = [-1 if rule.hi is None else rule.hi for rule in rules]
    return {
        "set_exit": np.array([table.exit for table in sets], dtype=np.int32),
        "set_separator": np.array([table.separator for table in sets], dtype=np.int32),
        "set_lo": np.array([rule.lo for rule in rules], dtype=np.int64),
        "set_hi": np.array(his, dtype=np.int64),
        "set_flags": np.array([_ORDERED * rule.is_ordered for rule in rules], dtype=np.int32),
        "member_start": _starts([rule.num_items for rule in rules]),
        "member_region": np.array([r for table in sets for r in table.members], dtype=np.int32),
        "member_flags": np.array(
            [_RUN * (rule.runs >> item & 1) for rule in rules for item in range(rule.num_items)],
            dtype=np.int32,
        ),
        "clause_start": _starts([len(rule.clauses) for rule in rules]),
        "literal_start": _starts(list(map(len, literals))),
        "literals": np.array([item for row in literals for item in row], dtype=np.int32),
    }


def set_tables(program: GrammarProgram) -> list[SetMove]:
    """The sets of a program whose arrays are in order."""
    tables: list[SetMove] = []
    member_start, clause_start = program.member_start.tolist(), program.clause_start.tolist()
    literal_start = program.literal_start.tolist()
    for number in range(program.set_exit.size):
        first, last = member_start[number], member_start[number + 1]
        flags = program.member_flags[first:last].tolist()
        clauses = [
            _clause(program.literals[literal_start[c] : literal_start[c + 1]].tolist())
            for c in range(clause_start[number], clause_start[number + 1])
        ]
        hi = int(program.set_hi[number])
        rules = MemberSet(
            last - first,
            sum(1 << item for item, flag in enumerate(flags) if flag & _RUN),
            tuple(clauses),
            int(program.set_lo[number]),
            None if hi < 0 else hi,
            bool(program.set_flags[number] & _ORDERED),
        )
        members = tuple(program.member_region[first:last].tolist())
        separator, after = int(program.set_separator[number]), int(program.set_exit[number])
        tables.append(SetMove(members, separator, rules, after))
    return tables


def _starts(sizes: Sequence[int]) -> I32:
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).astype(np.int32)


def _literals(needs: int, bars: int) -> list[int]:
    width = max(needs.bit_length(), bars.bit_length())
    needed = [item for item in range(width) if needs >> item & 1]
    return needed + [-1 - item for item in range(width) if bars >> item & 1]


def _clause(literals: Sequence[int]) -> tuple[int, int]:
    needs = sum({1 << item for item in literals if item >= 0})
    return needs, sum({1 << (-1 - item) for item in literals if item < 0})
