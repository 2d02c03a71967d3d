"""Deterministic automata as expressions without calls, by markers.

Owns that construction. A run of the automaton is written down as a text: the marker of the state before each symbol, and that of the state
after it. Two conditions that a short expression states make it a run: every triple (state, symbol, state) is a transition, and what one
triple ends in, the next begins with. Their intersection, with the markers erased, is the automaton's language, in about as many states as
it has itself. State elimination would give an expression that grows exponentially. Knows nothing of numbers or schemas.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from ...expr import EMPTY, NEVER, Erase, Expr, alt, byte_set, conj, lit, seq, star

_MARKERS = range(0x80, 0x100)  # bytes of no symbol
_ALL_MARKERS = sum(1 << byte for byte in _MARKERS)


def acceptor(rows: Sequence[Mapping[int, Iterable[int]]], accepting: Collection[int]) -> Expr:
    """The language of an automaton over ASCII bytes, without calls.

    `rows[state]` maps each next state to the bytes that lead there; state 0 starts; texts end in one of `accepting`.
    """
    if not accepting:
        return NEVER
    width = 1
    while len(_MARKERS) ** width < len(rows):
        width += 1
    marks = [_mark(state, width) for state in range(len(rows))]
    sources: dict[int, list[Expr]] = {}
    symbols: set[int] = set()
    for state, row in enumerate(rows):
        for target, found in row.items():
            bytes_found = set(found)
            symbols |= bytes_found
            sources.setdefault(target, []).append(seq(lit(marks[state]), byte_set(bytes_found)))
    triples = [seq(alt(*parts), lit(marks[target])) for target, parts in sources.items()]
    joints = [seq(lit(marks[target] * 2)) for target in sources]
    ends = [lit(marks[target]) for target in sources if target in accepting]
    symbol = byte_set(symbols)
    run = seq(lit(marks[0]), star(seq(symbol, alt(*joints))), symbol, alt(*ends))
    language = Erase(conj(star(alt(*triples)), run), _ALL_MARKERS)
    return alt(EMPTY, language) if 0 in accepting else language


def _mark(state: int, width: int) -> bytes:
    digits = bytearray()
    for _ in range(width):
        state, digit = divmod(state, len(_MARKERS))
        digits.append(_MARKERS[digit])
    return bytes(digits)
