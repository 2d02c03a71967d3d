"""A thinking budget: think up to the end mark or for so many tokens, then answer, whatever the model wants.

    s += user(question) + assistant(thinking(gen("answer", schema=Answer), max_thinking_tokens=200))
    s["thinking"], s["answer"]

Owns the text around the two. The thinking stays in the text and streams as it comes; `separate_reasoning(..., max_thinking_tokens=)` keeps it apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir import as_node
from ..primitives.gen import gen
from .winners import check_number

if TYPE_CHECKING:
    from ..ir import Node
    from ..sglang_names import ProgramOptions


def thinking(
    answer: Node | str,
    *,
    max_thinking_tokens: int,
    name: str = "thinking",
    temperature: float | None = None,
    begin: str = "<think>\n",
    end: str = "</think>",
) -> Node:
    """A node: `begin`, a gen called `name` that ends before `end` or after so many tokens, `end`, then `answer`."""
    check_number("max_thinking_tokens", max_thinking_tokens, least=0)
    own: ProgramOptions = {"stop": end.strip()}
    if temperature is not None:
        own["temperature"] = temperature
    thought = gen(name, max_thinking_tokens, **own)
    return as_node(begin) + thought + f"\n{end}\n\n" + answer
