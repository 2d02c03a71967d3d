"""All options of an engine in one frozen object, and the only place that reads the environment.

Owns the names, defaults, ranges and texts of every option; files and processes get an `EngineConfig` handed to them. An option is
taken from the caller, else from the variable `RADIXLM_<NAME>`, else from the default here. Unknown names and wrong values are
ConfigErrors that name the option and what would be right. Must not know models, sockets or torch.

The config crosses to the child processes as JSON on their command line (`to_json`/`from_json`), so a child never reads the
environment a second time.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import os
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..errors import ConfigError
from .cores import usable_cores

MIB = 1024 * 1024
ENVIRONMENT_PREFIX = "RADIXLM_"

QUANTIZATIONS = ("file", "none", "int8", "int4")

OnDeath = Literal["restart", "fail", "exit"]


def _option(default: Any, text: str, low: float = -math.inf, high: float = math.inf) -> Any:
    return field(default=default, metadata={"text": text, "low": low, "high": high})


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Every option of an engine and its processes. Build it with `EngineConfig.create(...)`, which checks."""

    # -- the model and how it is computed
    model: str = _option(
        "smollm2-135m", "an alias of `radixlm pull`, a .gguf file or a Hugging Face folder"
    )
    threads: int = _option(
        0, "threads of the native pool under the engine; 0: one per usable core", 0, 1024
    )
    pin_threads: bool = _option(
        False, "keep each of those threads on a core of its own (native kernels, Linux)"
    )
    kernels: str = _option("auto", "kernel backend: auto, reference, cpu or triton")
    instruction_set: str = _option(
        "",
        "instruction set of the native kernels, such as avx2 (`radixlm doctor` lists them); empty: the best of this machine",
    )
    quantization: str = _option(
        "file",
        "file: compute with the weights as the file has them where the kernels can; none: with floats; int8, int4: round what has more bits",
    )
    dtype: str = _option("float32", "type of activations: float32, bfloat16 or float16")
    kv_dtype: str = _option(
        "auto",
        "type of keys and values: float32, bfloat16 or int8; auto: what the kernels prefer (the native ones: int8 beside quantized weights, else bfloat16)",
    )
    context_length: int = _option(0, "cap on the model's context in tokens; 0: the model's own", 0)
    # -- memory and scheduling
    num_pages: int = _option(0, "pages of the prefix cache; 0: as many as kv_bytes holds", 0)
    kv_bytes: int = _option(1024 * MIB, "memory for keys and values when num_pages is 0", MIB)
    kv_ready_bytes: int = _option(
        0,
        "of that memory, taken from the system in the background after the start (native kernels; `radixlm serve`: 512 MiB); the rest comes with use",
        0,
    )
    page_size: int = _option(16, "tokens in a page; divides 64", 1, 64)
    max_step_tokens: int = _option(
        512, "tokens computed in one step, prefill and decode together", 1
    )
    max_prefill_beside_decode: int = _option(
        0,
        "of those, for prompts while any stream runs; 0: as many as prefill_pause_s allows, by measured cost",
        0,
    )
    prefill_pause_s: float = _option(
        0.1,
        "how long a step may last that computes prompts beside streams: a stream's pause",
        0.001,
        60,
    )
    max_running: int = _option(64, "requests computed at the same time", 1)
    seed: int = _option(
        0, "base of the seeds of requests that bring none; 0: drawn by the system", 0, 2**63 - 1
    )
    # -- text and grammars
    text_memory: bool = _option(
        True, "remember text -> ids of own outputs, so that a history sent back hits to the token"
    )
    text_memory_bytes: int = _option(64 * MIB, "bound of that memory", 0)
    program_cache_bytes: int = _option(
        64 * MIB, "compiled grammars kept by gateway and engine, each", 0
    )
    compile_cpu_s: float = _option(
        2.0, "processor time one grammar may take to compile", 0.01, 3600
    )
    compile_wall_factor: float = _option(
        10.0, "wall-clock limit of a compilation, as a multiple of compile_cpu_s", 1, 1000
    )
    # -- processes and sockets
    on_engine_death: OnDeath = _option(  # noqa: RUF009  (it returns a dataclass field)
        "restart", "restart the engine, fail every later call, or exit this process with status 70"
    )
    max_restarts: int = _option(3, "restarts within restart_window_s before giving up", 0)
    restart_window_s: float = _option(60.0, "see max_restarts", 0)
    start_timeout_s: float = _option(300.0, "time for the processes to become ready", 0.1)
    close_timeout_s: float = _option(2.0, "time children get to end by themselves at close()", 0)
    heartbeat_s: float = _option(1.0, "interval of a client's sign of life", 0.01)
    lease_s: float = _option(
        5.0, "silence after which a client's branches and requests are freed", 0.05
    )
    max_live_requests: int = _option(
        65536, "requests the gateway holds before it answers Overloaded", 1
    )
    max_message_bytes: int = _option(256 * MIB, "largest message a socket takes", 1024)
    socket_dir: str = _option(
        "",
        "folder in which the private socket folder is made; empty: the system's temporary folder",
    )
    cache_dir: str = _option(
        "", "folder of pulled models; empty: radixlm in the user's cache folder"
    )

    @classmethod
    def create(cls, **options: Any) -> EngineConfig:
        """A checked config from the caller's options and the environment; ConfigError otherwise."""
        return cls.create_for({}, **options)

    @classmethod
    def create_for(cls, defaults: Mapping[str, Any], /, **options: Any) -> EngineConfig:
        """The same, with `defaults` in place of those of this class: what a command wants where its user says nothing."""
        of_environment = _from_environment(os.environ)
        values = {**defaults, **of_environment, **options}
        for name in values:
            if name not in FIELDS:
                raise ConfigError(f"there is no option {name!r}", place=name, hint=_suggest(name))
        try:
            config = cls(**{name: _convert(name, value) for name, value in values.items()})
            config.check()
        except ConfigError as error:
            if error.place not in of_environment or error.place in options:
                raise
            variable = ENVIRONMENT_PREFIX + error.place.upper()
            raise ConfigError(error.message, place=variable, hint=error.hint) from None
        return dataclasses.replace(
            config,
            threads=config.threads or usable_cores(),
            cache_dir=config.cache_dir or str(default_cache_dir()),
        )

    def check(self) -> None:
        """Raise ConfigError naming the first option whose value is not possible."""
        for name, spec in FIELDS.items():
            value = getattr(self, name)
            if isinstance(value, (int, float)) and not (
                spec.metadata["low"] <= value <= spec.metadata["high"]
            ):
                raise ConfigError(
                    f"{name}={value!r} is not within {spec.metadata['low']} .. {spec.metadata['high']}",
                    place=name,
                )
        _one_of("dtype", self.dtype, ("float32", "bfloat16", "float16"))
        _one_of("kv_dtype", self.kv_dtype, ("auto", "float32", "bfloat16", "int8"))
        _one_of("quantization", self.quantization, QUANTIZATIONS)
        _one_of("on_engine_death", self.on_engine_death, typing.get_args(OnDeath))
        if self.max_running > self.max_step_tokens:
            raise ConfigError(
                f"max_running={self.max_running} exceeds max_step_tokens={self.max_step_tokens}",
                place="max_running",
                hint="Every running request needs its token in each step",
            )
        if 64 % self.page_size:
            raise ConfigError(
                f"page_size={self.page_size} does not divide 64", place="page_size", hint="Use 16"
            )
        if not self.model:
            raise ConfigError("model is empty", place="model", hint="Try model='smollm2-135m'")

    def to_json(self) -> str:
        """The config as one JSON text, for a child's command line."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> EngineConfig:
        """The config that `to_json` wrote; nothing is read from the environment."""
        return cls(**json.loads(text))


def key_from_environment(name: str) -> str | None:
    """A service's key that the user keeps in the environment, such as OPENAI_API_KEY; None if it is not there or empty."""
    return os.environ.get(name, "").strip() or None


FIELDS: Mapping[str, dataclasses.Field[Any]] = types.MappingProxyType(
    {spec.name: spec for spec in dataclasses.fields(EngineConfig)}
)
_TYPES: Mapping[str, Any] = types.MappingProxyType(typing.get_type_hints(EngineConfig))


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError(f"{name}={value!r} is not one of {', '.join(allowed)}", place=name)


def _suggest(name: str) -> str:
    close = difflib.get_close_matches(name, list(FIELDS), n=1)
    return f"Did you mean {close[0]!r}?" if close else f"The options are {', '.join(FIELDS)}"


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """Options set by RADIXLM_<NAME>; a near miss of an option's name is refused, other names are somebody else's."""
    found: dict[str, Any] = {}
    for variable, text in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        if name in FIELDS:
            found[name] = text
        elif difflib.get_close_matches(name, list(FIELDS), n=1, cutoff=0.85):
            raise ConfigError(
                f"the environment variable {variable} names no option",
                place=variable,
                hint=_suggest(name),
            )
    return found


def _convert(name: str, value: Any) -> Any:
    """`value` as the type of option `name`; texts (environment, command line) are read, other kinds must fit."""
    kind = _TYPES[name]
    if kind is bool:
        return _to_bool(name, value)
    if kind is int or kind is float:
        return _to_number(name, value, kind)
    if isinstance(value, os.PathLike):
        value = os.fspath(typing.cast("os.PathLike[str]", value))
    if not isinstance(value, str):
        raise ConfigError(f"{name}={value!r} is not a text", place=name)
    return value


def _to_bool(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    spelled = {
        "1": True,
        "true": True,
        "yes": True,
        "on": True,
        "0": False,
        "false": False,
        "no": False,
        "off": False,
    }
    if isinstance(value, str) and value.lower() in spelled:
        return spelled[value.lower()]
    raise ConfigError(f"{name}={value!r} is neither true nor false", place=name)


def _to_number(name: str, value: Any, kind: type[int] | type[float]) -> float:
    refused = ConfigError(
        f"{name}={value!r} is not {'a whole number' if kind is int else 'a number'}", place=name
    )
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise refused
    if kind is int and isinstance(value, float):
        raise refused
    try:
        return kind(value)
    except ValueError:
        raise refused from None


def default_cache_dir() -> Path:
    """Where pulled models lie: $RADIXLM_CACHE_DIR, else radixlm in $XDG_CACHE_HOME, else ~/.cache/radixlm."""
    chosen = os.environ.get(ENVIRONMENT_PREFIX + "CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # the XDG specification says that relative paths there are to be ignored
    return (base if base.is_absolute() else Path.home() / ".cache") / "radixlm"


def server_api_key() -> str:
    """$RADIXLM_API_KEY, the HTTP server's key when none is given: a command line is seen by every user of the machine."""
    return os.environ.get(ENVIRONMENT_PREFIX + "API_KEY", "")


def child_environment(threads: int) -> dict[str, str]:
    """The environment of a child process: the caller's, with thread pools of libraries set to `threads`.

    GOMP_SPINCOUNT: OpenMP threads that meet at a barrier spin briefly, then sleep. By default they spin so long that on a busy machine
    one waits for the other's whole time slice; the same work then took three times the CPU. A value that the caller set stands.
    """
    pools = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
    return {
        "GOMP_SPINCOUNT": "1000",
        **os.environ,
        **dict.fromkeys(pools, str(threads)),
        "TOKENIZERS_PARALLELISM": "false",
    }
