"""Compute a text before anybody asks for what follows it, so that it is found in the cache.

Owns `program.cache(...)` and one request that generates nothing. Must not know how the beginning of a program is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .backend import as_backend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..runtime.messages import Segment
    from .backend import Backend, HasBackend
    from .function import Program


def cache_beginning(
    program: Program, *args: Any, backend: Backend | HasBackend | None = None, **kwargs: Any
) -> int:
    """Compute the text that the program begins with whatever its arguments, so that its first run finds it; the number of its tokens.

    0 if it begins with nothing constant. The beginning is found as by `compile`: do not use it on a function that does something besides.
    """
    return warm(as_backend(backend), program.compile(*args, **kwargs).plan.prefix)


def warm(backend: Backend, segments: Sequence[Segment]) -> int:
    """Compute the text of the segments; how many tokens it has. Waits for it; raises what made it fail."""
    from ..runtime.messages import Append, CloseBranch, Generate, OpenBranch, SamplingParams

    if not segments:
        return 0
    branch = backend.new_id("branch")
    backend.send(OpenBranch(branch))
    try:
        backend.send(Append(branch, tuple(segments)))
        nothing = SamplingParams(max_tokens=0)
        request = Generate(backend.new_id("cache"), branch, sampling=nothing)
        return backend.generate(request).result().usage.prompt_tokens
    finally:
        backend.send(CloseBranch(branch))
