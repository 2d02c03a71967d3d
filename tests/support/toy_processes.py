"""The real processes around a toy model: run as a script it is a child of `launch.Runtime` with the toy tokenizer and a fake runner.

The toy engine is the real core over `fake_runner`, which hashes the ids it reads through the pages; model names steer it:
"toy" plain, "toy-slow" 20 ms a step, "toy-broken" fails at its start, "toy-refused" reports a ModelError.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from radixlm.errors import ModelError, RadixError
from radixlm.runtime import messages as m
from radixlm.runtime.config import EngineConfig
from radixlm.runtime.process_watch import die_with_parent
from radixlm.runtime.roles import EXIT_STATUS_OF_ERROR, error_line

CONTEXT_LENGTH = 4096
NUM_PAGES = 1024


def toy_command(role: str, config: EngineConfig, folder: Path, epoch: int) -> list[str]:
    """In place of `launch.child_command`."""
    return [
        *(sys.executable, __file__, role, "--config", config.to_json(), "--folder", str(folder)),
        *("--parent", str(os.getpid()), "--epoch", str(epoch)),
    ]


def make_core(config: EngineConfig):
    """The real engine core over the fake runner."""
    from fake_runner import FakeRunner
    from toy_tokenizer import EOS, TOKEN_BYTES, ToyTokenizer

    from radixlm.runtime.engine import Engine
    from radixlm.runtime.grammar_loading import GrammarLoader
    from radixlm.runtime.vocab_facts import VocabFacts

    tokenizer = ToyTokenizer()
    letters = {TOKEN_BYTES.index(bytes((b,))): 4.0 for b in b"abcdefghijklmnopqrstuvwxyz "}
    runner = FakeRunner(len(TOKEN_BYTES), NUM_PAGES, 16, steer=lambda ids: {**letters, EOS: -9.0})
    if config.model == "toy-slow":
        runner.before_launch = lambda plan: time.sleep(0.02)
    facts = VocabFacts(len(TOKEN_BYTES), CONTEXT_LENGTH, tokenizer.eos_token_ids, TOKEN_BYTES)
    return Engine(
        runner,
        facts,
        num_pages=NUM_PAGES,
        page_size=16,
        load_grammar=GrammarLoader(facts),
        encode_forced=tokenizer.encode_forced,
    )


def run_engine(config: EngineConfig, folder: Path, epoch: int, parent: int) -> None:
    from radixlm.runtime.engine_process import EngineLoop
    from radixlm.runtime.transport import Addresses, Transport

    if config.model == "toy-broken":
        raise RuntimeError("the toy broke at its start")
    if config.model == "toy-refused":
        raise ModelError("the toy's files are damaged", hint="Get another toy")
    loop = EngineLoop(
        make_core(config), Transport(config.max_message_bytes), Addresses.within(folder), parent
    )
    loop.send(m.EngineReady(epoch, NUM_PAGES, 16, CONTEXT_LENGTH, os.getpid()))
    loop.run()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("role")
    parser.add_argument("--config")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--parent", type=int)
    parser.add_argument("--epoch", type=int)
    options = parser.parse_args()
    die_with_parent(options.parent)
    config = EngineConfig.from_json(options.config)
    try:
        if options.role == "engine":
            run_engine(config, options.folder, options.epoch, options.parent)
        else:
            from toy_tokenizer import ToyTokenizer

            from radixlm.runtime.gateway_process import serve

            serve(config, options.folder, ToyTokenizer())
    except RadixError as error:
        sys.stderr.write(error_line(error))
        return EXIT_STATUS_OF_ERROR
    return 0


if __name__ == "__main__":
    sys.exit(main())
