"""Texts of several runs as one row of parts: what is constant, and what stands there as an argument or a result.

Owns the alignment. A row is right if it gives, in each run, the text that was seen there. It is found by walking through all texts side by
side: where a source's text comes next in all of them, it may be a hole, else the next character must be the same in all. A source that was
the same in all runs is no hole, nothing shows that it is one. Must not know programs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .script import Argument, Constant, Part, Result

Source = Argument | Result


def row_of(
    texts: Sequence[str], sources: Mapping[Source, Sequence[str]]
) -> tuple[Part, ...] | None:
    """The parts that give `texts[i]` in run i, of `sources` with their text in each run; None if there are none. The longest holes count."""
    if len(set(texts)) == 1:
        return (Constant(texts[0]),) if texts[0] else ()
    varying = sorted(
        ((source, row) for source, row in sources.items() if len(set(row)) > 1),
        key=lambda pair: -len(pair[1][0]),
    )
    begin: tuple[int, ...] = (0,) * len(texts)
    end = tuple(map(len, texts))
    came_by: dict[tuple[int, ...], tuple[tuple[int, ...], Source | str] | None] = {begin: None}
    todo: list[tuple[int, ...]] = [begin]
    while todo:
        place = todo.pop()
        if place == end:
            return _parts(came_by, end)
        # the last one pushed is tried first: holes before characters, long ones before short ones
        for after, what in _moves(texts, varying, place):
            if after not in came_by:
                came_by[after] = (place, what)
                todo.append(after)
    return None


def _moves(
    texts: Sequence[str],
    varying: Sequence[tuple[Source, Sequence[str]]],
    place: tuple[int, ...],
) -> list[tuple[tuple[int, ...], Source | str]]:
    moves: list[tuple[tuple[int, ...], Source | str]] = []
    following = {text[at : at + 1] for text, at in zip(texts, place, strict=True)}
    if len(following) == 1 and "" not in following:
        moves.append((tuple(at + 1 for at in place), following.pop()))
    for source, row in reversed(varying):
        seen = zip(texts, row, place, strict=True)
        if all(text.startswith(piece, at) for text, piece, at in seen):
            after = tuple(at + len(piece) for at, piece in zip(place, row, strict=True))
            moves.append((after, source))
    return moves


def _parts(
    came_by: Mapping[tuple[int, ...], tuple[tuple[int, ...], Source | str] | None],
    end: tuple[int, ...],
) -> tuple[Part, ...]:
    backwards: list[Source | str] = []
    place = end
    while (step := came_by[place]) is not None:
        place, what = step
        backwards.append(what)
    parts: list[Part] = []
    for what in reversed(backwards):
        if not isinstance(what, str):
            parts.append(what)
        elif parts and isinstance(parts[-1], Constant):
            parts[-1] = Constant(parts[-1].text + what)
        else:
            parts.append(Constant(what))
    return tuple(parts)
