"""How documents are read: schema, instructions, parts, sampling. The options of a job, checked once.

Owns the options' names and defaults, the prompt, and the *facts*: what must be the same for a journal to be continued. Must not know
files, journals or the order of things.

The prompt of every document begins with the same text, so that a backend with a prefix cache computes it once for the whole job:

    system: instructions, outline of the fields | user: the text, the reminder     -> the model's answer, under the schema
    `------- shared by all documents -------'

Small models read best what stands so; README.md has the numbers.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn, cast

from ...errors import ConfigError, InvariantError
from ...runtime.messages import Generate, Ready, RoleBegin, RoleEnd, SamplingParams, Text
from ..backend import as_backend
from ..plain_text import check_text
from ..sampling import OPTION_NAMES, build_params, clean_options, derive_seed
from .merging import Merge, merge_rule
from .outline import outline, reminder
from .splitting import Measure, Splitter
from .target import Target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..backend import Backend, HasBackend

DEFAULT_INSTRUCTIONS = (
    "Read the document and answer with one JSON object that says what the document says."
)
DEFAULT_MAX_TOKENS = 512
_SLACK_TOKENS = 32  # role marks of the template, and a healed boundary
_CHARACTERS_PER_TOKEN = 3  # where a backend cannot count: rather too short than too long


class FutureBackend:
    """Stands for a backend that is yet to be started, so that the options of a job can be checked: all lengths fit, nothing is answered."""

    def __init__(self, model: str) -> None:
        self.facts = Ready(model, 1 << 40, 0, ())

    def generate(self, *_: Any) -> NoReturn:
        """Answers nothing."""
        raise InvariantError("this backend has not been started")

    send = generate

    def tokenize(self, text: str) -> tuple[int, ...]:
        """Counts nothing."""
        del text
        return ()


@dataclass(frozen=True, slots=True)
class Recipe:
    """The checked options of a job; `Recipe.of` makes it."""

    target: Target
    backend: Backend
    shared_prompt: str
    reminder: str
    sampling: SamplingParams
    splitter: Splitter
    merge: Merge
    field: str | None
    num_under_way: int
    is_ordered: bool
    facts: Mapping[str, str]

    @staticmethod
    def of(
        schema: Any,
        *,
        backend: Backend | HasBackend | None = None,
        field: str | None = None,
        instructions: str | None = None,
        chunk_tokens: int | None = None,
        chunk_chars: int | None = None,
        overlap: int | None = None,
        merge: str | Merge = "union",
        num_under_way: int = 128,
        ordered: bool = False,
        **sampling: Any,
    ) -> Recipe:
        """ConfigError, GrammarError or SamplingError name the option that is wrong. The options are described in `lang.extract.extract`."""
        _check_names(sampling)
        if not isinstance(num_under_way, int) or num_under_way < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                f"num_under_way={num_under_way!r} is no positive number", place="num_under_way"
            )
        target = Target.of(schema)
        intro = DEFAULT_INSTRUCTIONS if instructions is None else instructions.strip()
        check_text(intro, "instructions")
        shared = f"{intro}\nFields:\n{outline(target.schema)}"
        after = f"\n\n{found}" if (found := reminder(target.schema)) else ""
        params = _params(sampling)
        count = token_counter(backend)
        splitter = _splitter(
            as_backend(backend), count, shared + after, params, chunk_tokens, chunk_chars, overlap
        )
        facts = {
            "model": as_backend(backend).facts.model,
            "schema": _digest(target.spec.text),
            "instructions": _digest(shared + after),
            "field": json.dumps(field),
            "parts": json.dumps([chunk_tokens, chunk_chars, overlap]),
            "merge": merge
            if isinstance(merge, str)
            else getattr(merge, "__qualname__", "function"),
            "sampling": json.dumps(
                {**sampling, "max_tokens": params.max_tokens}, sort_keys=True, default=str
            ),
        }
        return Recipe(
            target, as_backend(backend), shared, after, params, splitter, merge_rule(merge, target),
            field, num_under_way, ordered, facts,
        )  # fmt: skip

    def request(self, name: str, text: str, number: int, part: int) -> Generate:
        """The request for one part of a document. Its seed depends on the document's number only, so a run can be repeated."""
        seed = derive_seed(self.sampling.seed or 0, (number,), part)
        return Generate(
            name,
            segments=(
                RoleBegin("system"),
                Text(self.shared_prompt),
                RoleEnd("system"),
                RoleBegin("user"),
                Text(text + self.reminder),
                RoleEnd("user"),
                RoleBegin("assistant"),
            ),
            sampling=_with_seed(self.sampling, seed),
            constraint=self.target.spec,
        )


def token_counter(backend: Backend | HasBackend | None) -> Measure | None:
    """The function that counts the tokens of a text, if the backend, or what carries it, can tokenize (as `Engine` can)."""
    for candidate in (backend, as_backend(backend)):
        tokenize: Any = getattr(candidate, "tokenize", None)
        if callable(tokenize):
            return lambda text: len(cast("tuple[int, ...]", tokenize(text))) if text else 0
    return None


def _splitter(
    backend: Backend,
    count: Measure | None,
    shared: str,
    params: SamplingParams,
    chunk_tokens: int | None,
    chunk_chars: int | None,
    overlap: int | None,
) -> Splitter:
    if chunk_tokens is not None and chunk_chars is not None:
        raise ConfigError(
            "parts are measured in tokens or in characters, not both", place="chunk_chars"
        )
    if chunk_chars is not None:
        return Splitter(chunk_chars, chunk_chars // 10 if overlap is None else overlap)
    if chunk_tokens is not None and count is None:
        raise ConfigError(
            "this backend cannot count tokens",
            place="chunk_tokens",
            hint="Give chunk_chars instead",
        )
    num_shared = count(shared) if count is not None else len(shared) // _CHARACTERS_PER_TOKEN
    context = backend.facts.context_length
    room = context - num_shared - (params.max_tokens or 0) - _SLACK_TOKENS
    size = room if chunk_tokens is None else chunk_tokens
    if room < 1 or size > room:
        raise ConfigError(
            f"a part of {max(size, 1)} tokens does not fit: the context of {context} holds {num_shared} of instructions,"
            f" {params.max_tokens} of the answer, and {max(room, 0)} of a document",
            place="chunk_tokens" if chunk_tokens is not None else "max_tokens",
        )
    if count is None:
        size *= _CHARACTERS_PER_TOKEN
    return Splitter(size, size // 10 if overlap is None else overlap, count)


def _params(sampling: Mapping[str, Any]) -> SamplingParams:
    options = clean_options(sampling)
    if options.get("max_tokens") is None:
        options["max_tokens"] = (
            DEFAULT_MAX_TOKENS  # an answer without a bound could not be closed in time
        )
    if options.get("n", 1) != 1:
        raise ConfigError("a document has one row: n must be 1", place="n")
    return build_params(options, {}, 0)


def _with_seed(params: SamplingParams, seed: int) -> SamplingParams:
    import msgspec.structs

    return msgspec.structs.replace(params, seed=seed)


def _check_names(given: Mapping[str, Any]) -> None:
    own = frozenset(inspect.signature(Recipe.of).parameters) - {"sampling"}
    for name in given:
        if name not in OPTION_NAMES:
            near = get_close_matches(name, own | OPTION_NAMES, n=1)
            hint = f"Did you mean {near[0]}?" if near else ""
            raise ConfigError(f"an extraction has no option {name!r}", place=name, hint=hint)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
