"""Compute a text before anybody asks for what follows it, so that it is found in the cache.

Owns one request that generates nothing. Must not know programs or plans.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..runtime.messages import Append, CloseBranch, Generate, OpenBranch, SamplingParams

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..runtime.messages import Segment
    from .backend import Backend


def warm(backend: Backend, segments: Sequence[Segment]) -> int:
    """Compute the text of the segments; how many tokens it has. Waits for it; raises what made it fail."""
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
