"""ReAct: thought, action, observation, in plain text (Yao et al. 2022, arXiv:2210.03629).

    s += EXAMPLES + f"Question: {question}\\n"
    steps = react(s, [search, multiply], max_steps=5)
    s["answer"]

    Thought: I need the number of pens.
    Action: stock {"item":"pens"}
    Observation: 30
    ...
    Action: finish
    Answer: 30

Owns the text of the steps. The tool is chosen by likelihood, its arguments are enforced by its signature. Text format and steps follow the examples of
the prompt well, also with models that were not trained for tools; `lang.agent` is for those that were.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..agent import execute_one
from ..primitives.gen import Gen, gen
from ..primitives.select import select
from ..tools.toolbox import Toolbox
from .winners import check_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agent import CallResult
    from ..ir import Node
    from ..state import State

FINISH = "finish"


@dataclass(frozen=True)
class Step:
    """One round."""

    thought: str
    result: CallResult | None
    """The call and what came of it; None of the last step, which answers."""


def react(
    s: State,
    tools: Sequence[Any],
    name: str = "answer",
    *,
    max_steps: int = 6,
    thought: Node | None = None,
    answer: Node | None = None,
    max_observation_chars: int = 1000,
) -> list[Step]:
    """Take steps until the model chooses to finish, or in step `max_steps`; the answer is in `s[name]`, the steps are returned.

    `thought` and `answer` are gens that set "thought" and `name`, to choose their length and sampling. What a tool raises becomes its
    observation. A tool cannot be called "finish".
    """
    check_number("max_steps", max_steps)
    toolbox = Toolbox(tools)
    thought = thought or gen("thought", max_tokens=60, stop="\n")
    steps: list[Step] = []
    while True:
        s += "Thought:" + thought + "\nAction: "
        choices = [FINISH] if len(steps) + 1 == max_steps else [*toolbox.names, FINISH]
        s += select("action", choices)
        if s["action"] == FINISH:
            s += "\nAnswer:" + (answer or gen(name, max_tokens=100, stop="\n"))
            return [*steps, Step(s["thought"].strip(), None)]
        tool = toolbox[s["action"]]
        s += " " + Gen("arguments", {}, tool.typed.spec, tool.call_of)
        result = execute_one(s, s["arguments"], max_observation_chars)
        s += f"\nObservation: {result.text}\n"
        steps.append(Step(s["thought"].strip(), result))
