"""`serve` around a toy model, as a program: prints its URL, then ends by signals. Options of the server come as JSON."""

from __future__ import annotations

import gc
import json
import sys

from http_probe import PROBES
from toy_processes import toy_command

from radixlm.runtime.config import EngineConfig
from radixlm.runtime.http.server import serve
from radixlm.runtime.http.settings import ServerSettings
from radixlm.runtime.launch import Runtime


def main() -> int:
    settings = ServerSettings.create(**json.loads(sys.argv[1]))
    config = EngineConfig.create(model="toy-slow", threads=1, **json.loads(sys.argv[2]))
    runtime = Runtime(config, toy_command)
    return serve(
        runtime,
        settings,
        more_routes=PROBES,
        on_listening=lambda server: print(
            json.dumps(
                {
                    "url": server.url,
                    "pids": runtime.pids(),
                    "num_frozen": gc.get_freeze_count(),
                }
            ),
            flush=True,
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
