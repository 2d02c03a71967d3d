"""radixlm beside OpenVINO GenAI and llama.cpp on nine serving workloads, in one run: `make bench-serve`.

The harness (`../shared/bench/serve_bench.py`) starts each server, drives it over HTTP and ends it. Rounds are interleaved: every server
does a round before any does the next, so that a slow minute of the machine hits all of them; reported are medians over rounds, and ours
against the best peer. Before and after each round the memory's read rate is measured on one and on all threads: a round in which more
threads do not read more is void, because then the machine was busy.

    --peers DIR      where `../shared/bench/peers/install.sh` put its `venvs`; a peer that is not there is left out, and said so
    --tokenizer DIR  a folder with the model's tokenizer.json, which OpenVINO's server wants
    --rounds N       default 3     --workloads W1,W3     --out FILE.json

Run: .venv/bin/python tests/bench/serve_race.py --peers DIR --tokenizer DIR     about 4 minutes a server and round
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from serve_table import Results, losses, rows_of, table

from radixlm.doctor import machine_facts, read_rate

HARNESS = Path(__file__).parents[3] / "shared" / "bench" / "serve_bench.py"
ALL = "W1,W2,W3,W4,W5,W6,W7,W8,W9"
OURS = "radixlm"


@dataclass(frozen=True, slots=True)
class Server:
    """A command that serves on `port`; two commands may count as one `name`, each for its best workloads."""

    name: str
    port: int
    command: str
    workloads: tuple[str, ...]


def servers(options: argparse.Namespace) -> list[Server]:
    """Ourselves and the peers that are installed."""
    wanted = tuple(options.workloads.split(","))
    quoted = shlex.quote(sys.executable)
    command = f"{quoted} -m radixlm serve --model {options.model} --threads {options.threads} --port 8177 {options.flags}"
    found = [Server(OURS, 8177, command, wanted)]
    folder = Path(options.peers) if options.peers else None
    if folder is None:
        print("no --peers: ours alone", file=sys.stderr)
        return found
    venvs = folder.resolve() / "venvs"
    openvino, llama = (
        venvs / "ov" / "bin" / "python",
        venvs / "lcpp" / "build" / "bin" / "llama-server",
    )
    if openvino.exists():
        script = HARNESS.parent / "peers" / "openvino_server.py"
        command = f"env M={venvs / 'ov_ir'} TOKENIZER_DIR={Path(options.tokenizer).resolve()} {openvino} {script}"
        found.append(Server("OpenVINO", 8104, command, wanted))
    else:
        print(f"OpenVINO is left out: no {openvino}", file=sys.stderr)
    if llama.exists():
        base = f"{llama} -m {venvs / 'smol-Q4_0.gguf'} --host 127.0.0.1 --port 8101 -t {options.threads} -c 40960 --no-ui"
        many = tuple(w for w in wanted if w in ("W1", "W2", "W3", "W5", "W9"))
        few = tuple(w for w in wanted if w not in many)
        found += [
            Server("llama.cpp", 8101, f"{base} {slots}", part)
            for slots, part in (("-np 32 --kv-unified", many), ("", few))  # each where it does best
            if part
        ]
    else:
        print(f"llama.cpp is left out: no {llama}", file=sys.stderr)
    return found


def run_round(server: Server, folder: Path) -> dict[str, Any]:
    """One round of one server; {} with a line on stderr when it did not come up."""
    out = folder / "round.json"
    out.unlink(missing_ok=True)
    line = [
        sys.executable, str(HARNESS), "run", "--name", server.name, "--url", f"http://127.0.0.1:{server.port}",
        "--cmd", server.command, "--w", ",".join(server.workloads), "--reps", "1", "--out", str(out),
        "--log", str(folder / f"{server.name}.log"),
    ]  # fmt: skip
    environment = {**os.environ, "BENCH_AG": "1"}  # an own scheduling group at high priority
    done = subprocess.run(line, env=environment, stdout=sys.stderr, check=False)
    if not out.exists():
        print(f"{server.name} gave no result (status {done.returncode})", file=sys.stderr)
        return {}
    return json.loads(out.read_text())


def main() -> None:
    """Race and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peers", default="")
    parser.add_argument("--tokenizer", default="")
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--flags", default="", help="more options of `radixlm serve`")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workloads", default=ALL)
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    if not HARNESS.exists():
        sys.exit(f"the serving harness is not there: {HARNESS}")
    rounds: dict[str, list[Results]] = {}
    void_rounds: dict[str, list[Results]] = {}
    starts: dict[str, list[dict[str, Any]]] = {}
    field = servers(options)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            results: dict[str, dict[str, Any]] = {}
            rates = [read_rate(1), read_rate(options.threads)]
            for server in field:
                found = run_round(server, Path(folder))
                results.setdefault(server.name, {}).update(found.get("results", {}))
                facts = ("startup_to_first_token_s", "peak_rss_mb", "peak_pss_mb")
                starts.setdefault(server.name, []).append({name: found.get(name) for name in facts})
            rates += [read_rate(1), read_rate(options.threads)]
            is_void = options.threads > 1 and not (rates[1] > rates[0] and rates[3] > rates[2])
            if is_void:
                print(f"void: GB/s on 1 and all threads, before, after: {rates}", file=sys.stderr)
            for name, found in results.items():
                (void_rounds if is_void else rounds).setdefault(name, []).append(found)
    names = list(dict.fromkeys(server.name for server in field))
    if not rounds:
        print("EVERY ROUND WAS VOID: the machine was busy, these are no measurements\n")
    print(table(rows_of(rounds or void_rounds, OURS), names))
    num_void = len(void_rounds.get(OURS, ()))
    failed = losses(rounds or void_rounds)
    print(f"\nfailed requests: {failed}; void rounds: {num_void}; start and memory: {starts}")
    print(f"machine: {machine_facts()}")
    if options.out:
        whole = {
            "machine": machine_facts(),
            "rounds": rounds,
            "starts": starts,
            "void": void_rounds,
        }
        Path(options.out).write_text(json.dumps(whole, indent=1))


if __name__ == "__main__":
    main()
