"""`python -m radixlm <role> ...`: what a child process does before and around its work.

It ties its life to its parent's, leaves Ctrl-C to the parent, and reports an error of `errors.py` as one marked line on stderr, so that
the parent can raise it as the same error. Owns the roles' command line; it is not for people and may change.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path

from ..errors import RadixError, by_name
from .config import EngineConfig
from .process_watch import die_with_parent

ROLES = ("engine", "gateway", "compile-worker", "pack-weights")
ERROR_MARK = "radixlm-error: "
EXIT_STATUS_OF_ERROR = 3
EXIT_STATUS_OF_NOT_PACKED = 4  # the kernels do not take the model, or no folder takes the file


def main(arguments: list[str]) -> int:
    """Run one role to its end; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m radixlm")
    parser.add_argument("role", choices=ROLES)
    parser.add_argument("--config", required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument("--address", default="")
    parser.add_argument("--epoch", type=int, default=0)
    options = parser.parse_args(arguments)
    die_with_parent(options.parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _run(options, EngineConfig.from_json(options.config))
    except RadixError as error:
        sys.stderr.write(error_line(error))
        return EXIT_STATUS_OF_ERROR
    return 0


def _run(options: argparse.Namespace, config: EngineConfig) -> None:
    if options.role == "engine":
        from .engine_process import run as run_engine

        run_engine(config, options.folder, options.epoch, options.parent)
    elif options.role == "gateway":
        from .gateway_process import run as run_gateway

        run_gateway(config, options.folder)
    elif options.role == "pack-weights":
        from .engine_process import pack_weights

        if pack_weights(config) is None:
            sys.exit(EXIT_STATUS_OF_NOT_PACKED)
    else:
        from .compile_worker import run as run_worker

        run_worker(options.address, config.compile_cpu_s, config.max_message_bytes, options.parent)


def error_line(error: RadixError) -> str:
    """`error` as the line a parent understands."""
    fields = {
        "name": type(error).__name__,
        "message": error.message,
        "place": error.place,
        "hint": error.hint,
    }
    return ERROR_MARK + json.dumps(fields) + "\n"


def error_in(stderr: str) -> RadixError | None:
    """The error that a child reported on its stderr, if any."""
    for line in reversed(stderr.splitlines()):
        if line.startswith(ERROR_MARK):
            try:
                fields = json.loads(line.removeprefix(ERROR_MARK))
                return by_name(fields["name"])(
                    fields["message"], place=fields["place"], hint=fields["hint"]
                )
            except (ValueError, KeyError, TypeError):
                return None
    return None
