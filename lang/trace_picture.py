"""A trace as a picture: the tree of prefixes from the top down, as SVG or as a page of HTML that needs nothing besides itself.

Owns the step from the tree's nodes to blocks in columns. Must not know backends, nor how blocks are drawn.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from .layout import Block, to_svg
from .trace_tree import labels

if TYPE_CHECKING:
    from .trace_tree import TraceNode


def svg_of(root: TraceNode, max_chars: int) -> str:
    """The tree as an SVG document."""
    return to_svg(_blocks(root, max_chars) or [Block("text", "nothing was asked")])


def html_of(root: TraceNode, max_chars: int, summary: str) -> str:
    """The tree as an HTML page."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>radixlm trace</title></head>\n'
        f'<body style="font-family: sans-serif"><p>{escape(summary)}</p>\n{svg_of(root, max_chars)}\n</body></html>\n'
    )


def _blocks(root: TraceNode, max_chars: int) -> list[Block]:
    """What has one continuation goes down a column; where there are several, each opens a column of its own."""
    chain = [root]
    while len(chain[-1].children) == 1:
        chain += chain[-1].children
    failed = {f"{node.kind} {node.name} failed" for node in chain if node.error}
    blocks = [
        Block("failed" if any(f in label for f in failed) else kind, label, counts)
        for kind, label, counts in labels(chain, max_chars)
    ]
    columns = [_blocks(child, max_chars) for child in chain[-1].children]
    if columns:
        end = blocks.pop() if blocks else Block("text", "beginning")
        blocks.append(Block(end.kind, end.label, end.remark, columns))
    return blocks
