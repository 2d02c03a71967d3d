"""What a program asked and what it cost, as a tree of shared prefixes.

    trace = TracingBackend(engine.backend)
    program.run("...", backend=trace)
    print(trace.render())

A `TracingBackend` is a Backend around another one: it passes everything through and remembers, per branch, the pieces of text in order.
Owns that record and its rendering as plain text. Must not know how branches are computed; the token counts are those of the answers.

Branches that begin with the same pieces share nodes, wherever they were opened, so the tree is the one that a prefix cache can share:

    system "You read reviews."
    user "The room was "
    |-- "clean."
    |   assistant gen mood = "positive"       [prompt 31: 0 hit, 31 computed; 2 generated]
    `-- "loud."
        assistant gen mood = "negative"       [prompt 31: 20 hit, 11 computed; 2 generated]
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from ..runtime.messages import (
    Append,
    CloseBranch,
    Fork,
    Generate,
    OpenBranch,
    Score,
    sum_usage,
)
from .trace_picture import html_of, svg_of
from .trace_tree import Kind, TraceLine, TraceNode, draw, extend, walk

if TYPE_CHECKING:
    from ..runtime.messages import Abort, Delta, Finished, Ready, Scored, Usage
    from .backend import Backend


class TracingBackend:
    """A Backend that records what goes through it. Threads may share it."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._root = TraceNode("text")
        self._ends: dict[str, TraceNode] = {}  # branch -> the node it stands at
        self._lock = threading.Lock()

    # ------------------------------------------------------------------------------------ Backend

    @property
    def facts(self) -> Ready:
        """Facts of the model."""
        return self._backend.facts

    def new_id(self, prefix: str) -> str:
        """A name for a branch or request."""
        return self._backend.new_id(prefix)

    def send(self, message: OpenBranch | Append | Fork | CloseBranch | Abort) -> None:
        """Record the message and pass it on."""
        with self._lock:
            if isinstance(message, OpenBranch):
                self._ends[message.branch] = self._root
            elif isinstance(message, Append):
                end = self._ends.get(message.branch, self._root)
                self._ends[message.branch] = extend(end, message.segments)
            elif isinstance(message, Fork):
                end = self._ends.get(message.branch, self._root)
                self._ends.update(dict.fromkeys(message.children, end))
            elif isinstance(message, CloseBranch):
                self._ends.pop(message.branch, None)
        self._backend.send(message)

    def generate(
        self, message: Generate, on_delta: Callable[[Delta], None] | None = None
    ) -> Future[Finished]:
        """Record the gen and, when it comes, its answer."""
        node = self._open("gen", message)
        future = self._backend.generate(message, on_delta)
        future.add_done_callback(lambda done: self._generated(node, done))
        return future

    def score(self, message: Score) -> Future[Scored]:
        """Record the select and, when it comes, its answer. What was chosen is what the program appends next."""
        node = self._open("select", message)
        future = self._backend.score(message)
        future.add_done_callback(lambda done: self._scored(node, done))
        return future

    # ------------------------------------------------------------------------------------ looking

    @property
    def root(self) -> TraceNode:
        """The tree; the root itself holds no text."""
        return self._root

    def usage(self) -> Usage:
        """Token counts of all requests."""
        with self._lock:
            return sum_usage(usage for node in walk(self._root) for usage in node.usage)

    def lines(self, max_chars: int = 60) -> list[TraceLine]:
        """The tree, top down; texts are cut to `max_chars`."""
        with self._lock:
            return draw(self._root, max_chars)

    def render(self, max_chars: int = 60) -> str:
        """The tree as text, with a last line of totals."""
        lines = [
            f"{line.stem}{line.label}" + (f"  [{line.counts}]" if line.counts else "")
            for line in self.lines(max_chars)
        ]
        return "\n".join([*lines, self.summary()])

    def svg(self, max_chars: int = 60) -> str:
        """The tree as an SVG picture."""
        with self._lock:
            return svg_of(self._root, max_chars)

    def html(self, max_chars: int = 60) -> str:
        """The tree as an HTML page."""
        summary = self.summary()
        with self._lock:
            return html_of(self._root, max_chars, summary)

    def summary(self) -> str:
        """Totals in one line."""
        total = self.usage()
        share = 100 * total.cached_tokens / max(total.prompt_tokens, 1)
        return (
            f"{total.prompt_tokens} prompt tokens: {total.cached_tokens} hit ({share:.0f} %),"
            f" {total.prompt_tokens - total.cached_tokens} computed;"
            f" {total.completion_tokens} tokens generated, {total.forced_tokens} of them forced"
        )

    # ------------------------------------------------------------------------------------ recording

    def _open(self, kind: Kind, message: Generate | Score) -> TraceNode:
        with self._lock:
            end = self._ends.get(message.branch or "", self._root)
            if message.segments:
                end = extend(end, message.segments)
            node = TraceNode(kind, _variable(message.request), "...")
            end.children.append(node)
            if message.branch is not None:
                self._ends[message.branch] = node
            return node

    def _generated(self, node: TraceNode, done: Future[Finished]) -> None:
        with self._lock:
            if done.cancelled() or done.exception() is not None:
                node.error = "cancelled" if done.cancelled() else str(done.exception())
                return
            finished = done.result()
            node.text = " | ".join(output.text for output in finished.outputs)  # n > 1: all of them
            node.usage.append(finished.usage)

    def _scored(self, node: TraceNode, done: Future[Scored]) -> None:
        with self._lock:
            if done.cancelled() or done.exception() is not None:
                node.error = "cancelled" if done.cancelled() else str(done.exception())
                return
            node.text = f"{len(done.result().token_ids)} choices"
            node.usage.append(done.result().usage)


def _variable(request: str) -> str:
    """The variable's name in a request's: backends add a number behind # or a dot."""
    return re.sub(r"[#.]\d+$", "", request)
