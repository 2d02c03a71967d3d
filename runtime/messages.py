"""Every message that crosses a process border, one struct each, msgpack only.

Owns the wire types between client, gateway, engine and compile worker, and the two codec functions. Knows nothing of sockets, tokens'
meaning or models. Names of branches and requests are chosen by the client, so everything pipelines without waiting for a reply.

    client --OpenBranch/Append/Generate/Score/Fork/CloseBranch/Abort/...--> gateway --Submit/Cancel/LoadProgram--> engine
    client <--Delta/Finished/Failed/...------------------------------------ gateway <--Progress/Done/EngineFailed-- engine
                                                                            gateway --CompileJob--> worker --Compiled/Refused--> gateway
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..errors import RadixError, SamplingError, by_name
from ..grammar.spec import Spec

# ---------------------------------------------------------------------------------------------- shared values


class WireError(msgspec.Struct, frozen=True):
    """An error as data: `name` is a class of `errors.py`."""

    name: str
    message: str
    place: str = ""
    hint: str = ""

    @staticmethod
    def of(error: RadixError) -> WireError:
        """The wire form of `error`."""
        return WireError(type(error).__name__, error.message, error.place, error.hint)

    def to_exception(self) -> RadixError:
        """The exception to raise at the receiving side."""
        return by_name(self.name)(self.message, place=self.place, hint=self.hint)


class SamplingParams(msgspec.Struct, frozen=True, omit_defaults=True):
    """How tokens are chosen. `check()` names the first value out of range."""

    max_tokens: int | None = None  # None: to the end of the context
    min_tokens: int = 0  # EOS and stop token ids are masked before
    n: int = 1  # samples over one shared prompt
    temperature: float = 0.0  # 0: greedy
    top_k: int = 0  # 0: off
    top_p: float = 1.0
    min_p: float = 0.0
    typical_p: float = 1.0
    repetition_penalty: float = 1.0  # over prompt and output tokens
    frequency_penalty: float = 0.0  # over output tokens
    presence_penalty: float = 0.0  # over output tokens
    logit_bias: dict[int, float] = msgspec.field(default_factory=dict[int, float])
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    include_stop: bool = False  # keep the stop string in the text
    ignore_eos: bool = False
    seed: int | None = None  # None: the engine draws one; the result says which
    logprobs: int | None = None  # of output tokens: k >= 0 top alternatives beside the chosen one
    prompt_logprobs: int | None = None  # the same for prompt tokens
    prompt_logprobs_start: int = 0  # first prompt position whose logprob is asked; earlier ones may come from the cache
    jump_forward: bool = True  # append forced bytes without sampling

    def check(self) -> None:
        """Raise SamplingError naming the first argument that is out of range (NaN included)."""
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if value is not None and not (low <= value <= high):
                raise SamplingError(f"{name}={value!r} is not within {low} .. {high}", place=name)
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise SamplingError(
                f"min_tokens={self.min_tokens} exceeds max_tokens={self.max_tokens}", place="min_tokens"
            )
        if any(not text for text in self.stop):
            raise SamplingError("a stop string is empty", place="stop")
        for token_id, bias in self.logit_bias.items():
            if token_id < 0 or not (-1000.0 <= bias <= 1000.0):
                raise SamplingError(
                    f"logit_bias[{token_id}]={bias!r} is not within -1000 .. 1000", place="logit_bias"
                )


_RANGES: tuple[tuple[str, float, float], ...] = (
    ("max_tokens", 0, 2**31 - 1),
    ("min_tokens", 0, 2**31 - 1),
    ("n", 1, 1024),
    ("temperature", 0.0, 100.0),
    ("top_k", 0, 2**31 - 1),
    ("top_p", 1e-9, 1.0),
    ("min_p", 0.0, 1.0),
    ("typical_p", 1e-9, 1.0),
    ("repetition_penalty", 1e-3, 100.0),
    ("frequency_penalty", -100.0, 100.0),
    ("presence_penalty", -100.0, 100.0),
    ("seed", 0, 2**63 - 1),
    ("logprobs", 0, 100),
    ("prompt_logprobs", 0, 100),
    ("prompt_logprobs_start", 0, 2**31 - 1),
)


class Hints(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the program knows of the future; never changes a result."""

    num_forks: int = 0  # branches that will continue from here
    last_use: bool = False  # nothing will continue from here
    priority: int = 0  # larger runs earlier among equals


class Usage(msgspec.Struct, frozen=True):
    """Token counts of one request. Forced tokens are part of completion_tokens."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    forced_tokens: int = 0


class TokenLogprob(msgspec.Struct, frozen=True):
    """The model's own log-probability (before mask, penalties, temperature) of one token, with the best alternatives."""

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()  # (token_id, logprob), best first


# ---------------------------------------------------------------------------------------------- segments of a prompt


class Text(msgspec.Struct, frozen=True, tag="text"):
    """Plain text; special-token spellings inside it are ordinary characters."""

    text: str


class Ids(msgspec.Struct, frozen=True, tag="ids"):
    """Token ids, taken as they are."""

    token_ids: tuple[int, ...]


class RoleBegin(msgspec.Struct, frozen=True, tag="role_begin"):
    """Start of a chat message of `role`; the model's template says how it is written."""

    role: str


class RoleEnd(msgspec.Struct, frozen=True, tag="role_end"):
    """End of the chat message begun last."""

    role: str


class Chat(msgspec.Struct, frozen=True, tag="chat"):
    """A whole conversation for the model's chat template. Each message is {"role", "content", ...}."""

    messages: tuple[dict[str, Any], ...]
    tools: tuple[dict[str, Any], ...] = ()
    add_generation_prompt: bool = True


Segment = Text | Ids | RoleBegin | RoleEnd | Chat

# ---------------------------------------------------------------------------------------------- client -> gateway


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """First message of a client, repeated as a heartbeat (1 s); silence past the lease (5 s) frees its branches."""

    client_id: str
    pid: int = 0  # of a local client: its death is known at once


class OpenBranch(msgspec.Struct, frozen=True, tag="open"):
    """A new, empty branch. `namespace` salts the cache."""

    branch: str
    namespace: str = ""
    strict_text: bool = False  # refuse characters no token spells, instead of replacing and reporting them


class Append(msgspec.Struct, frozen=True, tag="append"):
    """Constant segments at the end of a branch."""

    branch: str
    segments: tuple[Segment, ...]


class Generate(msgspec.Struct, frozen=True, tag="generate"):
    """Continue a branch by sampling. branch=None opens and closes an anonymous branch holding `segments`."""

    request: str
    branch: str | None = None
    segments: tuple[Segment, ...] = ()
    sampling: SamplingParams = SamplingParams()
    constraint: Spec | None = None
    stream: bool = False
    namespace: str = ""
    strict_text: bool = False
    hints: Hints = Hints()


class Score(msgspec.Struct, frozen=True, tag="score"):
    """Log-probabilities of each of `choices` as the continuation of a branch (constant + choice tokenized as a whole)."""

    request: str
    branch: str | None
    choices: tuple[str, ...]
    segments: tuple[Segment, ...] = ()
    namespace: str = ""
    hints: Hints = Hints()


class Fork(msgspec.Struct, frozen=True, tag="fork"):
    """Copy a branch, with its tail, once everything before in its queue is done."""

    branch: str
    children: tuple[str, ...]


class CloseBranch(msgspec.Struct, frozen=True, tag="close"):
    """Forget a branch (after what is queued on it)."""

    branch: str


class Abort(msgspec.Struct, frozen=True, tag="abort"):
    """Stop a request (exact name). It is answered with Failed(Aborted) unless it had ended."""

    request: str


class StatsRequest(msgspec.Struct, frozen=True, tag="stats"):
    """Ask for counters of engine and gateway."""

    request: str


class FlushCache(msgspec.Struct, frozen=True, tag="flush"):
    """Empty the prefix cache; refused (Failed) while requests run."""

    request: str


class Tokenize(msgspec.Struct, frozen=True, tag="tokenize"):
    """Ids of `segments`, as a prompt would get them."""

    request: str
    segments: tuple[Segment, ...]


ClientMessage = (
    Hello | OpenBranch | Append | Generate | Score | Fork | CloseBranch | Abort | StatsRequest | FlushCache | Tokenize
)

# ---------------------------------------------------------------------------------------------- gateway -> client


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """Answer to Hello: facts of the model that clients need."""

    model: str
    context_length: int
    vocab_size: int
    eos_token_ids: tuple[int, ...]
    engine_epoch: int = 0  # rises when the engine was restarted


class Delta(msgspec.Struct, frozen=True, tag="delta"):
    """New text of output `index` of a streaming request; never splits a code point."""

    request: str
    index: int
    text: str
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()


class Output(msgspec.Struct, frozen=True):
    """One finished sample."""

    text: str
    token_ids: tuple[int, ...]  # all sampled ids, stop tokens included
    finish_reason: str  # "stop" | "length"
    matched_stop: str | int | None = None  # the stop string or token id that ended it
    logprobs: tuple[TokenLogprob, ...] | None = None
    grammar_complete: bool | None = None  # with a constraint: is the text a complete sentence of it


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """A request ended well: all n outputs, in order."""

    request: str
    outputs: tuple[Output, ...]
    usage: Usage
    seed: int = 0
    prompt_logprobs: tuple[TokenLogprob | None, ...] | None = None
    replaced: tuple[str, ...] = ()  # characters of the prompt that no token spells, replaced by U+FFFD or "?"


class Scored(msgspec.Struct, frozen=True, tag="scored"):
    """Answer to Score: per choice, its token ids and their log-probabilities."""

    request: str
    token_ids: tuple[tuple[int, ...], ...]
    logprobs: tuple[tuple[float, ...], ...]
    usage: Usage


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """A request ended with an error; `partial` is the text so far."""

    request: str
    error: WireError
    partial: str = ""


class StatsReply(msgspec.Struct, frozen=True, tag="stats_reply"):
    """Counters by name."""

    request: str
    counters: dict[str, float]


class Tokenized(msgspec.Struct, frozen=True, tag="tokenized"):
    """Answer to Tokenize."""

    request: str
    token_ids: tuple[int, ...]


class Flushed(msgspec.Struct, frozen=True, tag="flushed"):
    """Answer to FlushCache."""

    request: str


GatewayMessage = Ready | Delta | Finished | Scored | Failed | StatsReply | Tokenized | Flushed

# ---------------------------------------------------------------------------------------------- gateway -> engine


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

# ---------------------------------------------------------------------------------------------- engine -> gateway


class EngineReady(msgspec.Struct, frozen=True, tag="engine_ready"):
    """The engine loaded its model and takes requests."""

    epoch: int
    num_pages: int
    page_size: int
    context_length: int


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

# ---------------------------------------------------------------------------------------------- gateway <-> compile worker


class CompileJob(msgspec.Struct, frozen=True, tag="compile_job"):
    """Compile one spec. `alphabet` is 256 bytes of 0/1: the bytes some token spells."""

    program: str
    spec: Spec
    alphabet: bytes


class Compiled(msgspec.Struct, frozen=True, tag="compiled"):
    """The flat GrammarProgram."""

    program: str
    data: bytes


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """The spec was refused, with its place."""

    program: str
    error: WireError


WorkerMessage = Compiled | Refused

# ---------------------------------------------------------------------------------------------- codec

_encoder = msgspec.msgpack.Encoder()


def encode(message: msgspec.Struct) -> bytes:
    """msgpack bytes of one message."""
    return _encoder.encode(message)


client_decoder: msgspec.msgpack.Decoder[ClientMessage] = msgspec.msgpack.Decoder(ClientMessage)
gateway_decoder: msgspec.msgpack.Decoder[GatewayMessage] = msgspec.msgpack.Decoder(GatewayMessage)
engine_inbound_decoder: msgspec.msgpack.Decoder[EngineInbound] = msgspec.msgpack.Decoder(EngineInbound)
engine_outbound_decoder: msgspec.msgpack.Decoder[EngineOutbound] = msgspec.msgpack.Decoder(EngineOutbound)
compile_job_decoder: msgspec.msgpack.Decoder[CompileJob] = msgspec.msgpack.Decoder(CompileJob)
worker_decoder: msgspec.msgpack.Decoder[WorkerMessage] = msgspec.msgpack.Decoder(WorkerMessage)
