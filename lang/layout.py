"""Blocks in columns as an SVG picture: a column goes down, and a block may open columns of its own side by side.

Owns sizes, colours and places; every width and height is known before anything is drawn, so one walk measures and one draws. Must not know
what the blocks mean. The text is escaped, the file needs nothing besides itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

_CHAR, _LINE, _PAD, _GAP = (
    6.6,
    15.0,
    7.0,
    14.0,
)  # pixels: a monospaced character, a line, around text, between blocks
_MIN_WIDTH, _MAX_LABEL = 90.0, 64
_FILL = {
    "text": "#f4f4f1", "role": "#e8eef7", "gen": "#dff0dc", "select": "#f6ecd2", "fork": "#ece3f4", "join": "#ece3f4",
    "hit": "#dff0dc", "computed": "#f6ecd2", "failed": "#f7dcdc",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Block:
    """A box with a line and a remark, and the columns that it opens."""

    kind: str
    label: str
    remark: str = ""
    columns: list[list[Block]] = field(default_factory=list["list[Block]"])
    is_dashed: bool = False

    @property
    def lines(self) -> list[str]:
        """What is written in it, cut to the widest that is drawn."""
        texts = [self.label, self.remark] if self.remark else [self.label]
        return [t if len(t) <= _MAX_LABEL else f"{t[: _MAX_LABEL - 3]}..." for t in texts]

    @property
    def height(self) -> float:
        """Of the box alone."""
        return len(self.lines) * _LINE + _PAD


def to_svg(column: list[Block]) -> str:
    """The whole picture."""
    width, height = _column_size(column)
    parts: list[str] = []
    _draw_column(column, _GAP, _GAP, width, parts)
    size = f'width="{width + 2 * _GAP:.0f}" height="{height + 2 * _GAP:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="monospace" font-size="11">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>"])


def _column_size(column: list[Block]) -> tuple[float, float]:
    sizes = [_block_size(block) for block in column]
    widest = max((width for width, _ in sizes), default=_MIN_WIDTH)
    return widest, sum(height for _, height in sizes) + _GAP * max(len(sizes) - 1, 0)


def _block_size(block: Block) -> tuple[float, float]:
    own = max(_MIN_WIDTH, max(map(len, block.lines)) * _CHAR + 2 * _PAD)
    if not block.columns:
        return own, block.height
    sizes = [_column_size(column) for column in block.columns]
    side_by_side = sum(width for width, _ in sizes) + _GAP * (len(sizes) - 1)
    return max(own, side_by_side), block.height + _GAP + max(height for _, height in sizes)


def _draw_column(
    column: list[Block], left: float, top: float, width: float, parts: list[str]
) -> None:
    middle = left + width / 2
    for index, block in enumerate(column):
        if index:
            parts.append(_line(middle, top - _GAP, middle, top))
        own, height = _block_size(block)
        _draw_box(block, middle, top, parts)
        x, under = middle - own / 2, top + block.height
        side_by_side = sum(_column_size(each)[0] for each in block.columns)
        x += (own - side_by_side - _GAP * (len(block.columns) - 1)) / 2
        for inner in block.columns:
            inner_width = _column_size(inner)[0]
            parts.append(_line(middle, under, x + inner_width / 2, under + _GAP))
            _draw_column(inner, x, under + _GAP, inner_width, parts)
            x += inner_width + _GAP
        top += height + _GAP


def _draw_box(block: Block, middle: float, top: float, parts: list[str]) -> None:
    width = max(_MIN_WIDTH, max(map(len, block.lines)) * _CHAR + 2 * _PAD)
    dash = ' stroke-dasharray="4 3"' if block.is_dashed else ""
    parts.append(
        f'<rect x="{middle - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" height="{block.height:.1f}"'
        f' rx="4" fill="{_FILL.get(block.kind, "white")}" stroke="#777"{dash}/>'
    )
    for number, line in enumerate(block.lines):
        colour = "#555" if number else "#111"
        place = f'x="{middle:.1f}" y="{top + _PAD + _LINE * (number + 0.6):.1f}"'
        parts.append(
            f'<text {place} text-anchor="middle" fill="{colour}" xml:space="preserve">{escape(line)}</text>'
        )


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="#999"/>'
