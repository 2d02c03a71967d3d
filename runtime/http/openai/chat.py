"""A chat request and its answer, without sockets: what to ask of the engine, and how its output becomes a message or a row of chunks.

    plan_chat(body, ...) -> ChatPlan -> m.Generate
    whole:   chat_answer(plan, head, finished, ...)
    stream:  ChatStream.push(delta)*, end(finished): the order of chunks that all clients accept -
             role; content, or per call (index, id, type, name) and then its arguments; finish_reason; usage if asked for

A stream's pieces joined equal the whole answer. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

from ....errors import RadixError
from ....grammar.spec import Spec
from ... import messages as m
from ...tools import CallArguments, CallBegin, TextPiece, ToolCall, ToolEvent, ToolSet, collect
from .answers import (
    NO_NOTES,
    CalledCustom,
    CalledFunction,
    ChatAnswer,
    ChatChoice,
    ChatChunk,
    ChatChunkChoice,
    ChatDelta,
    ChatLogprobs,
    ChatMessage,
    CustomDelta,
    Extras,
    FunctionDelta,
    Head,
    Notes,
    ToolCallAnswer,
    ToolCallDelta,
    UsageAnswer,
    stop_reason_of,
)
from .bodies import ChatBody
from .constraints import Constraint, constraint_of
from .endings import Limits, finish_reason, was_cut
from .history import conversation
from .logprobs import TokenLog, TokenTable, chat_logprobs, output_tokens
from .sampling import chat_sampling
from .unsupported import refuse_unsupported


@dataclass(frozen=True, slots=True)
class ChatPlan:
    """A checked chat request."""

    generate: m.Generate
    tools: ToolSet
    limits: Limits
    answer: Constraint | None  # what the answer must be where no tool is called
    num_top_logprobs: int | None  # None: no log-probabilities
    include_usage: bool

    def relaxed(self, error: RadixError, request: str) -> tuple[ChatPlan, str] | None:
        """The plan with the tool argument unconstrained that the grammar refused, and a warning; None if that is not it."""
        relaxed = self.tools.relaxed(error)
        if relaxed is None:
            return None
        spec = _spec_of(relaxed.toolset, self.answer)
        generate = msgspec.structs.replace(self.generate, request=request, constraint=spec)
        return replace(self, generate=generate, tools=relaxed.toolset), relaxed.warning


def plan_chat(
    body: ChatBody, facts: m.Ready, new_id: Callable[[str], str], namespace: str
) -> ChatPlan:
    """Check `body` and say what to ask. Raises errors of `errors.py` whose place is a field of the body."""
    refuse_unsupported(body)
    sampling = chat_sampling(body)
    tools = ToolSet.of(body.tools, body.tool_choice, body.parallel_tool_calls)
    answer = constraint_of(body)
    generate = m.Generate(
        new_id("chat"),
        segments=(m.Chat(conversation(body.messages), tools.wire_tools),),
        sampling=sampling,
        constraint=_spec_of(tools, answer),
        stream=bool(body.stream),
        namespace=namespace,
    )
    options = body.stream_options
    return ChatPlan(
        generate,
        tools,
        Limits(
            tools.is_open_ended and answer is None,
            sampling.max_tokens,
            facts.context_length,
            facts.eos_token_ids,
        ),
        answer,
        sampling.logprobs,
        bool(options is not None and options.include_usage),
    )


def _spec_of(tools: ToolSet, answer: Constraint | None) -> Spec | None:
    if not tools.is_active:
        return None if answer is None else answer.spec
    return tools.constraint(None if answer is None else answer.spec)


# ---------------------------------------------------------------------------------------------- whole


def chat_answer(
    plan: ChatPlan,
    head: Head,
    finished: m.Finished,
    table: TokenTable,
    notes: Notes = NO_NOTES,
) -> ChatAnswer:
    """The answer that is not streamed."""
    choices = [
        _choice(plan, index, output, finished.usage, table)
        for index, output in enumerate(finished.outputs)
    ]
    usage = UsageAnswer.of(finished.usage)
    extras = Extras.of(notes, finished)
    return ChatAnswer(head.id, head.created, head.model, choices, usage, extras)


def _choice(
    plan: ChatPlan, index: int, output: m.Output, usage: m.Usage, table: TokenTable
) -> ChatChoice:
    parser = plan.tools.parser()
    is_cut = was_cut(output, usage.prompt_tokens, plan.limits)
    content, calls = collect([*parser.push(output.text), *parser.finish(is_cut)])
    message = ChatMessage(
        content,
        [_call(call) for call in calls] or msgspec.UNSET,
    )
    logprobs = None
    if plan.num_top_logprobs is not None:
        tokens = output_tokens(output, table)
        logprobs = chat_logprobs(tokens, plan.num_top_logprobs, table)
    reason = finish_reason(is_cut=is_cut, has_calls=bool(calls))
    return ChatChoice(index, message, reason, logprobs, stop_reason_of(output))


def _call(call: ToolCall) -> ToolCallAnswer:
    if call.is_custom:
        return ToolCallAnswer(
            call.id, type="custom", custom=CalledCustom(call.name, call.arguments)
        )
    return ToolCallAnswer(call.id, CalledFunction(call.name, call.arguments))


# ---------------------------------------------------------------------------------------------- stream


class ChatStream:
    """The chunks of one streamed answer."""

    def __init__(
        self,
        plan: ChatPlan,
        head: Head,
        table: TokenTable,
        notes: Notes = NO_NOTES,
    ) -> None:
        self._plan = plan
        self._head = head
        self.has_begun = False
        self._notes = notes
        self._choices = [
            _ChoiceStream(plan, index, table) for index in range(plan.generate.sampling.n)
        ]

    def push(self, delta: m.Delta) -> list[ChatChunk]:
        """New text of one choice; the first time, the roles before it."""
        new = [self._chunk([choice]) for choice in self._choices[delta.index].push(delta)]
        return [*self._begin(), *new] if new else []

    def end(self, finished: m.Finished) -> list[ChatChunk]:
        """What is left, why each choice ended, and the usage."""
        chunks = self._begin() + [
            self._chunk([part])
            for choice, output in zip(self._choices, finished.outputs, strict=True)
            for part in choice.end(output, finished.usage)
        ]
        extras = Extras.of(self._notes, finished)
        chunks[-1] = msgspec.structs.replace(chunks[-1], radixlm=extras)
        if self._plan.include_usage:
            usage = UsageAnswer.of(finished.usage)
            chunks.append(msgspec.structs.replace(self._chunk([]), usage=usage))
        return chunks

    def _begin(self) -> list[ChatChunk]:
        if self.has_begun:
            return []
        self.has_begun = True
        # a call has no content: some clients show an empty text if they are told of one
        has_tools = self._plan.tools.is_active
        delta = ChatDelta("assistant") if has_tools else ChatDelta("assistant", "")
        return [self._chunk([ChatChunkChoice(index, delta)]) for index in range(len(self._choices))]

    def _chunk(self, choices: list[ChatChunkChoice]) -> ChatChunk:
        return ChatChunk(self._head.id, self._head.created, self._head.model, choices)


class _ChoiceStream:
    """One choice: its parser, and its tokens that wait for their text."""

    def __init__(self, plan: ChatPlan, index: int, table: TokenTable) -> None:
        self._plan = plan
        self._index = index
        self._parser = plan.tools.parser() if plan.tools.is_active else None
        self._num_top = plan.num_top_logprobs
        self._table = table
        self._log = TokenLog(table)
        self._has_calls = False

    def push(self, delta: m.Delta) -> list[ChatChunkChoice]:
        logprobs = self._logprobs(delta)
        if self._parser is None:
            if not delta.text and logprobs is msgspec.UNSET:
                return []
            return [ChatChunkChoice(self._index, ChatDelta(content=delta.text), None, logprobs)]
        deltas = [self._delta(event) for event in self._parser.push(delta.text)]
        if not deltas and logprobs is not msgspec.UNSET:
            deltas = [ChatDelta()]
        return [
            ChatChunkChoice(self._index, part, None, msgspec.UNSET if number else logprobs)
            for number, part in enumerate(deltas)
        ]

    def end(self, output: m.Output, usage: m.Usage) -> list[ChatChunkChoice]:
        plan = self._plan
        is_cut = was_cut(output, usage.prompt_tokens, plan.limits)
        events = self._parser.finish(is_cut) if self._parser is not None else []
        parts = [ChatChunkChoice(self._index, self._delta(event)) for event in events]
        reason = finish_reason(is_cut=is_cut, has_calls=self._has_calls)
        last = ChatChunkChoice(self._index, ChatDelta(), reason, stop_reason=stop_reason_of(output))
        return [*parts, last]

    def _logprobs(self, delta: m.Delta) -> ChatLogprobs | msgspec.UnsetType:
        if self._num_top is None:
            return msgspec.UNSET
        self._log.push(delta.logprobs)
        tokens = self._log.release(len(delta.text))
        return chat_logprobs(tokens, self._num_top, self._table) if tokens else msgspec.UNSET

    def _delta(self, event: ToolEvent) -> ChatDelta:
        match event:
            case TextPiece(text):
                return ChatDelta(content=text)
            case CallBegin(index, name=name, is_custom=True):
                self._has_calls = True
                custom = CustomDelta(name, "")
                call = ToolCallDelta(index, event.id, "custom", custom=custom)
                return ChatDelta(tool_calls=[call])
            case CallArguments(index, text, is_custom=True):
                custom = CustomDelta(input=text)
                return ChatDelta(tool_calls=[ToolCallDelta(index, custom=custom)])
            case CallBegin(index, name=name):
                self._has_calls = True
                function = FunctionDelta(name, "")
                return ChatDelta(tool_calls=[ToolCallDelta(index, event.id, "function", function)])
            case CallArguments(index, text):
                function = FunctionDelta(arguments=text)
                return ChatDelta(tool_calls=[ToolCallDelta(index, function=function)])
