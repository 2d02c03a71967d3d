"""Explanations, refusals and verdicts as lines of plain text.

Owns their words and looks: columns, the line of a text with a caret. Knows nothing of terminals; whoever prints adds nothing.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

from .checking import Verdict
from .expected import shown
from .explanation import Explanation, Refusal
from .schema_report import KeywordReport

_LABEL = 20
_MAX_TEXT = 200
_MAX_ROWS = 60
_MAX_LOOSE = 8
_MAX_LINE = 100
_BEFORE_CARET = 60
_ORDER = ("left out", "not asserted", "not used", "annotation", "enforced")


def explanation_lines(explanation: Explanation, *, unit: str = "tokens") -> Iterator[str]:
    """All of an explanation; `unit` is what the vocabulary is made of."""
    needed = explanation.max_tokens_needed
    empty = ", or nothing at all" if explanation.may_be_empty else ""
    first = " ".join(map(shown, explanation.first_tokens))
    num_bytes = len(explanation.sample.encode())
    share = f" ({100 * explanation.sample_forced_bytes / num_bytes:.0f} %)" if num_bytes else ""
    rows = [
        ("compiled", f"{explanation.num_states:,} states, {explanation.num_edges:,} edges, {explanation.num_regions:,} regions,"
                     f" {explanation.num_bytes:,} bytes, {1e3 * explanation.compile_s:.0f} ms"),
        ("always begins with", _line(explanation.forced_text) or "(nothing fixed)"),
        (f"first {unit}", f"{explanation.num_first_tokens:,}{empty}: {first}"),
        ("shortest", _line(explanation.shortest) or "(the empty text)"),
        (f"{unit} needed", "no number suffices" if needed is None else f"{needed:,} suffice for the shortest"),
        ("a sample", _line(explanation.sample) or "(the empty text)"),
        ("of it forced", f"{explanation.sample_forced_bytes:,} of {num_bytes:,} bytes{share}"),
    ]  # fmt: skip
    rows += [
        ("limit near", f"{use.name}: {use.used:,} of {use.limit:,}")
        for use in explanation.limits_near
    ]
    loose = explanation.loose_objects
    rows += [("loose", each.advice()) for each in loose[:_MAX_LOOSE]]
    if len(loose) > _MAX_LOOSE:
        rows.append(("loose", f"and {len(loose) - _MAX_LOOSE} more objects, which --json lists"))
    for label, value in rows:
        yield f"{label:<{_LABEL}} {value}"
    yield from _keyword_lines(explanation.keywords)


def refusal_lines(refusal: Refusal) -> Iterator[str]:
    """Why a constraint is refused: the message, the line it is about, what could be done."""
    place = f" (at {refusal.place})" if refusal.place else ""
    message, _, excerpt = refusal.message.partition("\n")
    yield f"refused: {message}{place}"
    if excerpt:
        yield excerpt
    elif refusal.line is not None and refusal.column is not None:
        yield from _pointed(refusal.line_text, refusal.column, f"{refusal.line}: ")
    if refusal.hint:
        yield refusal.hint
    if refusal.could_leave_out:
        yield "--best-effort would leave out:"
        yield from _table([(r.place, r.keyword, r.reason) for r in refusal.could_leave_out])


def verdict_lines(verdict: Verdict, num_tokens: int | None = None) -> Iterator[str]:
    """What became of a text; `num_tokens` is what it is in a model's tokens."""
    tokens = "" if num_tokens is None else f", {num_tokens:,} tokens"
    differs = " and ".join(verdict.differs_in)
    if verdict.outcome == "accepted":
        yield f"accepted{tokens}"
        if differs:
            yield f"It differs from compact text in declared order in {differs}."
        return
    within = f", in the value at {verdict.pointer}" if verdict.pointer.strip("#") else ""
    what = "incomplete" if verdict.outcome == "incomplete" else "not an output"
    yield f"{verdict.line}:{verdict.column}: {what}{within}{tokens}"
    yield from _pointed(verdict.line_text, verdict.column, "")
    found = "" if verdict.outcome == "incomplete" else f"found {verdict.found}, "
    yield f"{found}expected {listed(verdict.expected)}"
    if differs:
        yield f"With other {differs} allowed it would be an output: see --whitespace and --any-order."
    if verdict.note:
        yield verdict.note[:1].upper() + verdict.note[1:] + "."
    if verdict.completion:
        yield f"shortest way to an output from here: {shown(verdict.completion)}"


def listed(words: Sequence[str]) -> str:
    """The words with commas and one "or"."""
    return " or ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def _keyword_lines(keywords: Sequence[KeywordReport]) -> Iterator[str]:
    if not keywords:
        return
    counts = Counter(report.how for report in keywords)
    tally = ", ".join(f"{counts[how]} {how}" for how in reversed(_ORDER) if counts[how])
    yield f"{'keywords':<{_LABEL}} {tally}"
    rows = sorted(keywords, key=lambda report: _ORDER.index(report.how))
    yield from _table(
        [
            (r.place, _line(r.value), f"{r.how}: {r.reason}" if r.reason else r.how)
            for r in rows[:_MAX_ROWS]
        ]
    )
    if len(rows) > _MAX_ROWS:
        yield f"  and {len(rows) - _MAX_ROWS} more, which --json lists"


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Columns as wide as their widest cell, indented."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()


def _pointed(line: str, column: int, label: str) -> Iterator[str]:
    """Part of a line, and below it a caret under its `column` (from 1); nothing for an empty line."""
    if not line:
        return
    index = column - 1
    start = 0 if len(line) <= _MAX_LINE else max(0, index - _BEFORE_CARET)
    part = line[start : start + _MAX_LINE]
    lead = f"    {label}{'...' if start else ''}"
    tail = "..." if start + _MAX_LINE < len(line) else ""
    before = "".join(_cell(c) for c in part[: index - start])
    yield f"{lead}{''.join(map(_cell, part))}{tail}"
    yield f"{' ' * (len(lead) + sum(map(_width, before)))}^"


def _cell(character: str) -> str:
    return character if character.isprintable() else " "


def _width(character: str) -> int:
    """Columns that a terminal gives a character."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def _line(text: str) -> str:
    """A text on one line, cut if it is long."""
    cut = text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)
