"""What a constraint means, for a person: its size, what it forces, what may come first, outputs of it, what it ignores, why it is refused.

Owns the questions asked of a compiled constraint. Knows nothing of models beyond their vocabulary, nor of printing. It uses the same
passes, masks and matcher as an engine, so what it says is what will happen.
"""

from __future__ import annotations

import random
import re
import time
from dataclasses import dataclass

from ...errors import GrammarError
from ..compiler import compile_spec
from ..expr import Limits
from ..masks import TokenMasks
from ..matcher import Matcher
from ..program import GrammarProgram
from ..spec import JsonSchema, Spec
from ..token_costs import NEVER
from ..vocabulary import Vocabulary
from .json_places import place_of
from .samples import MAX_SAMPLE_BYTES, Sample, draw_sample
from .schema_report import (
    KeywordReport,
    LooseObject,
    keyword_reports,
    keywords_left_out,
    loose_objects,
)
from .tokens import allowed_tokens, byte_vocabulary, readable_examples

_NUM_SAMPLES = 4
_LONG = 200  # characters of a sample beyond which shorter ones are preferred
_NEAR = 0.5  # share of a limit that is worth a word
_COMPILE_CPU_S = 2.0  # what an engine allows unless its `compile_cpu_s` says otherwise


@dataclass(frozen=True, slots=True)
class LimitUse:
    """A limit of the compile that is half used up or more."""

    name: str
    used: float
    limit: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """What there is to say of one constraint over one vocabulary."""

    num_states: int
    num_edges: int
    num_regions: int
    num_bytes: int
    compile_s: float
    limits_near: tuple[LimitUse, ...]
    forced_text: str
    """How every output begins."""
    may_be_empty: bool
    num_first_tokens: int
    first_tokens: tuple[str, ...]
    """Some of the tokens that may come first, the shortest ones."""
    shortest: str
    """A shortest output."""
    max_tokens_needed: int | None
    """max_tokens that certainly suffices for some output (single-byte tokens); None if no number does."""
    sample: str
    """An output drawn at random: of a few, the longest that is not too long to read."""
    sample_tokens: int
    sample_forced_bytes: int
    """Bytes of the sample that the grammar left no choice about."""
    keywords: tuple[KeywordReport, ...]
    """What became of each keyword of a schema."""
    loose_objects: tuple[LooseObject, ...]
    """Objects of a schema that may lack their properties, or have others."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a constraint is refused, and where in its text."""

    message: str
    place: str
    """A JSON pointer, line:column or a column, as in the error; empty if the whole is meant."""
    hint: str
    line: int | None
    column: int | None
    line_text: str
    could_leave_out: tuple[KeywordReport, ...]
    """What `best_effort` would leave out of the schema to compile it."""


def explain(
    spec: Spec, vocabulary: Vocabulary | None = None, limits: Limits | None = None, seed: int = 0
) -> Explanation:
    """Compile `spec` and look at it; without a vocabulary, over single bytes.

    Raises GrammarError with place and keyword as the compiler does; `refusal` makes it readable.
    """
    vocabulary = vocabulary or byte_vocabulary()
    limits = limits or Limits()
    began_s = time.perf_counter()
    program = compile_spec(spec, vocabulary.alphabet, limits)
    compile_s = time.perf_counter() - began_s
    matcher = Matcher(TokenMasks(program, vocabulary))
    first = allowed_tokens(matcher, vocabulary)
    distance = matcher.distance()
    sample = _telling_sample(matcher, vocabulary, seed)
    is_schema = isinstance(spec, JsonSchema)
    return Explanation(
        num_states=program.num_states,
        num_edges=len(program.edge_from),
        num_regions=len(program.region_entry),
        num_bytes=program.num_bytes,
        compile_s=compile_s,
        limits_near=_limits_near(spec, program, compile_s, limits),
        forced_text=_text(matcher.forced_bytes()),
        may_be_empty=matcher.is_accepting,
        num_first_tokens=len(first),
        first_tokens=readable_examples(first, vocabulary),
        shortest=_text(matcher.shortest_completion(MAX_SAMPLE_BYTES)),
        max_tokens_needed=distance if distance < NEVER else None,
        sample=sample.text,
        sample_tokens=sample.num_tokens,
        sample_forced_bytes=sample.num_forced_bytes,
        keywords=keyword_reports(spec, limits) if is_schema else (),
        loose_objects=loose_objects(spec, limits) if is_schema else (),
    )


def _telling_sample(matcher: Matcher, vocabulary: Vocabulary, seed: int) -> Sample:
    choose = random.Random(seed)
    samples = [draw_sample(matcher.fork(), vocabulary, choose) for _ in range(_NUM_SAMPLES)]
    return max(samples, key=lambda s: -len(s.text) if len(s.text) > _LONG else len(s.text))


def refusal(spec: Spec, error: GrammarError, limits: Limits | None = None) -> Refusal:
    """The error of a constraint with the line it is about, and what `best_effort` could do about it."""
    source = getattr(spec, "text", getattr(spec, "pattern", ""))
    message, _, excerpt = error.message.partition("\n")
    at = None if excerpt else _position(source, error.place)
    line = column = None
    line_text = ""
    if at is not None:
        start = source.rfind("\n", 0, at) + 1
        line, column = source.count("\n", 0, at) + 1, at - start + 1
        line_text = source[start:].partition("\n")[0].rstrip("\r")
    elif excerpt:
        message = error.message  # it shows the line itself
    left_out: tuple[KeywordReport, ...] = ()
    if isinstance(spec, JsonSchema) and not spec.best_effort:
        left_out = _left_out(spec, limits)
    return Refusal(message, error.place, error.hint, line, column, line_text, left_out)


def _left_out(spec: JsonSchema, limits: Limits | None) -> tuple[KeywordReport, ...]:
    try:
        return keywords_left_out(spec, limits)
    except (GrammarError, RecursionError):
        return ()


def _position(source: str, place: str) -> int | None:
    """Where in `source` an error's place is: "line:column", "column N" or a JSON pointer."""
    if match := re.fullmatch(r"(\d+):(\d+)", place):
        lines = source.splitlines(keepends=True)
        return sum(map(len, lines[: int(match[1]) - 1])) + int(match[2]) - 1
    if match := re.fullmatch(r"column (\d+)", place):
        return int(match[1]) - 1
    return place_of(source, place) if place.startswith("#") else None


def _limits_near(
    spec: Spec, program: GrammarProgram, compile_s: float, limits: Limits
) -> tuple[LimitUse, ...]:
    source = getattr(spec, "text", getattr(spec, "pattern", ""))
    uses = (
        LimitUse("spec_bytes", len(source.encode("utf-8", "replace")), limits.spec_bytes),
        LimitUse("states", program.num_states, limits.states),
        LimitUse("transitions", len(program.edge_from), limits.transitions),
        LimitUse("program_bytes", program.num_bytes, limits.program_bytes),
        LimitUse("compile_cpu_s", round(compile_s, 2), _COMPILE_CPU_S),
    )
    return tuple(use for use in uses if use.used >= _NEAR * use.limit)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
