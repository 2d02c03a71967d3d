"""A compile worker whose compiler does what a regex spec's pattern says: spin, sleep, crash, recurse, fill memory, or compile."""

from __future__ import annotations

import os
import sys
import time

from radixlm.errors import GrammarError
from radixlm.grammar.spec import Spec
from radixlm.runtime import messages as m
from radixlm.runtime.compile_worker import READY, answer
from radixlm.runtime.transport import BlockingEnd, Transport


class Program:
    """What a compiler returns."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec

    def to_bytes(self) -> bytes:
        return f"program of {getattr(self._spec, 'pattern', '')}".encode()


def compile_spec(spec: Spec, alphabet: bytes) -> Program:
    pattern = getattr(spec, "pattern", "")
    if pattern == "spin":
        sum(i for i in iter(int, 1))  # one endless call
    elif pattern == "sleep":
        time.sleep(600)
    elif pattern == "crash":
        os.abort()
    elif pattern == "recurse":
        return compile_spec(spec, alphabet)
    elif pattern == "memory":
        raise MemoryError
    elif pattern == "refuse":
        raise GrammarError("not this one", place="3")
    return Program(spec)


def main() -> None:
    end = BlockingEnd(Transport(1 << 20).pair(sys.argv[1], bind=False))
    end.send(READY)
    while True:
        if end.wait(5.0):
            data = end.take()
            if data is not None:
                end.send(
                    m.encode(
                        answer(m.compile_job_decoder.decode(data), compile_spec, float(sys.argv[2]))
                    )
                )
        elif os.getppid() == 1:
            return


if __name__ == "__main__":
    main()
