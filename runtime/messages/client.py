"""Messages between client and gateway.

Names of branches and requests are chosen by the client, so everything pipelines without waiting for a reply.
"""

from __future__ import annotations

import msgspec

from ...grammar.spec import Spec
from .segments import Segment
from .values import Hints, SamplingParams, TokenLogprob, Usage, WireError


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """First message of a client, repeated as a heartbeat (1 s); silence past the lease (5 s) frees its branches."""

    client_id: str
    pid: int = 0  # of a local client: its death is known at once


class OpenBranch(msgspec.Struct, frozen=True, tag="open"):
    """A new, empty branch. `namespace` salts the cache."""

    branch: str
    namespace: str = ""
    strict_text: bool = (
        False  # refuse characters no token spells, instead of replacing and reporting them
    )


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
    stream: bool = False  # answered with Accepted and Deltas before Finished
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


class VocabularyRequest(msgspec.Struct, frozen=True, tag="vocabulary_request"):
    """Ask what each token spells."""

    request: str


ClientMessage = (
    Hello
    | OpenBranch
    | Append
    | Generate
    | Score
    | Fork
    | CloseBranch
    | Abort
    | StatsRequest
    | FlushCache
    | Tokenize
    | VocabularyRequest
)


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """Answer to Hello: facts of the model that clients need."""

    model: str
    context_length: int
    vocab_size: int
    eos_token_ids: tuple[int, ...]
    engine_epoch: int = 0  # rises when the engine was restarted
    cache_tokens: int = 0  # that the prefix cache holds; 0: not known
    kv_dtype: str = ""  # type of keys and values; "": not known


class Accepted(msgspec.Struct, frozen=True, tag="accepted"):
    """A streaming request went on to the engine: its prompt was rendered and its constraint compiled. Sent once, before its first Delta."""

    request: str


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
    replaced: tuple[
        str, ...
    ] = ()  # characters of the prompt that no token spells, replaced by U+FFFD or "?"
    queue_s: float = (
        0.0  # from receipt by the engine until the first step that computed something of it
    )


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


class Vocabulary(msgspec.Struct, frozen=True, tag="vocabulary"):
    """Answer to VocabularyRequest: per token id the bytes it spells, b"" for a special or unused one; special tokens by id."""

    request: str
    token_bytes: tuple[bytes, ...]
    special_tokens: dict[int, str] = msgspec.field(default_factory=dict[int, str])


class Flushed(msgspec.Struct, frozen=True, tag="flushed"):
    """Answer to FlushCache."""

    request: str


GatewayMessage = (
    Ready
    | Accepted
    | Delta
    | Finished
    | Scored
    | Failed
    | StatsReply
    | Tokenized
    | Vocabulary
    | Flushed
)
