"""Figures out of the mask harness's result files.

Owns what is counted and which quantiles are told. Knows nothing of engines. Quantiles of times come from the harness's own histograms
(bins of 2 %), sums and maxima are exact.
"""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FIRST = ("p50", 0.5), ("p95", 0.95), ("p99", 0.99)
RATIO_ROWS = frozenset(
    [
        "preparation ms",
        *(f"{name} us {label}" for name in ("first mask", "compile") for label in ("p50", "p95", "p99")),
        *(f"{name} us {label}" for name in ("mask", "mask, first walks", "mask, later walks", "accept") for label in ("mean", "p50", "p99", "max")),
    ]
)  # fmt: skip


@dataclass(frozen=True)
class Figures:
    """What one engine did on some rows: counts (of rows), and times in microseconds."""

    engine: str
    num_rows: int
    rows: dict[str, float | int]


def harness(path: Path) -> Any:
    """The harness as a module, for its histograms."""
    spec = importlib.util.spec_from_file_location("maskbench", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def figures_of(maskbench: Any, engine: str, paths: Sequence[Path]) -> Figures:
    """The figures of all result files together."""
    rows: list[dict[str, Any]] = []
    preparation: list[float] = []
    for path in paths:
        with path.open(encoding="utf-8") as lines:
            head, *found = map(json.loads, lines)
        preparation.append(head["init_ms"])
        rows += found
    status = Counter(part for row in rows for part in row["status"].split("+"))
    figures: dict[str, float | int] = {
        "exactly right": status["ok"],
        "exactly right %": 100 * status["ok"] / max(len(rows), 1),
        "valid refused": status["over"],
        "invalid accepted": status["under"],
        "refused at compile": status["error"],
        "too slow or crashed": sum(
            status[name] for name in ("timeout", "walk-timeout", "crash", "walk-error")
        ),
        "mask and accept disagree": sum(row.get("disagree", 0) for row in rows),
    }
    for layout in ("default", "compact", "indent2"):
        if any(layout in row.get("over", ()) for row in rows):
            figures[f"valid refused as {layout}"] = sum(
                bool(row.get("over", {}).get(layout)) for row in rows
            )
    figures["preparation ms"] = sorted(preparation)[len(preparation) // 2]
    for name, key in (("compile", "compile_us"), ("first mask", "ttfm_us")):
        times = sorted(row[key] for row in rows if key in row)
        for label, share in _FIRST:
            figures[f"{name} us {label}"] = _quantile(times, share)
    figures |= _walk_times(maskbench, rows)
    return Figures(engine, len(rows), figures)


def _walk_times(maskbench: Any, rows: Sequence[dict[str, Any]]) -> dict[str, float | int]:
    """Times of masks and accepts; masks of a row's first walk, which fills the memo, also apart."""
    hists = {name: maskbench.Hist() for name in ("mask", "cold", "acc")}
    for row in rows:
        for name, hist in hists.items():
            if name in row:
                hist.merge(maskbench.Hist(row[name]))
    later = maskbench.Hist()
    later.b = hists["mask"].b - hists["cold"].b
    later.n = hists["mask"].n - hists["cold"].n
    later.sum = hists["mask"].sum - hists["cold"].sum
    later.max = max((float(upper) for upper in _tops(maskbench, later)), default=0.0)
    figures: dict[str, float | int] = {}
    for name, hist in (
        ("mask", hists["mask"]),
        ("mask, first walks", hists["cold"]),
        ("mask, later walks", later),
        ("accept", hists["acc"]),
    ):
        figures[f"{name} us mean"] = hist.sum / max(hist.n, 1)
        figures[f"{name} us p50"] = hist.q(0.5)
        figures[f"{name} us p99"] = hist.q(0.99)
        figures[f"{name} us max"] = float(hist.max)
    figures["masks"] = hists["mask"].n
    return figures


def _tops(maskbench: Any, hist: Any) -> list[float]:
    """The middle of the highest bin, as the harness reads its bins."""
    return [hist.q(1.0)] if hist.n else []


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")
