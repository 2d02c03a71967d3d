"""Messages between gateway and compile worker: a spec down, a flat program or a located error up."""

from __future__ import annotations

import msgspec

from ...grammar.spec import Spec
from .values import WireError


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
