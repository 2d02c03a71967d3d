"""All options of the HTTP server in one frozen object: every flag of `radixlm serve` that is not the engine's.

Owns their names, defaults, ranges and texts, and the rule that a server which others can reach has a key. Built and checked like
`runtime.config.EngineConfig`, except that only `api_key` may come from the environment ($RADIXLM_API_KEY, read by `runtime.config`).
"""

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import ConfigError
from ..config import server_api_key

MIB = 1 << 20


def _option(
    default: Any, text: str, low: float = -math.inf, high: float = math.inf, *, repr: bool = True
) -> Any:
    return field(default=default, metadata={"text": text, "low": low, "high": high}, repr=repr)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Every option of the server. Build it with `ServerSettings.create(...)`, which checks."""

    host: str = _option(
        "127.0.0.1", "address to listen on; another than this machine's own needs api_key"
    )
    port: int = _option(8000, "port to listen on; 0: any free one", 0, 65535)
    api_key: str = _option(
        "",
        "key that clients must send; several are separated by commas; empty: none. Better in $RADIXLM_API_KEY",
        repr=False,
    )
    served_name: str = _option("", "name of the model in the API; empty: the engine's")
    allow_origins: str = _option(
        "",
        "web pages that may call from a browser, as origins separated by commas, or *; empty: pages of this machine",
    )
    drain_timeout_s: float = _option(
        30.0, "time that running requests get to end at shutdown", 0, 86400
    )
    keepalive_s: float = _option(5.0, "silence after which a stream gets a comment", 0.05, 3600)
    stall_timeout_s: float = _option(
        30.0, "time a client may take no byte of its answer before it is cut off", 0.1, 86400
    )
    read_timeout_s: float = _option(
        30.0, "time in which headers, then the body, must arrive", 0.1, 86400
    )
    max_body_bytes: int = _option(8 * MIB, "largest body of a request", 1024)
    max_header_bytes: int = _option(32 * 1024, "largest head of a request", 1024, MIB)
    max_requests: int = _option(1024, "requests in work or waiting; more are answered 429", 1)
    max_connections: int = _option(4096, "open connections; requests on more are answered 503", 1)
    max_pending_bytes: int = _option(
        MIB, "output kept for a slow reader before its request is ended", 1024
    )

    @classmethod
    def create(cls, **options: Any) -> ServerSettings:
        """Checked settings from the caller's options; ConfigError otherwise."""
        for name in options:
            if name not in FIELDS:
                close = difflib.get_close_matches(name, list(FIELDS), n=1)
                hint = (
                    f"Did you mean {close[0]!r}?"
                    if close
                    else f"The options are {', '.join(FIELDS)}"
                )
                raise ConfigError(f"there is no option {name!r}", place=name, hint=hint)
        options = {"api_key": server_api_key(), **options}
        settings = cls(**{name: _convert(name, value) for name, value in options.items()})
        settings.check()
        return settings

    def check(self) -> None:
        """Raise ConfigError naming the first option whose value is not possible."""
        for name, spec in FIELDS.items():
            value, low, high = getattr(self, name), spec.metadata["low"], spec.metadata["high"]
            if isinstance(value, (int, float)) and not low <= value <= high:
                raise ConfigError(f"{name}={value!r} is not within {low} .. {high}", place=name)
        if not self.host:
            raise ConfigError("host is empty", place="host", hint="Use 127.0.0.1")
        if not is_loopback(self.host) and not self.api_keys:
            raise ConfigError(
                f"host={self.host!r} can be reached from other machines, and there is no api_key",
                place="host",
                hint="Give an api_key, or listen on 127.0.0.1",
            )
        if not all(key.isascii() and key.isprintable() for key in self.api_keys):
            raise ConfigError("api_key has characters that no HTTP header carries", place="api_key")

    @property
    def api_keys(self) -> tuple[str, ...]:
        """The keys, one by one."""
        return _split(self.api_key)

    @property
    def origins(self) -> tuple[str, ...]:
        """The origins of web pages that may call."""
        return _split(self.allow_origins)


FIELDS: Mapping[str, dataclasses.Field[Any]] = types.MappingProxyType(
    {spec.name: spec for spec in dataclasses.fields(ServerSettings)}
)
_TYPES: Mapping[str, Any] = types.MappingProxyType(typing.get_type_hints(ServerSettings))


def is_loopback(host: str) -> bool:
    """Is `host` this machine's own address, as seen only from it?"""
    name = host.strip("[]")
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _convert(name: str, value: Any) -> Any:
    """`value` as the type of option `name`; texts are read, other kinds must fit."""
    kind = _TYPES[name]
    if kind is str:
        if not isinstance(value, str):
            raise ConfigError(f"{name}={value!r} is not a text", place=name)
        return value
    wanted = "a whole number" if kind is int else "a number"
    is_number = isinstance(value, (int, float, str)) and not isinstance(value, bool)
    if not is_number or (kind is int and isinstance(value, float)):
        raise ConfigError(f"{name}={value!r} is not {wanted}", place=name)
    try:
        return kind(value)
    except ValueError:
        raise ConfigError(f"{name}={value!r} is not {wanted}", place=name) from None
