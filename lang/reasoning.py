"""Thinking kept apart from the answer: `separate_reasoning`, with or without a budget.

Owns the marks that models put around what they think, how an output is divided at them, and the forced end of thinking that takes too long.
The thinking is done on a copy of the branch: what follows sees the answer only, `s[name]` is the answer and `s[name + "_reasoning_content"]` the
thinking. A constraint of the gen holds for the answer. Must not know messages' transport or how the copy is made.

    without a budget   one request, divided at the end mark
    with a budget      thinking up to the end mark or n tokens; the end mark is written; then the answer
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ..errors import OutputError, ProgramError
from ..grammar.spec import AfterReasoning
from ..runtime.messages import SamplingParams, Text
from .beside import More, Outcome
from .ir import Concat, Node, as_node
from .primitives.gen import Gen
from .primitives.roles import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..grammar.spec import Spec
    from ..runtime.messages import Finished, Output
    from .beside import MessageSoFar
    from .ir import BranchOps
    from .variable import Meta

SUFFIX = "_reasoning_content"


@dataclass(frozen=True)
class Marks:
    """How a kind of model shows its thinking. `is_open`: its prompt ends inside it, so an output may begin without `begin`."""

    begin: str = "<think>"
    end: str = "</think>"
    is_open: bool = False


MODEL_TYPES = {
    "deepseek-r1": Marks(is_open=True),
    "deepseek-v3": Marks(),
    "glm45": Marks(),
    "kimi": Marks("◁think▷", "◁/think▷"),
    "minimax": Marks(is_open=True),
    "qwen3": Marks(),
    "qwen3-thinking": Marks(is_open=True),
    "step3": Marks(is_open=True),
}


@dataclass(frozen=True)
class SeparatedGen(Node):
    """A gen whose thinking is kept apart."""

    gen: Gen
    marks: Marks
    max_thinking_tokens: int | None

    def submit(self, branch: BranchOps) -> None:
        """Ask the branch to generate, and file the thinking beside the answer."""
        thinking = partial(Thinking, self.marks, self.max_thinking_tokens, self.gen.decode)
        replace(self.gen, beside=thinking).submit(branch)
        branch.also(SUFFIX, _reasoning_of)


def separate_reasoning(
    expr: Node, model_type: str = "qwen3", *, max_thinking_tokens: int | None = None
) -> Node:
    """Each gen in `expr` with its thinking kept apart: `s += assistant(separate_reasoning(gen("x"), "qwen3"))`.

    `s["x"]` is the answer, `s["x_reasoning_content"]` the thinking, and the branch goes on with the answer alone. A constraint of the gen
    holds for the answer. `max_thinking_tokens` ends the thinking by force; the gen's `max_tokens` then counts the answer only, without it
    both. `model_type` says which marks the model uses. ProgramError for one that is unknown, or a gen that is asked again.
    """
    marks = MODEL_TYPES.get(model_type)
    if marks is None:
        hint = f"Known: {', '.join(MODEL_TYPES)}"
        raise ProgramError(f"unknown model_type {model_type!r}", place="model_type", hint=hint)
    budget = max_thinking_tokens
    if budget is not None and (type(budget) is not int or budget < 0):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ProgramError(
            f"max_thinking_tokens={budget!r} is no number of tokens", place="max_thinking_tokens"
        )
    return _separated(as_node(expr), marks, budget)


def _separated(node: Node, marks: Marks, budget: int | None) -> Node:
    if isinstance(node, Concat):
        return Concat(tuple(_separated(item, marks, budget) for item in node.items))
    if isinstance(node, Role):
        return Role(node.role, _separated(node.content, marks, budget))
    if not isinstance(node, Gen):
        return node
    if node.beside is not None:
        raise ProgramError("a gen with max_reasks or check cannot have its reasoning apart")
    return SeparatedGen(node, marks, budget)


@dataclass
class Thinking:
    """The thinking and the answer of one gen in one run; a `Beside`."""

    marks: Marks
    budget: int | None
    decode: Callable[[Output], object]
    _sampling: SamplingParams = field(default_factory=SamplingParams)
    _constraint: Spec | None = None
    _thought: str | None = None

    def begin(self, sampling: SamplingParams, constraint: Spec | None) -> More:
        """The thinking, or all in one. ProgramError for several outputs."""
        if sampling.n > 1:
            raise ProgramError(f"reasoning cannot be kept apart with n={sampling.n}", place="n")
        self._sampling = sampling
        if self.budget is None:
            if constraint is None or isinstance(constraint, AfterReasoning):
                return More((), constraint, sampling)
            return More((), AfterReasoning(constraint, self.marks.end), sampling)
        is_after = isinstance(constraint, AfterReasoning)
        self._constraint = constraint.content if is_after else constraint
        begun = () if self.marks.is_open else (Text(f"{self.marks.begin}\n"),)
        stops = (*sampling.stop, self.marks.end)
        bounded = msgspec.structs.replace(
            sampling, max_tokens=self.budget, min_tokens=0, stop=stops, include_stop=False
        )
        return More(begun, None, bounded)

    def answered(self, finished: Finished, message: MessageSoFar) -> More | Outcome:
        """The answer, or after thinking with a budget the request for it."""
        output = finished.outputs[0]
        if self.budget is None:
            thought, text = divide(output.text, self.marks)
            return self._outcome(output, thought, text)
        if self._thought is None:
            self._thought = output.text.strip()
            end = Text(f"{'' if output.text.endswith(chr(10)) else chr(10)}{self.marks.end}\n\n")
            return More((end,), self._constraint, self._sampling)
        return self._outcome(output, self._thought, output.text)

    def _outcome(self, output: Output, thought: str, text: str) -> Outcome:
        answer = msgspec.structs.replace(output, text=text)
        try:
            value, refusal = self.decode(answer), None
        except OutputError as error:
            value, refusal = None, error
        return Outcome(text, value, refusal, reasoning=thought)


def divide(text: str, marks: Marks) -> tuple[str, str]:
    """(thinking, answer) of an output. Without an end mark all that was thought is thinking; without any mark all is answer."""
    has_begun = text.lstrip().startswith(marks.begin)
    if not (has_begun or marks.is_open or marks.end in text):
        return "", text
    thought, found, answer = text.partition(marks.end)
    thought = thought.replace(marks.begin, "", 1).strip()
    return thought, answer.strip() if found else ""


def _reasoning_of(meta: Meta) -> str:
    return meta.reasoning
