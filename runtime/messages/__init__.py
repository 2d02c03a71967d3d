"""Every message that crosses a process border, one struct each, msgpack only.

Owns the wire types between client, gateway, engine and compile worker, and the two codec functions. Knows nothing of sockets, tokens'
meaning or models. Names of branches and requests are chosen by the client, so everything pipelines without waiting for a reply.

    client --OpenBranch/Append/Generate/Score/Fork/CloseBranch/Abort/...--> gateway --Submit/Cancel/LoadProgram--> engine
    client <--Accepted/Delta/Finished/Failed/...--------------------------- gateway <--Progress/Done/EngineFailed-- engine
                                                                            gateway --CompileJob--> worker --Compiled/Refused--> gateway
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from .client import (
    Abort,
    Accepted,
    Append,
    ClientMessage,
    CloseBranch,
    Delta,
    Failed,
    Finished,
    FlushCache,
    Flushed,
    Fork,
    GatewayMessage,
    Generate,
    Hello,
    OpenBranch,
    Output,
    Ready,
    Score,
    Scored,
    StatsReply,
    StatsRequest,
    Tokenize,
    Tokenized,
    Vocabulary,
    VocabularyRequest,
)
from .compile import (
    Compiled,
    CompileJob,
    Refused,
    WorkerMessage,
)
from .engine import (
    Cancel,
    Done,
    EngineFailed,
    EngineInbound,
    EngineOutbound,
    EngineQuery,
    EngineReady,
    EngineReply,
    LoadProgram,
    NeedProgram,
    Progress,
    Sample,
    Submit,
)
from .segments import (
    Chat,
    Ids,
    RoleBegin,
    RoleEnd,
    Segment,
    Text,
)
from .values import (
    Hints,
    SamplingParams,
    TokenLogprob,
    Usage,
    WireError,
    sum_usage,
)

__all__ = [
    "Abort",
    "Accepted",
    "Append",
    "Cancel",
    "Chat",
    "ClientMessage",
    "CloseBranch",
    "CompileJob",
    "Compiled",
    "Delta",
    "Done",
    "EngineFailed",
    "EngineInbound",
    "EngineOutbound",
    "EngineQuery",
    "EngineReady",
    "EngineReply",
    "Failed",
    "Finished",
    "FlushCache",
    "Flushed",
    "Fork",
    "GatewayMessage",
    "Generate",
    "Hello",
    "Hints",
    "Ids",
    "LoadProgram",
    "NeedProgram",
    "OpenBranch",
    "Output",
    "Progress",
    "Ready",
    "Refused",
    "RoleBegin",
    "RoleEnd",
    "Sample",
    "SamplingParams",
    "Score",
    "Scored",
    "Segment",
    "StatsReply",
    "StatsRequest",
    "Submit",
    "Text",
    "TokenLogprob",
    "Tokenize",
    "Tokenized",
    "Usage",
    "Vocabulary",
    "VocabularyRequest",
    "WireError",
    "WorkerMessage",
    "client_decoder",
    "compile_job_decoder",
    "decode_frame",
    "encode",
    "encode_frame",
    "engine_frame_decoder",
    "engine_inbound_decoder",
    "gateway_frame_decoder",
    "sum_usage",
    "worker_decoder",
]

M = TypeVar("M", bound=msgspec.Struct)

_encoder = msgspec.msgpack.Encoder()


def encode(message: msgspec.Struct) -> bytes:
    """msgpack bytes of one message."""
    return _encoder.encode(message)


def encode_frame(messages: Sequence[msgspec.Struct]) -> bytes:
    """msgpack bytes of messages that are sent as one: a single one as `encode` writes it, more as a list."""
    return _encoder.encode(messages[0] if len(messages) == 1 else messages)


def decode_frame(decoder: msgspec.msgpack.Decoder[M | list[M]], data: bytes) -> list[M]:
    """The messages of a frame; `decoder` is one of the frame decoders below. Raises what it raises."""
    found = decoder.decode(data)
    return found if isinstance(found, list) else [found]


client_decoder: msgspec.msgpack.Decoder[ClientMessage] = msgspec.msgpack.Decoder(ClientMessage)
engine_inbound_decoder: msgspec.msgpack.Decoder[EngineInbound] = msgspec.msgpack.Decoder(
    EngineInbound
)
gateway_frame_decoder: msgspec.msgpack.Decoder[GatewayMessage | list[GatewayMessage]] = (
    msgspec.msgpack.Decoder(GatewayMessage | list[GatewayMessage])
)
engine_frame_decoder: msgspec.msgpack.Decoder[EngineOutbound | list[EngineOutbound]] = (
    msgspec.msgpack.Decoder(EngineOutbound | list[EngineOutbound])
)
compile_job_decoder: msgspec.msgpack.Decoder[CompileJob] = msgspec.msgpack.Decoder(CompileJob)
worker_decoder: msgspec.msgpack.Decoder[WorkerMessage] = msgspec.msgpack.Decoder(WorkerMessage)
