"""The tree that a trace keeps: pieces of text by their place, and how it is drawn.

Owns nodes, their growth (a radix tree over constant text) and their lines. Must not know backends, futures or branches.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ..runtime.messages import Chat, Ids, RoleBegin, RoleEnd, Text, Usage, sum_usage

if TYPE_CHECKING:
    from ..runtime.messages import Segment

Kind = Literal["text", "role", "gen", "select"]


@dataclass(slots=True, eq=False)
class TraceNode:
    """A piece of text that one or more branches have at the same place."""

    kind: Kind
    name: str = ""
    """The variable of a gen or select, the role of a role."""
    text: str = ""
    usage: list[Usage] = field(default_factory=list[Usage])
    """Of each request that gave exactly this text here. Empty for constant text."""
    error: str = ""
    children: list[TraceNode] = field(default_factory=list["TraceNode"])


@dataclass(frozen=True, slots=True)
class TraceLine:
    """One line of a rendered tree."""

    stem: str
    """The lines of the tree itself."""
    kind: Kind
    label: str
    counts: str
    """Token counts of a gen or select; else empty."""


def extend(node: TraceNode, segments: tuple[Segment, ...]) -> TraceNode:
    """The node behind `segments` after `node`, made where it is missing."""
    for kind, name, text in (piece for segment in segments for piece in _pieces(segment)):
        node = _role(node, name) if kind == "role" else _text(node, text)
    return node


def _pieces(segment: Segment) -> Iterator[tuple[Kind, str, str]]:
    if isinstance(segment, Text):
        yield "text", "", segment.text
    elif isinstance(segment, Ids):
        yield "text", "", f"<{len(segment.token_ids)} token ids>"
    elif isinstance(segment, RoleBegin):
        yield "role", segment.role, ""
    elif isinstance(segment, RoleEnd):
        yield "role", f"/{segment.role}", ""
    else:
        yield from _chat_pieces(segment)


def _chat_pieces(chat: Chat) -> Iterator[tuple[Kind, str, str]]:
    for message in chat.messages:
        content = message.get("content", "")
        yield "role", str(message.get("role")), ""
        yield (
            "text",
            "",
            content if isinstance(content, str) else json.dumps(content, ensure_ascii=False),
        )


def _role(node: TraceNode, name: str) -> TraceNode:
    for child in node.children:
        if child.kind == "role" and child.name == name:
            return child
    made = TraceNode("role", name)
    node.children.append(made)
    return made


def _text(node: TraceNode, text: str) -> TraceNode:
    """Down the radix tree of constant text: shared beginnings are one node, which is cut in two where texts part.

    Branches stand at the end of a node, so the object that was cut keeps its end, and its front is the new one.
    """
    while text:
        place = next(
            (
                i
                for i, child in enumerate(node.children)
                if child.kind == "text" and child.text[0] == text[0]
            ),
            None,
        )
        if place is None:
            made = TraceNode("text", text=text)
            node.children.append(made)
            return made
        child = node.children[place]
        num_shared = _num_shared(child.text, text)
        if num_shared < len(child.text):
            front = TraceNode("text", text=child.text[:num_shared], children=[child])
            node.children[place], child.text = front, child.text[num_shared:]
            child = front
        node, text = child, text[num_shared:]
    return node


def _num_shared(a: str, b: str) -> int:
    pairs = zip(a, b, strict=False)
    return next((i for i, (x, y) in enumerate(pairs) if x != y), min(len(a), len(b)))


# ------------------------------------------------------------------------------------ drawing


def walk(node: TraceNode) -> Iterator[TraceNode]:
    """Every node from `node` down."""
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(node.children)


def draw(root: TraceNode, max_chars: int) -> list[TraceLine]:
    """Lines top down: what has one continuation stays at its depth, what has several opens a level."""
    found: list[TraceLine] = []
    todo: list[tuple[TraceNode, str, str]] = [
        (root, "", "")
    ]  # with the stem of its first line and of the others
    while todo:
        node, first, others = todo.pop()
        chain = [node]
        while len(chain[-1].children) == 1:
            chain += chain[-1].children
        for number, (kind, label, counts) in enumerate(labels(chain, max_chars)):
            found.append(TraceLine(others if number else first, kind, label, counts))
        ends = chain[-1].children
        for number, child in reversed(list(enumerate(ends))):
            is_last = number == len(ends) - 1
            todo.append(
                (
                    child,
                    others + ("`-- " if is_last else "|-- "),
                    others + ("    " if is_last else "|   "),
                )
            )
    return found


def labels(chain: list[TraceNode], max_chars: int) -> Iterator[tuple[Kind, str, str]]:
    """A line for each message or piece of text, gen and select of a chain."""
    role = text = ""
    for node in chain:
        if node.kind == "text":
            text += node.text
            continue
        if text:
            yield ("role" if role else "text"), f"{role} {_cut(text, max_chars)}".lstrip(), ""
            role = text = ""
        if node.kind == "role":
            role = "" if node.name.startswith("/") else node.name
            continue
        yield node.kind, f"{role} {_answer(node, max_chars)}".lstrip(), _counts(node.usage)
        role = ""
    if role or text:
        label = f"{role} {_cut(text, max_chars)}" if text else role
        yield ("role" if role else "text"), label.lstrip(), ""


def _answer(node: TraceNode, max_chars: int) -> str:
    if node.error:
        return f"{node.kind} {node.name} failed: {node.error}"
    if node.kind == "select":
        return f"select {node.name} of {node.text}"
    return f"gen {node.name} = {_cut(node.text, max_chars)}"


def _cut(text: str, max_chars: int) -> str:
    """The text as a literal; of a long one the beginning and the end."""
    if len(text) > max_chars:
        half = (max_chars - 5) // 2
        text = f"{text[:half]} ... {text[-half:]}"
    return json.dumps(text, ensure_ascii=False)


def _counts(usage: list[Usage]) -> str:
    if not usage:
        return ""
    total = sum_usage(usage)
    computed = total.prompt_tokens - total.cached_tokens
    counts = f"prompt {total.prompt_tokens}: {total.cached_tokens} hit, {computed} computed"
    if total.completion_tokens:
        counts += f"; {total.completion_tokens} generated"
    return counts + (f", {total.forced_tokens} forced" if total.forced_tokens else "")
