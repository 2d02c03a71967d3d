"""What a serving race says: nine workloads, the figure that counts in each, and whether the best peer was beaten.

Owns the list of figures with their floors, medians over rounds, ratios, and the printed table. Pure: reads the result dictionaries that
the serving harness writes, starts nothing.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Results = Mapping[str, Mapping[str, Any]]
"""Workload -> its figures, as one run of the harness writes them."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One row. `floor` is the ratio to the best peer, above 1 where ours is better, that counts as enough.

    `peer_key`: which figure says who the best peer is, where it is not this one. Of a pair that is a trade, both are held against one
    peer: a server that lets long prompts wait keeps its streams flat.
    """

    workload: str
    key: str
    text: str
    floor: float
    is_lower_better: bool = False
    peer_key: str = ""


FIGURES = (
    Figure("W1", "decode_tok_s", "one stream, decode tok/s", 1.15),
    Figure("W2", "out_tok_s", "32 streams, output tok/s", 1.3),
    Figure("W3", "prefill_tok_s", "1,500-token prompts, prefill tok/s", 1.1),
    Figure("W4", "req_s", "64 requests on one 1,000-token prefix, req/s", 1.3),
    Figure("W5", "wall_s", "8 conversations of 5 turns, wall s", 1 / 0.75, True),
    Figure("W6", "wall_s", "tree of 84 nodes, wall s", 1 / 0.75, True),
    Figure("W7", "valid_docs_s", "48 JSON extractions, valid documents/s", 2.0),
    Figure("W8", "win_itl_p99", "12 streams beside long prompts, their ITL p99 ms", 207 / 120, True, "long_ttft_p50"),
    Figure("W8", "long_ttft_p50", "the long prompts' TTFT p50 ms", 1.0, True),
    Figure("W9", "valid_docs_s", "JSON one at a time, valid documents/s", 2.0),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of every server that has it, and ours against the best peer's (None without one)."""

    figure: Figure
    values: dict[str, float]
    best_peer: str
    ratio: float | None

    @property
    def verdict(self) -> str:
        """met, missed, or nothing to compare with."""
        if self.ratio is None:
            return "no peer"
        return "met" if self.ratio >= self.figure.floor else "missed"


def median_of_rounds(rounds: Sequence[Results], workload: str, key: str) -> float | None:
    """The median over the rounds that have the figure."""
    found = [results.get(workload, {}).get(key) for results in rounds]
    numbers = [float(value) for value in found if value is not None]
    return statistics.median(numbers) if numbers else None


def rows_of(rounds: Mapping[str, Sequence[Results]], ours: str) -> list[Row]:
    """One row a figure. `rounds`: server -> its results, round by round."""
    rows: list[Row] = []
    for figure in FIGURES:
        values = _medians(rounds, figure.workload, figure.key)
        ranks = _medians(rounds, figure.workload, figure.peer_key or figure.key)
        peers = {name: ranks.get(name, math.inf) for name in values if name != ours}
        if not peers or ours not in values:
            rows.append(Row(figure, values, "", None))
            continue
        best = min(peers, key=lambda name: peers[name] * (1 if figure.is_lower_better else -1))
        own, other = values[ours], values[best]
        better, worse = (other, own) if figure.is_lower_better else (own, other)
        rows.append(Row(figure, values, best, better / worse if worse else None))
    return rows


def _medians(rounds: Mapping[str, Sequence[Results]], workload: str, key: str) -> dict[str, float]:
    found = {name: median_of_rounds(all_of, workload, key) for name, all_of in rounds.items()}
    return {name: value for name, value in found.items() if value is not None}


def losses(rounds: Mapping[str, Sequence[Results]]) -> dict[str, int]:
    """Requests that failed, by server, over all rounds and workloads."""
    return {
        name: sum(
            int(figures.get("failed") or 0) + int(figures.get("long_failed") or 0)
            for results in all_of
            for figures in results.values()
        )
        for name, all_of in rounds.items()
    }


def table(rows: Sequence[Row], servers: Sequence[str]) -> str:
    """The rows as Markdown."""
    head = ["", *servers, "ours : best peer", "floor", ""]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        cells = [f"{row.values[name]:g}" if name in row.values else "-" for name in servers]
        ratio = "-" if row.ratio is None else f"{row.ratio:.2f} ({row.best_peer})"
        name = f"{row.figure.workload} {row.figure.text}"
        lines.append(
            f"| {' | '.join([name, *cells, ratio, f'{row.figure.floor:.2f}', row.verdict])} |"
        )
    return "\n".join(lines)
