"""From a branch to the engine's requests, and from the engine's results to the client's answer. Pure functions over one `Work`.

A Generate is one engine request; a Score one per choice that adds a token, each computing no new token but the log-probabilities of the
prompt from the first position where constant and constant + choice differ; what it begins with like an earlier choice is scored there. Knows no socket, queue or session rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ..errors import PromptError, ServiceError, UserError
from . import messages as m
from .branches import Branch, TokenizerLike, check_choices
from .output_text import OutputText, output_of, without_stop_token
from .sessions import Work


def branch_of(work: Work) -> Branch:
    """The branch that `work` runs on; it exists once the work is started."""
    assert work.queue.branch is not None
    return work.queue.branch


def parts_of(work: Work, tokenizer: TokenizerLike) -> list[tuple[int, m.Submit]]:
    """The engine's requests for `work`, each with its index. Raises PromptError or ProgramError."""
    prefix = f"{work.session.number}.{work.number}/{work.name}"  # never used again
    if isinstance(work.message, m.Generate):
        return [(0, _generate_part(work, work.message, prefix, tokenizer))]
    return _score_parts(work, work.message, prefix)


def _generate_part(
    work: Work, message: m.Generate, prefix: str, tokenizer: TokenizerLike
) -> m.Submit:
    branch = branch_of(work)
    sampling = message.sampling
    if message.stream:
        work.outputs = [OutputText(tokenizer.decoder(), sampling.stop) for _ in range(sampling.n)]
        work.num_streamed = [0] * sampling.n
    return m.Submit(
        request=prefix,
        token_ids=tuple(branch.prompt_ids()),
        sampling=sampling,
        namespace=branch.namespace,
        program=work.program,
        stop_bytes=tuple(stop.encode() for stop in sampling.stop),
        hints=message.hints,
        stream=message.stream,
    )


def _score_parts(work: Work, message: m.Score, prefix: str) -> list[tuple[int, m.Submit]]:
    check_choices(message.choices)
    branch = branch_of(work)
    constant, wholes = branch.ids_with(message.choices)
    start = min(_common_length(constant, whole, len(branch.ids)) for whole in wholes)
    if start == 0:
        raise PromptError(
            "there is no text before the choices to judge them by",
            place="choices",
            hint="Append some text first",
        )
    work.choice_ids = [whole[start:] for whole in wholes]
    work.choice_heads = [_head_of(work.choice_ids, index) for index in range(len(wholes))]
    # what follows, follows the choice that is taken, which is one of these parts
    hints = m.Hints(priority=message.hints.priority)
    work.choice_start = start
    parts: list[tuple[int, m.Submit]] = []
    for index, whole in enumerate(wholes):
        first = start + work.choice_heads[index][1]
        if first == len(whole):
            continue  # all of it is in an earlier one, or it adds no token
        sampling = m.SamplingParams(max_tokens=0, prompt_logprobs=0, prompt_logprobs_start=first)
        part = m.Submit(
            request=f"{prefix}/{index}",
            token_ids=tuple(whole),
            sampling=sampling,
            namespace=branch.namespace,
            hints=hints,
        )
        parts.append((index, part))
    return parts


def _head_of(choice_ids: Sequence[Sequence[int]], index: int) -> tuple[int, int]:
    """The earlier choice that begins most like this one, and how many tokens both have: these are scored there."""
    own = choice_ids[index]
    best = (0, 0)
    for other in range(index):
        length = _common_length(own, choice_ids[other], 0)
        if length > best[1]:
            best = (other, length)
    return best


def _common_length(first: Sequence[int], second: Sequence[int], known: int) -> int:
    """Length of the common prefix, of which `known` is certain."""
    end = min(len(first), len(second))
    return next((i for i in range(min(known, end), end) if first[i] != second[i]), end)


def finished_of(work: Work, done: m.Done, tokenizer: TokenizerLike) -> m.Finished:
    """The answer to a Generate; its branch goes on with the first sample, the others are remembered."""
    assert isinstance(work.message, m.Generate)
    branch = branch_of(work)
    eos_ids, include_stop = tokenizer.eos_token_ids, work.message.sampling.include_stop
    kept = [
        without_stop_token(sample, eos_ids, include_stop=include_stop) for sample in done.samples
    ]
    outputs = tuple(
        output_of(sample, ids, tokenizer.token_bytes)
        for sample, ids in zip(done.samples, kept, strict=True)
    )
    for sample, ids in list(zip(done.samples, kept, strict=True))[1:]:
        branch.remember_output(ids, sample.cut_byte)
    branch.continue_with(kept[0], done.samples[0].cut_byte)
    return m.Finished(
        work.name,
        outputs,
        done.usage,
        done.seed,
        done.prompt_logprobs,
        branch.replaced,
        done.queue_s,
    )


def stream_rest(work: Work, done: m.Done, finished: m.Finished) -> list[m.Delta]:
    """What the streams of `work` have not given out yet."""
    rest: list[m.Delta] = []
    for index, (sample, output) in enumerate(zip(done.samples, finished.outputs, strict=True)):
        text = work.outputs[index].finish(output.text)
        num_sent = work.num_streamed[index]
        if text or num_sent < len(sample.token_ids):
            logprobs = (sample.logprobs or ())[num_sent:]
            rest.append(m.Delta(work.name, index, text, sample.token_ids[num_sent:], logprobs))
    return rest


def scored_of(work: Work) -> m.Scored:
    """The answer to a Score."""
    logprobs: list[tuple[float, ...]] = []
    usages = [done.usage for done in work.parts_done.values()]
    for index, ids in enumerate(work.choice_ids):
        source, num_shared = work.choice_heads[index]
        own = logprobs[source][:num_shared] if num_shared else ()
        done = work.parts_done.get(index)
        if done is not None:
            own += tuple(_choice_logprobs(work.choice_start + num_shared, ids[num_shared:], done))
        logprobs.append(own)
    usage = m.Usage(
        prompt_tokens=sum(usage.prompt_tokens for usage in usages),
        cached_tokens=sum(usage.cached_tokens for usage in usages),
    )
    return m.Scored(work.name, tuple(tuple(ids) for ids in work.choice_ids), tuple(logprobs), usage)


def _choice_logprobs(start: int, choice_ids: Sequence[int], done: m.Done) -> list[float]:
    found = done.prompt_logprobs or ()
    if len(found) == start + len(choice_ids):  # by absolute position
        found = found[start:]
    values = [entry.logprob for entry in found if entry is not None]
    if len(values) != len(choice_ids):
        raise ServiceError(
            f"the engine gave {len(values)} log-probabilities for {len(choice_ids)} tokens"
        )
    return values


def refusal_of_bytes(data: bytes, error: Exception) -> m.Failed | None:
    """The answer to an unintelligible message, if it at least names a request, so that its sender does not wait for ever."""
    try:
        content: Any = msgspec.msgpack.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    name: Any = content.get("request") if isinstance(content, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(name, str):
        return None
    return m.Failed(name, m.WireError.of(UserError(f"the message was not understood: {error}")))


def facts_of(model: str, tokenizer: TokenizerLike, engine: m.EngineReady) -> m.Ready:
    """What clients need to know of the model."""
    return m.Ready(
        model=model,
        context_length=engine.context_length,
        vocab_size=tokenizer.vocab_size,
        eos_token_ids=tuple(tokenizer.eos_token_ids),
        engine_epoch=engine.epoch,
        cache_tokens=engine.num_pages * engine.page_size,
        kv_dtype=engine.kv_dtype,
    )


def vocabulary_of(request: str, tokenizer: TokenizerLike) -> m.Vocabulary:
    """What each token spells, for clients that show single tokens."""
    token_bytes = tuple(data or b"" for data in tokenizer.token_bytes)
    return m.Vocabulary(request, token_bytes, dict(tokenizer.special_spellings))
