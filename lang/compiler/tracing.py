"""Runs a program's body once on placeholders, and writes down what it does as a graph.

Owns the recorder of each branch and the backend that plays results: a text that satisfies each gen's constraint, one choice of each select.
Two variants play different results, so that comparing their graphs shows what depends on them. A result is played when the program reads
it, and so every read is seen. The body is the user's code: whatever it does besides, it does here too. Must not know what graphs are for.

A body that goes on for ever, or that raises because a placeholder is not what it can use, is traced up to there; `Graph.stopped` says why.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any
from zlib import crc32

from ...runtime.messages import Finished, Generate, Output, Ready, Score, Scored, Usage
from ..interpreter import Call, execute
from .graph import Ask, AskStep, BranchGraph, ForkStep, Graph, JoinStep, Part, RoleStep, TextStep
from .regex_samples import SampleTooLarge
from .samples import sample_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...grammar.spec import Spec
    from ...runtime.messages import SamplingParams
    from ..function import Program
    from ..variable import Variable
    from .graph import Kind, Step

MAX_STEPS = 2000
_FACTS = Ready("placeholders", context_length=1 << 20, vocab_size=1 << 16, eos_token_ids=(0,))
_QUOTES = ("‹›", "«»")  # around free placeholders, so that they are found again in later text


class TooLong(BaseException):
    """Not an Exception, so that a body that catches those ends all the same."""


def trace(program: Program, args: Sequence[Any], given: Mapping[str, Any], variant: int) -> Graph:
    """The graph of one run on placeholders. ProgramError for arguments that the program does not take."""
    tracer = Tracer(variant)
    root = tracer.new_recorder(None)
    call = program._call(tuple(args), {**given, "backend": tracer}, tracer.wait, root)  # pyright: ignore[reportPrivateUsage]
    body = tracer.recorded(call.body)
    stopped = ""
    try:
        execute(Call(call.run, call.state, body))
    except TooLong:
        stopped = f"it took more than {MAX_STEPS} steps"
    except Exception as error:  # noqa: BLE001  the user's code met a placeholder
        stopped = f"{type(error).__name__}: {error}"
    return tracer.graph(repr(program).strip("<>"), stopped)


class Tracer:
    """One trace: a Backend that answers when it is waited for, and the record."""

    def __init__(self, variant: int, *, is_mixed: bool = False) -> None:
        """`is_mixed`: requests that could have the same result get one each of their own in most variants."""
        self.facts = _FACTS
        self._variant = variant
        self._is_mixed = is_mixed
        self._recorders: list[Recorder] = []
        self._asks: list[tuple[Ask, Variable]] = []
        self._reads: list[int] = []
        self._pending: dict[str, tuple[Generate | Score, Future[Any]]] = {}
        self._numbers = count(1)
        self._num_steps = 0
        self._is_over = False  # the body has returned: what follows is clearing up

    # ------------------------------------------------------------------------------------ Backend

    def new_id(self, prefix: str) -> str:
        """A name for a branch or request."""
        return f"{prefix}#{next(self._numbers)}"

    def send(self, message: object) -> None:
        """Nothing: the recorders hear what is appended."""

    def generate(self, message: Generate, on_delta: object = None) -> Future[Finished]:
        """A promise, kept when it is waited for."""
        return self._promise(message)

    def score(self, message: Score) -> Future[Scored]:
        """A promise, kept when it is waited for."""
        return self._promise(message)

    def _promise(self, message: Generate | Score) -> Future[Any]:
        future: Future[Any] = Future()
        self._pending[message.request] = (message, future)
        return future

    def wait(self, future: Future[Any], deadline: float | None) -> None:
        """The body, or the end of the run, waits for a result."""
        if not self._is_over:
            self._reads += [a.number for a, each in self._asks if future in (each.done, each.turn)]
        while not future.done() and self._pending:
            message, promised = self._pending.pop(next(iter(self._pending)))
            try:
                promised.set_result(self._answer(message))
            except SampleTooLarge as error:
                promised.set_exception(error)

    def _answer(self, message: Generate | Score) -> Finished | Scored:
        if isinstance(message, Score):
            num = len(message.choices)
            best = -1 if message.branch is None else self._variant_of(message) % num
            logprobs = tuple((-1.0 if i == best else -1e9,) for i in range(num))
            return Scored(message.request, ((1,),) * num, logprobs, Usage())
        outputs = [self._text(message, i) for i in range(message.sampling.n)]
        is_complete = None if message.constraint is None else True
        done = tuple(Output(text, (), "stop", grammar_complete=is_complete) for text in outputs)
        return Finished(message.request, done, Usage())

    def _number(self, message: Generate | Score) -> int:
        return next(a.number for a, each in self._asks if each.request == message.request)

    def _variant_of(self, message: Generate | Score) -> int:
        if not self._is_mixed:
            return self._variant
        return crc32(f"{self._number(message)} {self._variant}".encode()) if self._variant else 0

    def _text(self, message: Generate, output: int) -> str:
        if message.constraint is not None:
            return sample_of(message.constraint, self._variant_of(message) + output)
        number = self._number(message)
        begin, end = _QUOTES[self._variant % 2]
        index = f".{output}" if message.sampling.n > 1 else ""
        return f"{begin}{self._asks[number][0].name} {number}{index}{end}"

    # ------------------------------------------------------------------------------------ record

    def recorded(self, body: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The body, listened to until it ends."""

        def run(state: Any) -> Any:
            try:
                return body(state)
            finally:
                self._is_over = True

        return run

    def new_recorder(self, parent: int | None) -> Recorder:
        """The recorder of one more branch."""
        recorder = Recorder(self, len(self._recorders), parent)
        self._recorders.append(recorder)
        return recorder

    def add(self, branch: int, step: Step) -> None:
        """One more step on a branch."""
        if self._is_over:
            return
        self._num_steps += 1
        if self._num_steps > MAX_STEPS:
            raise TooLong
        self._recorders[branch].steps.append(step)

    def add_text(self, branch: int, text: str) -> None:
        """Text, with what had been read before it."""
        self.add(branch, TextStep((Part(text),), len(self._reads)))

    def add_ask(self, branch: int, variable: Variable, kind: Kind, **of_kind: Any) -> None:
        """A gen or select."""
        number, place = len(self._asks), f"{variable.place.file}:{variable.place.line}"
        reads = tuple(dict.fromkeys(self._reads))
        ask = Ask(number, branch, kind, variable.name, place, reads=reads, **of_kind)
        self._asks.append((ask, variable))
        self.add(branch, AskStep(number))

    def ended(self, branch: int, parent: int) -> None:
        """A branch was joined or closed."""
        steps = self._recorders[parent].steps
        before = steps[-1] if steps else None
        if isinstance(before, JoinStep) and not self._is_over:
            steps[-1] = JoinStep((*before.children, branch))
        else:
            self.add(parent, JoinStep((branch,)))

    def graph(self, program: str, stopped: str) -> Graph:
        """What was written down."""
        branches = tuple(BranchGraph(r.number, r.parent, tuple(r.steps)) for r in self._recorders)
        asks = tuple(_with_result(ask, variable) for ask, variable in self._asks)
        return Graph(program, branches, asks, reads=tuple(self._reads), stopped=stopped)


class Recorder:
    """The companion of one branch."""

    def __init__(self, tracer: Tracer, number: int, parent: int | None) -> None:
        self.number = number
        self.parent = parent
        self.steps: list[Step] = []
        self._tracer = tracer

    def text(self, text: str) -> None:
        """Constant text."""
        self._tracer.add_text(self.number, text)

    def role(self, role: str, begins: bool) -> None:
        """A chat message begins or ends."""
        self._tracer.add(self.number, RoleStep(role, begins))

    def generating(
        self, variable: Variable, sampling: SamplingParams, constraint: Spec | None
    ) -> None:
        """A gen."""
        self._tracer.add_ask(
            self.number,
            variable,
            "gen",
            max_tokens=sampling.max_tokens,
            constraint="" if constraint is None else type(constraint).__name__,
            num_outputs=sampling.n,
            is_repeatable=sampling.temperature == 0 or sampling.seed is not None,
        )

    def choosing(self, variable: Variable, choices: Sequence[str]) -> None:
        """A select."""
        self._tracer.add_ask(self.number, variable, "select", choices=tuple(choices))

    def forked(self, num_children: int) -> list[Recorder]:
        """Branches that continue from here."""
        children = [self._tracer.new_recorder(self.number) for _ in range(num_children)]
        self._tracer.add(self.number, ForkStep(tuple(child.number for child in children)))
        return children

    def closed(self) -> None:
        """The branch ends."""
        if self.parent is not None:
            self._tracer.ended(self.number, self.parent)


def _with_result(ask: Ask, variable: Variable) -> Ask:
    if variable.failure is not None or variable.meta is None:
        return ask
    outputs = tuple(output.text for output in variable.meta.outputs)
    return replace(ask, result=outputs or (variable.text,))
