"""What OpenAI-compatible servers do differently, as one value a server; each lives in `dialects/` and is found by its name.

Owns the `Dialect` type and the registry. A new server is one module in `dialects/` with `DIALECTS`. Knows no request.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import ConfigError
from ...grammar.spec import Spec
from . import dialects
from .structured import Constrained


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """See the fields. Names of sampling arguments are those of SamplingParams."""

    name: str
    title: str
    """What errors call the server."""
    constrain: Callable[[Spec, bool], Constrained]
    """The fields for a constraint, in a chat or in a completion. Raises GrammarError for what the server cannot enforce."""
    owners: tuple[str, ...] = ()
    """`owned_by` in the server's list of models, by which it is known."""
    sampling: Mapping[str, str] = field(default_factory=dict[str, str])
    """Arguments beyond OpenAI's -> their fields."""
    always: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields that are always sent, since the server's own default is not neutral."""
    max_tokens_field: str = "max_tokens"
    """Of a chat."""
    has_short_default: bool = True
    """Without max_tokens a completion ends after few tokens."""
    max_stops: int | None = None
    has_n: bool = True
    chat_prefix: Mapping[str, Any] | None = None
    """Fields that make a chat go on with its last message; None: it cannot."""
    has_echo: bool = False
    """Completions tell log-probabilities of their prompt."""
    logprob_ids: Mapping[str, Any] | None = None
    """Fields that make tokens come as ids; None: log-probabilities are refused."""
    include_stop: str | None = None
    """The field that keeps a stop string in the text."""
    namespace: str | None = None
    """The field that keeps caches apart."""


def all_dialects() -> dict[str, Dialect]:
    """Every dialect by name, in the order of the modules' names."""
    found: dict[str, Dialect] = {}
    for module in sorted(pkgutil.iter_modules(dialects.__path__), key=lambda module: module.name):
        loaded = importlib.import_module(f"{dialects.__name__}.{module.name}")
        found.update({dialect.name: dialect for dialect in loaded.DIALECTS})
    return found


def dialect_of(name: str) -> Dialect:
    """The dialect of that name. ConfigError names the known ones."""
    known = all_dialects()
    if name not in known:
        raise ConfigError(
            f"there is no dialect {name!r}",
            place="dialect",
            hint=f"Known: auto, {', '.join(known)}",
        )
    return known[name]


def dialect_of_owner(owner: str) -> Dialect:
    """The dialect of the server whose models are `owned_by` this; OpenAI's own if nobody knows."""
    known = all_dialects()
    found = (dialect for dialect in known.values() if owner in dialect.owners)
    return next(found, known["openai"])
