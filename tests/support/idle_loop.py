"""An event loop with nothing to do, in a process of its own: how late it is tells what the machine takes, whatever a server does."""

from __future__ import annotations

import json
import subprocess
import sys
from types import TracebackType
from typing import Self


class IdleLoop:
    """Measures from the beginning of the block until `end`."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def end(self) -> list[float]:
        """All lags, in seconds."""
        text, _ = self._process.communicate("")
        return json.loads(text)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()


def main() -> None:
    from radixlm.runtime.http.loop_lag import LoopLag
    from radixlm.runtime.loops import new_event_loop

    lags_s: list[float] = []
    loop = new_event_loop()
    lag = LoopLag(lags_s.append)
    loop.call_soon(lag.start)
    loop.add_reader(sys.stdin.fileno(), loop.stop)
    loop.run_forever()
    lag.stop()
    loop.close()
    print(json.dumps(lags_s))


if __name__ == "__main__":
    main()
