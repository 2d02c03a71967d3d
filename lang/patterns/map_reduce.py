"""Map-reduce over a long text: each part on its own, then the results together, in levels if they are many.

    summary = map_reduce(
        s, split_text(document, max_chars=2000),
        lambda part: user(f"Summarize:\\n{part}") + assistant(gen("note", max_tokens=60)), "note",
        lambda notes: user("Join these notes:\\n" + "\\n".join(notes)) + assistant(gen("note", max_tokens=80)),
        num_joined=8,
    )

Owns the levels and the split of a text. The state's own text, with instructions and examples, stands before every part and is computed once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .winners import append, check_number, close_all, read_all

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..state import State
    from .winners import Part


def map_reduce(
    s: State,
    parts: Sequence[Any],
    map_part: Callable[[Any], Part],
    name: str,
    reduce: Callable[[list[Any]], Part],
    *,
    num_joined: int = 8,
) -> Any:
    """Map each part on a fork, then join at most `num_joined` results at a time on forks until one is left; its value.

    Both kinds of part set the variable `name`. The last join is made on the state itself, so that it goes on from there; a single part is
    joined too. A part whose result is no value is left out; OutputError if none has one.
    """
    check_number("num_joined", num_joined, least=2)
    results = _on_forks(s, [map_part(part) for part in parts], name)
    while len(results) > num_joined:
        groups = [results[at : at + num_joined] for at in range(0, len(results), num_joined)]
        results = _on_forks(s, [reduce(group) for group in groups], name)
    append(s, reduce(results))
    return s[name]


def split_text(text: str, max_chars: int) -> list[str]:
    """The text in parts of at most so many characters, cut at paragraphs, else at lines, sentences, words; white space between is dropped."""
    check_number("max_chars", max_chars)
    parts: list[str] = []
    rest = text.strip()
    while len(rest) > max_chars:
        head = rest[: max_chars + 1]
        ends = (head.rfind(mark) + len(mark.rstrip()) for mark in ("\n\n", "\n", ". ", " "))
        cut = next((end for end in ends if end > max_chars // 4), max_chars)
        parts.append(rest[:cut].rstrip())
        rest = rest[cut:].lstrip()
    return [*parts, rest] if rest else parts


def _on_forks(s: State, works: list[Part], name: str) -> list[Any]:
    forks = s.fork(max(len(works), 1))
    try:
        for fork, work in zip(forks, works, strict=False):
            append(fork, work)
        return [value for _, value in read_all(list(forks)[: len(works)], name)[0]]
    finally:
        close_all(forks)
