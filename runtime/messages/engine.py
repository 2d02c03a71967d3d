"""Messages between gateway and engine: ids and bytes only, no text."""

from __future__ import annotations

import msgspec

from .values import Hints, SamplingParams, TokenLogprob, Usage, WireError


class Submit(msgspec.Struct, frozen=True, tag="submit"):
    """A request in token ids. `request` is unique over all clients (the gateway prefixes the client's identity)."""

    request: str
    token_ids: tuple[int, ...]
    sampling: SamplingParams
    namespace: str = ""
    program: str = ""  # key of a GrammarProgram, "" for none
    stop_bytes: tuple[bytes, ...] = ()  # sampling.stop as UTF-8
    hints: Hints = Hints()
    stream: bool = False


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """End a request in whatever state; its pages are free within one step."""

    request: str


class LoadProgram(msgspec.Struct, frozen=True, tag="load_program"):
    """A compiled grammar, in answer to NeedProgram or ahead of a Submit."""

    program: str
    data: bytes


class EngineQuery(msgspec.Struct, frozen=True, tag="engine_query"):
    """Ask for counters, or flush the cache: what = "stats" | "flush"."""

    request: str
    what: str


EngineInbound = Submit | Cancel | LoadProgram | EngineQuery


class EngineReady(msgspec.Struct, frozen=True, tag="engine_ready"):
    """The engine loaded its model and takes requests."""

    epoch: int
    num_pages: int
    page_size: int
    context_length: int
    pid: int = 0  # of a local engine: its death is known at once
    kv_dtype: str = ""


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """New tokens of output `index`; sent every step for streaming requests."""

    request: str
    index: int
    token_ids: tuple[int, ...]
    logprobs: tuple[TokenLogprob, ...] = ()


class Sample(msgspec.Struct, frozen=True):
    """One finished sample in ids. `cut_byte` is the length in bytes of the kept text when a stop string cut it, else -1."""

    token_ids: tuple[int, ...]
    finish_reason: str
    matched_stop: bytes | int | None = None
    cut_byte: int = -1
    logprobs: tuple[TokenLogprob, ...] | None = None
    grammar_complete: bool | None = None


class Done(msgspec.Struct, frozen=True, tag="done"):
    """All samples of a request."""

    request: str
    samples: tuple[Sample, ...]
    usage: Usage
    seed: int
    prompt_logprobs: tuple[TokenLogprob | None, ...] | None = None
    queue_s: float = 0.0  # from receipt until the first step that computed something of it


class EngineFailed(msgspec.Struct, frozen=True, tag="engine_failed"):
    """A request ended with an error in the engine. `token_ids` are the tokens of sample 0 so far."""

    request: str
    error: WireError
    token_ids: tuple[int, ...] = ()


class NeedProgram(msgspec.Struct, frozen=True, tag="need_program"):
    """The engine does not hold this compiled grammar (any more)."""

    program: str


class EngineReply(msgspec.Struct, frozen=True, tag="engine_reply"):
    """Answer to EngineQuery."""

    request: str
    counters: dict[str, float] = msgspec.field(default_factory=dict[str, float])
    error: WireError | None = None


EngineOutbound = EngineReady | Progress | Done | EngineFailed | NeedProgram | EngineReply
