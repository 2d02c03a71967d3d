"""A plan for people: as text, line by line along the branches, and as SVG.

Owns the text form; the picture is `lang.layout`'s. Must not know how a plan is used.

    tips(topic)
      text "Tips on " {topic} ": "
      gen tip max 40                        3 follow, 168 to go
      fork
      |-- text "1. "
      |   gen detail                        last use, 128 to go
      ...
      join 3

{topic} is text that depends on an argument, {$0} or {$0 by Python} on the result of ask 0; `?` marks steps that another way of the program lacks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..layout import Block, to_svg
from .comparing import RESULTS
from .graph import AskStep, ForkStep, JoinStep, RoleStep, TextStep
from .prefixes import shared_by_children

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .graph import Graph, Part, Step
    from .plan import Plan

_MAX_CHARS = 48


@dataclass(frozen=True, slots=True)
class _Line:
    stem: str
    label: str
    remark: str = ""


class Drawing:
    """The plan of a program: `str(...)` or `print` it, or `.svg()`."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def __str__(self) -> str:
        graph = self.plan.graph
        lines = list(self._lines(0, "  "))
        width = min(max((len(line.stem + line.label) for line in lines), default=0), 72)
        rows = [f"{graph.program.removeprefix('program ')}({', '.join(graph.arguments)})"]
        rows += [
            f"{(each.stem + each.label).ljust(width)}  {each.remark}".rstrip() for each in lines
        ]
        if graph.stopped:
            rows.append(f"  not traced further: {graph.stopped}")
        return "\n".join(rows)

    def svg(self) -> str:
        """The plan as a picture: time goes down, branches stand side by side."""
        return to_svg(self._blocks(0))

    # ------------------------------------------------------------------------------------ text

    def _lines(self, number: int, stem: str) -> Iterator[_Line]:
        graph = self.plan.graph
        for step in graph.branches[number].steps:
            yield _Line(stem, label_of(graph, step), self._remark(step))
            if isinstance(step, ForkStep):
                last = step.children[-1]
                for child in step.children:
                    rows = list(self._lines(child, "")) or [_Line("", "nothing")]
                    for index, line in enumerate(rows):
                        mark = ("`-- " if child == last else "|-- ") if index == 0 else (
                            "    " if child == last else "|   ")  # fmt: skip
                        yield _Line(stem + mark + line.stem, line.label, line.remark)

    def _remark(self, step: Step) -> str:
        if isinstance(step, ForkStep):
            shared = shared_by_children(self.plan.graph, step)
            return f"all begin {_quoted(shared)}" if shared else ""
        if not isinstance(step, AskStep):
            return ""
        follow = self.plan.num_continuations[step.ask]
        words = {0: "last use", -1: "", 1: "1 follows"}.get(follow, f"{follow} follow")
        needed = self.plan.needs[step.ask]
        same = "the same for all items" if needed is not None and not needed else ""
        length = f"{self.plan.remaining[step.ask]} to go"
        return ", ".join(filter(None, [words, length, same]))

    # ------------------------------------------------------------------------------------ picture

    def _blocks(self, number: int) -> list[Block]:
        graph = self.plan.graph
        blocks: list[Block] = []
        for step in graph.branches[number].steps:
            kind = graph.asks[step.ask].kind if isinstance(step, AskStep) else _KINDS[type(step)]
            columns = (
                [self._blocks(child) for child in step.children]
                if isinstance(step, ForkStep)
                else []
            )
            label, remark = label_of(graph, step), self._remark(step)
            blocks.append(Block(kind, label, remark, columns, is_dashed=step.is_guess))
        return blocks


_KINDS: dict[type[Step], str] = {
    TextStep: "text", RoleStep: "role", ForkStep: "fork", JoinStep: "join"
}  # fmt: skip


def label_of(graph: Graph, step: Step) -> str:
    """What a step does, in a line."""
    mark = "? " if step.is_guess else ""
    if isinstance(step, TextStep):
        return f"{mark}text {' '.join(_part(part) for part in step.parts)}"
    if isinstance(step, RoleStep):
        return f"{mark}{step.role}" if step.begins else f"{mark}end of {step.role}"
    if isinstance(step, ForkStep):
        return f"{mark}fork {len(step.children)}"
    if isinstance(step, JoinStep):
        return f"{mark}join {len(step.children)}"
    ask = graph.asks[step.ask]
    words = [f"{mark}{ask.kind} {ask.name}"]
    if ask.kind == "select":
        words.append(f"of {len(ask.choices)} choices")
    if ask.max_tokens is not None:
        words.append(f"max {ask.max_tokens}")
    if ask.num_outputs > 1:
        words.append(f"n {ask.num_outputs}")
    if ask.constraint:
        words.append(ask.constraint)
    return f"{' '.join(words)} = {RESULTS}{ask.number}"


def _part(part: Part) -> str:
    if not part.sources:
        return _quoted(part.text)
    names = ", ".join(sorted(part.sources))
    return f"{{{names} by Python}}" if part.is_computed else f"{{{names}}}"


def _quoted(text: str) -> str:
    if len(text) > _MAX_CHARS:
        half = (_MAX_CHARS - 5) // 2
        text = f"{text[:half]} ... {text[-half:]}"
    return json.dumps(text, ensure_ascii=False)
