"""What `radixlm bench` measures on this machine: prefix sharing, time to first token, decoding, masks.

Owns the four measurements, through the public Engine as a user has it. Each compares two ways in one run, so that its ratio says more
than its rates. Knows nothing of printing.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from radixlm.offline import Engine
    from radixlm.runtime.config import EngineConfig

_SENTENCE = "The committee met on Tuesday and discussed the budget for the new library in detail. "
_SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 60},
        "topic": {"enum": ["budget", "library", "staff"]},
        "points": {"type": "array", "items": {"type": "string", "maxLength": 40}, "maxItems": 4},
    },
    "required": ["title", "topic", "points"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Row:
    """One number."""

    group: str
    name: str
    value: float
    unit: str
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much work; tokens and requests."""

    prefix_sentences: int = 40
    num_requests: int = 16
    num_tokens: int = 32
    rounds: int = 3


QUICK = Sizes(prefix_sentences=8, num_requests=4, num_tokens=8, rounds=1)


@dataclass(frozen=True, slots=True)
class Report:
    """All rows, and what they were measured on."""

    model: str
    machine: dict[str, Any]
    rows: list[Row] = field(default_factory=list[Row])


def measure(engine: Engine, sizes: Sizes) -> Report:
    """Run all measurements on an idle engine. Its cache is emptied."""
    from radixlm.doctor import machine_facts

    engine.generate("Warm up.", max_tokens=2)  # buffers and threads
    rows = [
        *_prefix_sharing(engine, sizes),
        *_first_token(engine, sizes),
        *_decoding(engine, sizes),
        *_masks(engine, sizes),
    ]
    machine = {
        **machine_facts(),
        "threads": engine.config.threads,
        "kernels": engine.config.kernels,
    }
    return Report(engine.facts.model, machine, rows)


def measure_steps(config: EngineConfig, *, num_steps: int, in_parts: bool) -> Report:
    """Decoding steps of 1 and 32 streams, timed one by one in this process; `in_parts` also says what each part of a step takes."""
    from radixlm.doctor import machine_facts
    from radixlm.runtime.step_profile import profile_steps

    rows: list[Row] = []
    for times in profile_steps(config, num_steps=num_steps):
        group = f"step of {times.num_streams} stream{'s' if times.num_streams > 1 else ''}"
        rows.append(Row(group, "whole", times.step_ms, "ms", "median"))
        if in_parts:
            rows += [
                Row(group, "layers", times.forward_ms, "ms"),
                Row(group, "head", times.head_ms, "ms"),
                Row(group, "sampling", times.sampling_ms, "ms"),
                Row(group, "Python and dispatch", times.python_ms, "ms", "all but these calls"),
            ]
    return Report(config.model, {**machine_facts(), "threads": config.threads}, rows)


def _prefix_sharing(engine: Engine, sizes: Sizes) -> list[Row]:
    """The same prompts twice: with one cache for all, then each in a namespace of its own, where nothing is shared."""
    prefix = _SENTENCE * sizes.prefix_sentences
    prompts = [
        f"{prefix}\nQuestion {number}: what was decided?" for number in range(sizes.num_requests)
    ]
    num_tokens = sizes.num_tokens

    engine.flush()
    began_s = time.perf_counter()
    shared = engine.generate(prompts, progress=False, max_tokens=num_tokens, ignore_eos=True)
    shared_s = time.perf_counter() - began_s

    engine.flush()
    began_s = time.perf_counter()
    streams = [
        engine.stream(prompt, namespace=f"{number}", max_tokens=num_tokens, ignore_eos=True)
        for number, prompt in enumerate(prompts)
    ]
    for stream in streams:
        stream.result()
    apart_s = time.perf_counter() - began_s

    num_out = sizes.num_requests * num_tokens
    num_prompt = sum(result.usage.prompt_tokens for result in shared)
    num_cached = sum(result.usage.cached_tokens for result in shared)
    what = f"{sizes.num_requests} requests on a prefix of {shared[0].usage.prompt_tokens} tokens"
    group = "prefix sharing"
    return [
        Row(group, "shared", num_out / shared_s, "tokens/s", what),
        Row(group, "nothing shared", num_out / apart_s, "tokens/s"),
        Row(group, "ratio", apart_s / shared_s, "x"),
        Row(group, "prompt tokens from the cache", 100 * num_cached / num_prompt, "%"),
    ]


def _first_token(engine: Engine, sizes: Sizes) -> list[Row]:
    """A prompt that is new, then the same one again."""
    cold: list[float] = []
    warm: list[float] = []
    num_tokens = 0
    for number in range(sizes.rounds):
        prompt = f"Report {number}. " + _SENTENCE * sizes.prefix_sentences
        engine.flush()
        cold.append(_time_to_first(engine, prompt))
        warm.append(_time_to_first(engine, prompt))
        num_tokens = len(engine.tokenize(prompt))
    group = "time to first token"
    return [
        Row(group, "new prompt", 1e3 * statistics.median(cold), "ms", f"{num_tokens} tokens"),
        Row(group, "prompt in the cache", 1e3 * statistics.median(warm), "ms"),
        Row(group, "prefill", num_tokens / statistics.median(cold), "tokens/s"),
    ]


def _time_to_first(engine: Engine, prompt: str) -> float:
    began_s = time.perf_counter()
    with engine.stream(prompt, max_tokens=4, ignore_eos=True) as stream:
        next(stream, None)
        return time.perf_counter() - began_s


def _decoding(engine: Engine, sizes: Sizes) -> list[Row]:
    """One stream, and many at once."""
    options: dict[str, Any] = {
        "max_tokens": sizes.num_tokens,
        "ignore_eos": True,
        "progress": False,
    }
    prompts = [f"Chapter {number}:" for number in range(sizes.num_requests)]
    one = [_timed(engine, prompts[:1], options) for _ in range(sizes.rounds)]
    many = _timed(engine, prompts, options)
    rate = sizes.num_tokens / statistics.median(one)
    return [
        Row("decoding", "1 stream", rate, "tokens/s"),
        Row(
            "decoding",
            f"{len(prompts)} streams",
            len(prompts) * sizes.num_tokens / many,
            "tokens/s",
        ),
    ]


def _timed(engine: Engine, prompts: Sequence[str], options: dict[str, Any]) -> float:
    began_s = time.perf_counter()
    engine.generate(prompts, **options)
    return time.perf_counter() - began_s


def _masks(engine: Engine, sizes: Sizes) -> list[Row]:
    """JSON under a schema against free text of as many tokens; the grammar is compiled before."""
    prompt = f"{_SENTENCE}\nAs JSON: "
    constrained: list[float] = []
    free: list[float] = []
    forced = completed = 0
    engine.generate(prompt, json_schema=_SCHEMA, max_tokens=60)
    for _ in range(sizes.rounds):
        began_s = time.perf_counter()
        result = engine.generate(prompt, json_schema=_SCHEMA, max_tokens=60)
        constrained.append(time.perf_counter() - began_s)
        forced, completed = result.usage.forced_tokens, result.usage.completion_tokens
        began_s = time.perf_counter()
        engine.generate(prompt, max_tokens=completed, ignore_eos=True)
        free.append(time.perf_counter() - began_s)
    with_grammar, without = statistics.median(constrained), statistics.median(free)
    group = "JSON Schema"
    return [
        Row(group, "constrained", completed / with_grammar, "tokens/s", f"{completed} tokens"),
        Row(group, "free text", completed / without, "tokens/s"),
        Row(group, "ratio", without / with_grammar, "x", "above 1: forced tokens outweigh masks"),
        Row(group, "forced tokens", 100 * forced / max(completed, 1), "%"),
        *_mask_fills(engine),
    ]


def _mask_fills(engine: Engine) -> list[Row]:
    """Masks alone, in this process: along one output, first with nothing remembered, then again."""
    import json
    from pathlib import Path

    import numpy as np

    from radixlm.grammar.compiler import compile_spec
    from radixlm.grammar.matching import masks_of, matcher_of
    from radixlm.grammar.spec import JsonSchema
    from radixlm.grammar.vocabulary import Vocabulary
    from radixlm.runtime.model_files import resolve_model
    from radixlm.runtime.tokenizer import load_tokenizer

    tokenizer = load_tokenizer(resolve_model(engine.config.model, Path(engine.config.cache_dir)))
    vocabulary = Vocabulary(tokenizer.token_bytes, tokenizer.eos_token_ids)
    began_s = time.perf_counter()
    program = compile_spec(JsonSchema(json.dumps(_SCHEMA)), vocabulary.alphabet)
    compile_s = time.perf_counter() - began_s
    masks = masks_of(program, vocabulary)
    example = json.dumps(
        {"title": "The new library", "topic": "budget", "points": ["It costs more", "It opens"]},
        separators=(",", ":"),
    )
    token_ids = tokenizer.encode(example).ids
    row = np.zeros((vocabulary.vocab_size + 31) // 32, dtype=np.uint32)
    passes: list[list[float]] = []
    for _ in range(2):
        matcher = matcher_of(masks)
        spent: list[float] = []
        for token_id in token_ids:
            began_s = time.perf_counter()
            matcher.fill_mask(row)
            spent.append(1e6 * (time.perf_counter() - began_s))
            matcher.advance(token_id)
        passes.append(spent)
    group = "JSON Schema"
    return [
        Row(group, "compiling", 1e3 * compile_s, "ms"),
        Row(group, "mask, first time", statistics.median(passes[0]), "us", "median"),
        Row(group, "mask, again", statistics.median(passes[1]), "us", "median"),
    ]
