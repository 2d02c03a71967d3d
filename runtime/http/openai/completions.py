"""A request for text completions and its answer, without sockets: several prompts, n of each, the best of several, echo.

    plan_completion(body, ...) -> CompletionPlan -> one m.Generate per prompt
    whole:   completion_answer(plan, head, finished, ...)
    stream:  CompletionStream.begin(), push(which, delta)*, end(finished)

The choice of sample j of prompt i has index i * n + j. Echo with log-probabilities needs the prompt's ids: then the caller tokenizes first
(`needs_prompt_ids`) and asks with ids. A stream's pieces joined equal the whole answer. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import msgspec

from ....errors import PromptError, SamplingError
from ... import messages as m
from ...detokenizer import decode_tokens
from .answers import (
    NO_NOTES,
    Extras,
    Head,
    LegacyLogprobs,
    Notes,
    TextAnswer,
    TextChoice,
    UsageAnswer,
    stop_reason_of,
)
from .bodies import CompletionBody
from .constraints import Constraint, constraint_of
from .logprobs import (
    TokenLog,
    TokenTable,
    legacy_logprobs,
    mean_logprob,
    output_tokens,
    prompt_tokens,
)
from .sampling import completion_sampling
from .unsupported import refuse_unsupported

MAX_PROMPTS = 1024  # of one request
MAX_CHOICES = 4096  # of one request: its prompts times the samples of each


@dataclass(frozen=True, slots=True)
class CompletionPlan:
    """A checked completion request."""

    generates: tuple[m.Generate, ...]  # one per prompt
    constraint: Constraint | None
    num_choices: int  # of each prompt
    num_top_logprobs: int | None  # to tell; None: none
    echo: bool
    include_usage: bool

    @property
    def needs_prompt_ids(self) -> bool:
        """Is each token of the prompts told, so that their ids are needed?"""
        return self.echo and self.num_top_logprobs is not None

    def with_prompt_ids(self, prompt_ids: Sequence[Sequence[int]]) -> CompletionPlan:
        """The same for prompts given as ids."""
        return replace(
            self,
            generates=tuple(
                msgspec.structs.replace(generate, segments=(m.Ids(tuple(ids)),))
                for generate, ids in zip(self.generates, prompt_ids, strict=True)
            ),
        )


def plan_completion(
    body: CompletionBody, new_id: Callable[[str], str], namespace: str
) -> CompletionPlan:
    """Check `body` and say what to ask. Raises errors of `errors.py` whose place is a field of the body."""
    refuse_unsupported(body)
    sampling = completion_sampling(body)
    constraint = constraint_of(body)
    if body.echo and body.stream and body.logprobs is not None:
        raise PromptError("echo with logprobs cannot be streamed", place="echo")
    segments = prompt_segments(body.prompt)
    if len(segments) * sampling.n > MAX_CHOICES:
        raise SamplingError(
            f"{len(segments)} prompts with {sampling.n} samples each, a request takes {MAX_CHOICES} samples",
            place="n" if body.best_of is None else "best_of",
        )
    generates = tuple(
        m.Generate(
            new_id("completion"),
            segments=(segment,),
            sampling=sampling,
            constraint=None if constraint is None else constraint.spec,
            stream=bool(body.stream),
            namespace=namespace,
        )
        for segment in segments
    )
    return CompletionPlan(
        generates,
        constraint,
        1 if body.n is None else body.n,
        body.logprobs,
        bool(body.echo),
        body.stream_options is not None and bool(body.stream_options.include_usage),
    )


def prompt_segments(prompt: str | list[Any] | None) -> list[m.Text | m.Ids]:
    """The prompts of a body: a text, a list of texts, ids, or a list of lists of ids."""
    if prompt is None:
        raise PromptError("prompt is missing", place="prompt")
    if isinstance(prompt, str):
        return [m.Text(prompt)]
    if not prompt:
        raise PromptError("prompt is an empty list", place="prompt")
    if _is_token_id(prompt[0]):
        return [_ids(prompt, "prompt")]
    if len(prompt) > MAX_PROMPTS:
        raise PromptError(f"{len(prompt)} prompts, a request takes {MAX_PROMPTS}", place="prompt")
    return [_segment(item, f"prompt[{index}]") for index, item in enumerate(prompt)]


def _segment(item: Any, place: str) -> m.Text | m.Ids:
    if isinstance(item, str):
        return m.Text(item)
    if isinstance(item, list):
        return _ids(cast("list[Any]", item), place)
    raise PromptError(
        f"a prompt is a text or a list of token ids, not {type(item).__name__}", place=place
    )


def _ids(items: list[Any], place: str) -> m.Ids:
    for index, item in enumerate(items):
        if not _is_token_id(item):
            raise PromptError(f"{item!r:.80} is not a token id", place=f"{place}[{index}]")
    return m.Ids(tuple(items))


def _is_token_id(item: Any) -> bool:
    return isinstance(item, int) and not isinstance(item, bool)


def _prompt_text(generate: m.Generate, table: TokenTable) -> str:
    segment = generate.segments[0]
    if isinstance(segment, m.Text):
        return segment.text
    return decode_tokens(table.plain_bytes, cast("m.Ids", segment).token_ids)


# ---------------------------------------------------------------------------------------------- whole


def completion_answer(
    plan: CompletionPlan,
    head: Head,
    finished: Sequence[m.Finished],
    table: TokenTable,
    notes: Notes = NO_NOTES,
) -> TextAnswer:
    """The answer that is not streamed; `finished` in the order of the prompts."""
    choices: list[TextChoice] = []
    for generate, one in zip(plan.generates, finished, strict=True):
        outputs = one.outputs
        if len(outputs) > plan.num_choices:
            outputs = sorted(outputs, key=mean_logprob, reverse=True)[: plan.num_choices]
        choices += [
            _choice(plan, len(choices) + number, generate, one, output, table)
            for number, output in enumerate(outputs)
        ]
    return TextAnswer(
        head.id,
        head.created,
        head.model,
        choices,
        UsageAnswer.of(*(one.usage for one in finished)),
        Extras.of(notes, *finished),
    )


def _choice(
    plan: CompletionPlan,
    index: int,
    generate: m.Generate,
    finished: m.Finished,
    output: m.Output,
    table: TokenTable,
) -> TextChoice:
    prompt = _prompt_text(generate, table) if plan.echo else ""
    logprobs = None
    if plan.num_top_logprobs is not None:
        tokens = output_tokens(output, table, len(prompt))
        segment = generate.segments[0]
        if plan.echo and isinstance(segment, m.Ids):
            known = finished.prompt_logprobs or ()
            tokens = prompt_tokens(segment.token_ids, known, table) + tokens
        logprobs = legacy_logprobs(tokens, plan.num_top_logprobs, table)
    return TextChoice(
        index, prompt + output.text, output.finish_reason, logprobs, stop_reason_of(output)
    )


# ---------------------------------------------------------------------------------------------- stream


class CompletionStream:
    """The chunks of one streamed answer."""

    def __init__(
        self,
        plan: CompletionPlan,
        head: Head,
        table: TokenTable,
        notes: Notes = NO_NOTES,
    ) -> None:
        self._plan = plan
        self._head = head
        self._table = table
        self._notes = notes
        num_choices = plan.num_choices * len(plan.generates)
        self._logs = [TokenLog(table) for _ in range(num_choices)]

    def begin(self) -> list[TextAnswer]:
        """The prompts, where they are echoed."""
        if not self._plan.echo:
            return []
        texts = [_prompt_text(generate, self._table) for generate in self._plan.generates]
        return [
            self._chunk([TextChoice(index, texts[index // self._plan.num_choices])])
            for index in range(len(self._logs))
        ]

    def push(self, which: int, delta: m.Delta) -> list[TextAnswer]:
        """New text of one sample of prompt number `which`."""
        index = which * self._plan.num_choices + delta.index
        logprobs = self._logprobs(index, delta)
        if not delta.text and logprobs is None:
            return []
        return [self._chunk([TextChoice(index, delta.text, None, logprobs)])]

    def end(self, finished: Sequence[m.Finished]) -> list[TextAnswer]:
        """Why each choice ended, and the usage."""
        outputs = [output for one in finished for output in one.outputs]
        chunks = [
            self._chunk([TextChoice(index, "", output.finish_reason, None, stop_reason_of(output))])
            for index, output in enumerate(outputs)
        ]
        extras = Extras.of(self._notes, *finished)
        chunks[-1] = msgspec.structs.replace(chunks[-1], radixlm=extras)
        if self._plan.include_usage:
            usage = UsageAnswer.of(*(one.usage for one in finished))
            chunks.append(msgspec.structs.replace(self._chunk([]), usage=usage))
        return chunks

    def _logprobs(self, index: int, delta: m.Delta) -> LegacyLogprobs | None:
        if self._plan.num_top_logprobs is None:
            return None
        log = self._logs[index]
        log.push(delta.logprobs)
        tokens = log.release(len(delta.text))
        if not tokens:
            return None
        return legacy_logprobs(tokens, self._plan.num_top_logprobs, self._table)

    def _chunk(self, choices: list[TextChoice]) -> TextAnswer:
        return TextAnswer(self._head.id, self._head.created, self._head.model, choices)
