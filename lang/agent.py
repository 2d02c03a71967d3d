"""An agent: the model calls Python functions and sees their results until it answers.

    s += system("You answer with the help of tools.\n\n" + describe_tools(TOOLS)) + user("What do 11 bananas cost?")
    s += agent_loop("answer", TOOLS, max_turns=6)
    s["answer"], s["answer_turns"]

Owns the loop: an assistant message with calls, the calls carried out, their results as a user message, again. Bounded by `max_turns`: in
the last turn no tool can be called, so there is an answer in any case. All of it stands in the state's text and in its turns. Works under
run, arun, run_batch and in forks, since it only uses what a program may use, on backends that enforce the form of calls
(`StructuralTag`): Engine, RuntimeEndpoint, ScriptedBackend, and replays of these. The others refuse it by name. Must not know messages or greenlets.

What a failing tool raises is told to the model, and so are arguments that a validator of theirs refuses; `on_tool_error="raise"` raises.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from ..errors import ProgramError, TimedOut
from .constraints import constraint_of, only_constraint
from .ir import Routine
from .primitives.gen import Gen, checked_name, own_options
from .primitives.roles import assistant, system, user
from .tools.calls import Call, ToolReply
from .tools.execution import ToolPool, start_call
from .tools.results import MAX_RESULT_CHARS, error_text, result_text, value_text
from .tools.toolbox import Toolbox

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future
    from typing import Unpack

    from ..grammar.spec import Spec
    from ..runtime.messages import Usage
    from .branch import Branch
    from .constraints import Decode
    from .run import Run
    from .sglang_names import ProgramOptions
    from .state import State
    from .tools.toolbox import ToolChoice

OnToolError = Literal["tell", "raise"]


@dataclass(frozen=True)
class CallResult:
    """One call that was carried out."""

    call: Call
    value: Any = None
    """What the tool returned; None if it failed."""
    error: BaseException | None = None
    text: str = ""
    """What the model was told."""
    elapsed_s: float = 0.0
    """From the beginning of the turn's calls to its end."""


@dataclass(frozen=True)
class Turn:
    """One assistant message: its text beside the calls, and the calls with their results; none in the last."""

    text: str
    results: tuple[CallResult, ...]
    usage: Usage


@dataclass(frozen=True)
class AgentResult:
    """How an agent came to its answer."""

    answer: Any
    turns: tuple[Turn, ...]
    stopped: Literal["answer", "max_turns"]
    """Whether the model answered by itself, or had to because no turn was left for a call."""

    @property
    def results(self) -> list[CallResult]:
        """All calls of all turns, in order."""
        return [result for turn in self.turns for result in turn.results]


@dataclass(frozen=True)
class AgentLoop(Routine):
    """See `agent_loop`."""

    name: str
    toolbox: Toolbox
    max_turns: int
    tool_choice: ToolChoice
    parallel_tool_calls: bool
    on_tool_error: OnToolError
    tool_timeout_s: float | None
    max_result_chars: int
    options: dict[str, Any]
    answer: tuple[Spec | None, Decode] = field(repr=False)

    def act(self, s: State) -> None:
        """Take turns until there is an answer; sets the name and name_turns."""
        self.run(s)

    def run(self, s: State) -> AgentResult:
        """As `act`; what became of it."""
        turns: list[Turn] = []
        self._tell_tools(s)
        while True:
            is_last = len(turns) + 1 == self.max_turns
            s += assistant(self._gen("none" if is_last else self._choice(len(turns))))
            reply: ToolReply = s[self.name]
            usage = s.get_meta(self.name).usage
            results = self._carry_out(s, reply)
            turns.append(Turn(reply.text, results, usage))
            if not reply.calls:
                break
            s += user(result_text([result.text for result in results]))
        s[self.name] = reply.answer
        s[f"{self.name}_turns"] = tuple(turns)
        return AgentResult(reply.answer, tuple(turns), "max_turns" if is_last else "answer")

    def _tell_tools(self, s: State) -> None:
        """A conversation that has not begun begins with the tools. One that has says what it wants to."""
        if next(_branch_of(s).all_pieces(), None) is None:
            s += system(self.toolbox.describe())

    def _choice(self, num_turns: int) -> ToolChoice:
        return self.tool_choice if num_turns == 0 else "auto"

    def _gen(self, choice: ToolChoice) -> Gen:
        spec, decode_answer = self.answer
        is_forced = choice not in ("auto", "none")
        constraint = self.toolbox.constraint(
            choice,
            parallel=self.parallel_tool_calls,
            answer=None if is_forced else spec,  # pyright: ignore[reportArgumentType]  checked in agent_loop
        )
        decode = partial(self.toolbox.decode, answer=decode_answer, is_strict=False)
        return Gen(self.name, self.options, constraint, decode)

    def _carry_out(self, s: State, reply: ToolReply) -> tuple[CallResult, ...]:
        run, began_s = _branch_of(s).run, time.monotonic()
        ended_s: dict[Future[Any], float] = {}
        started = [start_call(call, run.loop, ToolPool.shared) for call in reply.calls]
        for future in started:
            future.add_done_callback(lambda done: ended_s.setdefault(done, time.monotonic()))
        results: list[CallResult] = []
        try:
            for call, future in zip(reply.calls, started, strict=True):
                result = self._result(call, future, run, began_s)
                elapsed_s = ended_s.get(future, time.monotonic()) - began_s
                results.append(replace(result, elapsed_s=elapsed_s))
        finally:
            for future in started:
                future.cancel()  # of a run that has ended, or a call that took too long
        return tuple(results)

    def _result(self, call: Call, future: Future[Any], run: Run, began_s: float) -> CallResult:
        timeout_s = self.tool_timeout_s
        if timeout_s is not None:
            timeout_s = max(timeout_s + began_s - time.monotonic(), 0.0)
        error: BaseException | None
        if not run.wait(future, timeout_s):
            error = TimedOut(f"{call.name} had no result within {self.tool_timeout_s} s")
        else:
            error = future.exception()
        if error is None:
            value = future.result()
            return CallResult(call, value, text=value_text(value, self.max_result_chars))
        if self.on_tool_error == "raise" or not isinstance(error, Exception):
            error.add_note(f"the agent called {call}")
            raise error
        return CallResult(call, error=error, text=error_text(error, self.max_result_chars))


def agent_loop(
    name: str,
    tools: Sequence[Any],
    *,
    max_turns: int = 8,
    tool_choice: ToolChoice = "auto",
    parallel_tool_calls: bool = True,
    on_tool_error: OnToolError = "tell",
    tool_timeout_s: float | None = None,
    max_result_chars: int = MAX_RESULT_CHARS,
    max_tokens: int | None = None,
    schema: Any = None,
    regex: str | None = None,
    choices: Sequence[str] | None = None,
    **options: Unpack[ProgramOptions],
) -> AgentLoop:
    """Let the model call `tools` (Python functions) until it answers: `s += agent_loop("answer", [search, add])`.

    The answer is in `s[name]`, of the type of `schema` if that is given, what happened in `s[name + "_turns"]`. The model must be told of
    the tools: by `describe_tools(tools)` in a system message; on an empty state that is done here. `max_turns` assistant messages at
    most; in the last none of the tools can be called. `tool_choice` holds for the first ("required": it begins with a call).
    `tool_timeout_s` is for each turn's calls, which run side by side. `max_tokens` and the sampling options hold for each message.
    """
    if isinstance(max_turns, bool) or not isinstance(max_turns, int) or max_turns < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ProgramError(f"max_turns={max_turns!r} is not a number above 0", place="max_turns")
    if on_tool_error not in ("tell", "raise"):
        hint = '"tell" the model, or "raise"'
        raise ProgramError(f"on_tool_error={on_tool_error!r}", place="on_tool_error", hint=hint)
    if checked_name(name) is None:
        raise ProgramError("an agent's answer needs a name", place="name")
    constraint = {"schema": schema, "regex": regex, "choices": choices}
    only_constraint(constraint, "an agent")
    toolbox = Toolbox(tools)
    loop = AgentLoop(
        name, toolbox, max_turns, tool_choice, parallel_tool_calls, on_tool_error, tool_timeout_s,
        max_result_chars, own_options(max_tokens, options), constraint_of(constraint),
    )  # fmt: skip
    toolbox.constraint(tool_choice, parallel=parallel_tool_calls)
    return loop


def run_agent(s: State, tools: Sequence[Any], name: str = "answer", **options: Any) -> AgentResult:
    """As `s += agent_loop(name, tools, ...)`, with the same options; returns the answer, the turns and why it stopped."""
    return agent_loop(name, tools, **options).run(s)


def execute_one(s: State, call: Call, max_result_chars: int = MAX_RESULT_CHARS) -> CallResult:
    """Carry out one call on the pool, letting other programs run; what it raises is in the result."""
    run = _branch_of(s).run
    future = start_call(call, run.loop, ToolPool.shared)
    began_s = time.monotonic()
    try:
        run.wait(future)
    finally:
        future.cancel()
    error, elapsed_s = future.exception(), time.monotonic() - began_s
    if error is not None:
        return CallResult(call, None, error, error_text(error, max_result_chars), elapsed_s)
    value = future.result()
    return CallResult(call, value, None, value_text(value, max_result_chars), elapsed_s)


def _branch_of(s: State) -> Branch:
    return s._branch  # pyright: ignore[reportPrivateUsage]  a routine is a part of the language
