"""Event loops: uvloop's where it is installed, asyncio's otherwise. Owns that choice only."""

from __future__ import annotations

import asyncio


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A fresh loop, not set as anybody's current one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
