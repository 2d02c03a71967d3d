"""What HTTP adds: time to first token and decoding through `radixlm serve`, against the offline Engine, in turns in one run.

Both sides stream the same prompt greedily from a warm cache, one request at a time, from this process: the Engine over its sockets, the
server over a kept connection with the standard library's client. Reported are medians, and the difference of the medians.

Run: .venv/bin/python tests/bench/bench_http.py [--json]     Wanted: less than 1.5 ms more to the first token, less than 5 % less decoding.
"""

from __future__ import annotations

import http.client
import json
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from bench_report import machine, parse_options

import radixlm

PROMPT = "Once upon a time there was a fox who lived in a deep forest by the river and"


def through_engine(engine: radixlm.Engine, num_tokens: int) -> tuple[float, float]:
    """Seconds to the first text, and from there to the end."""
    start = time.perf_counter()
    stream = engine.stream(PROMPT, max_tokens=num_tokens, ignore_eos=True)
    next(stream)
    first = time.perf_counter()
    for _ in stream:
        pass
    return first - start, time.perf_counter() - first


def through_http(connection: http.client.HTTPConnection, num_tokens: int) -> tuple[float, float]:
    """The same over HTTP."""
    body = {
        "model": "smollm2-135m",
        "prompt": PROMPT,
        "max_tokens": num_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
    }
    start = time.perf_counter()
    connection.request(
        "POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"}
    )
    answer = connection.getresponse()
    first = 0.0
    while line := answer.readline():
        if not first and line.startswith(b"data:"):
            first = time.perf_counter()
    return first - start, time.perf_counter() - first


def main() -> None:
    """Measure and print."""
    options = parse_options(__doc__ or "")
    num_tokens, rounds = (16, 5) if options.quick else (64, 25)
    command = [
        *(sys.executable, "-m", "radixlm", "serve", "--model", options.model, "--port", "0"),
        f"--threads={options.threads}",
    ]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        said = next((line for line in iter(server.stderr.readline, "") if "http://" in line), "")
        connection = http.client.HTTPConnection(said.split()[-1].removeprefix("http://"))
        with radixlm.Engine(options.model, threads=options.threads) as engine:
            rows = measure(
                lambda count: through_engine(engine, count),
                lambda count: through_http(connection, count),
                num_tokens,
                rounds,
            )
        connection.close()
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate()
    if options.json:
        print(json.dumps({"bench": "what HTTP adds", **rows, "machine": machine()}))
        return
    print(f"what HTTP adds ({machine()})")
    for name, value in rows.items():
        print(f"  {name:<44} {value:10.2f}")


def measure(
    offline: Callable[[int], tuple[float, float]],
    served: Callable[[int], tuple[float, float]],
    num_tokens: int,
    rounds: int,
) -> dict[str, float]:
    """Rows of the report: milliseconds to the first text, tokens a second after it."""
    offline(num_tokens), served(num_tokens)
    pairs = [(offline(num_tokens), served(num_tokens)) for _ in range(rounds)]
    first = [statistics.median(pair[side][0] for pair in pairs) * 1e3 for side in (0, 1)]
    rate = [
        (num_tokens - 1) / statistics.median(pair[side][1] for pair in pairs) for side in (0, 1)
    ]
    return {
        "Engine, first text, ms": first[0],
        "HTTP, first text, ms": first[1],
        "HTTP adds, ms (wanted < 1.5)": statistics.median((b[0] - a[0]) * 1e3 for a, b in pairs),
        "Engine, decode, tok/s": rate[0],
        "HTTP, decode, tok/s": rate[1],
        "HTTP decodes at (wanted > 0.95)": statistics.median(a[1] / b[1] for a, b in pairs),
    }


if __name__ == "__main__":
    main()
