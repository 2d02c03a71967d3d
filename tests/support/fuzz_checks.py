"""What must hold of any constraint: it is refused with a reason, or random outputs of it are valid and no mask is ever empty.

Owns the checks and the oracles. Oracles are independent of the front ends: `jsonschema` for schemas (numbers read as decimals, so that none is rounded),
`re.fullmatch` for patterns, a scan with backtracking for structural tags. Grammar texts have no oracle: there only masks and matcher are checked.
"""

from __future__ import annotations

import decimal
import json
import random
import re
import signal
import time
import warnings
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

import jsonschema
from grammar_engine import Constraint
from toy_vocabulary import EOS, SPECIAL, byte_vocabulary

from radixlm.errors import GrammarError
from radixlm.grammar.spec import Choice, JsonSchema, Regex, Spec, StructuralTag

VOCABULARY = byte_vocabulary(
    b'{"', b'":', b'",', b'"}', b'"]', b'","', b'":"', b"[]", b"{}", b"]}", b"true", b"null", b"12", b"0.", b"ab", b"aaaa", b"abab", b"\n  ", b", ", b": ",
    b"\\u", b"\\n", "é".encode(), b"\xc3", b"\xa9a", "𝕏".encode(), b"<t", b"</t>", b"20", b"-0", b"e+", b"  ", b'{\n  "',
)  # fmt: skip
NUM_STEPS = 30
_MAX_COMPLETION_BYTES = 1 << 16
_SLOW_MASK_S = 1.0
_ORACLE_S = 3.0
_NUM_WALKS = 2
_NEGATING = ('"not"', '"oneOf"', '"if"', '"contains"', '"unevaluated')
_PLAIN = re.compile(r"(?:[\x20-\x5b\x5d-\x7e\n]|\\[^u])*")


class Fault(AssertionError):
    """Something that must never be. `kind` is short and the same for equal faults."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind


def check(spec: Spec, rng: random.Random, on_compiled: Callable[[], None] = lambda: None) -> str:
    """What became of the constraint: "refused", "walked" or "unjudged" (walked, without an oracle). Fault if something is wrong."""
    try:
        constraint = Constraint(spec, VOCABULARY)
    except GrammarError as error:
        if not str(error).strip():
            raise Fault("an error without a message") from error
        return "refused"
    on_compiled()
    found = "walked"
    for _ in range(_NUM_WALKS):
        text = walk(constraint, rng)
        verdict = None if text is None else judged(spec, text)
        if verdict is False:
            raise Fault("an output that is not valid", repr((text or "")[:300]))
        if verdict is None:
            found = "unjudged"
    return found


def walk(constraint: Constraint, rng: random.Random) -> str | None:
    """A text of random allowed tokens and then the shortest completion, every mask on the way checked; None if that is too long."""
    matcher = constraint.matcher()
    text = bytearray()
    for _ in range(NUM_STEPS):
        allowed = checked_mask(constraint, matcher, rng)
        if matcher.is_accepting and (allowed == {EOS} or rng.random() < 0.1):
            return text.decode()
        token = rng.choice(sorted(allowed - {EOS}))
        text += constraint.vocabulary.token_bytes[token] or b""
        if not matcher.advance(token):
            raise Fault("an allowed token is refused", f"{token} after {bytes(text)!r}")
    distance = matcher.distance()
    if distance > _MAX_COMPLETION_BYTES:
        return None
    rest = matcher.shortest_completion(_MAX_COMPLETION_BYTES)
    if len(rest) != distance:
        raise Fault("a shortest completion of another length than the distance", f"{len(rest)}, {distance}, after {bytes(text)!r}")  # fmt: skip
    if rest and not matcher.advance_bytes(rest):
        raise Fault("a shortest completion is refused", f"{rest!r} after {bytes(text)!r}")
    if not matcher.is_accepting:
        raise Fault("a shortest completion is not complete", f"{rest!r} after {bytes(text)!r}")
    return (bytes(text) + rest).decode()


def checked_mask(constraint: Constraint, matcher: Any, rng: random.Random) -> set[int]:
    """The mask, which agrees with the matcher on EOS, on special tokens, on some refused tokens, and on budgets."""
    started = time.process_time()
    allowed = constraint.allowed(matcher)
    if time.process_time() - started > _SLOW_MASK_S:
        raise Fault("a mask of more than a second")
    if not allowed:
        raise Fault("an empty mask")
    if (EOS in allowed) != matcher.is_accepting:
        raise Fault("EOS is allowed elsewhere than at the end")
    if SPECIAL in allowed:
        raise Fault("a special token is allowed")
    refused = set(range(2, constraint.vocabulary.vocab_size)) - allowed
    for token in rng.sample(sorted(refused), min(len(refused), 4)):
        if matcher.fork().advance(token):
            raise Fault("a token that the mask refuses is taken", f"{token}")
    distance = matcher.distance()
    if 0 < distance < 1 << 20:
        budget = distance + rng.choice([0, 1, 5])
        within = constraint.allowed(matcher, budget)
        if not within or not within <= allowed:
            raise Fault("a budget that allows nothing, or more", f"{budget}")
        after = matcher.fork()
        token = rng.choice(sorted(within - {EOS}) or [EOS])
        if not after.advance(token) or after.distance() > budget - 1:
            raise Fault("a token beyond the budget", f"{token}, {budget}")
    return allowed


# ------------------------------------------------------------------------------------------------ oracles


def judged(spec: Spec, text: str) -> bool | None:
    """Whether `text` is an output of the constraint; None: no oracle can tell."""
    try:
        return _in_time(lambda: _judge(spec, text))
    except _NoAnswer:
        return None


class _NoAnswer(Exception):
    pass


def _judge(spec: Spec, text: str) -> bool:
    match spec:
        case Regex(pattern):
            with warnings.catch_warnings(
                action="ignore"
            ):  # of what Python's syntax may come to mean
                return re.fullmatch(pattern, text) is not None
        case Choice(options):
            return text in options
        case JsonSchema():
            if spec.best_effort:
                raise _NoAnswer
            return _is_valid_json(spec.text, text)
        case StructuralTag():
            return _Tags(spec, text).is_output()
        case _:
            raise _NoAnswer


def _in_time(ask: Callable[[], bool]) -> bool:
    """The answer; no answer when the oracle takes too long or has a fault of its own."""

    def stop(*_: object) -> None:
        raise _NoAnswer

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, _ORACLE_S)
    try:
        return ask()
    except Fault:
        raise
    except (
        Exception
    ) as error:  # of the oracle: an unknown reference, a pattern that is not Python's
        raise _NoAnswer from error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# Without those that Python reads otherwise than RFC 3339 and ECMA-262 have them (the year 0000, patterns).
_FORMATS = jsonschema.FormatChecker(
    [
        name
        for name in jsonschema.Draft202012Validator.FORMAT_CHECKER.checkers
        if name not in ("date", "date-time", "time", "regex")
    ]
)


def _is_integer(_: object, value: object) -> bool:
    if isinstance(value, Decimal):
        return value == value.to_integral_value()
    return isinstance(value, int) and not isinstance(value, bool)


@lru_cache(maxsize=8)
def _validator(schema_text: str) -> Any:
    schema = json.loads(schema_text, parse_float=Decimal)
    default = jsonschema.Draft202012Validator
    kind = jsonschema.validators.validator_for(schema, default)
    if kind in (jsonschema.Draft3Validator, jsonschema.Draft4Validator):
        raise _NoAnswer  # they do not know keywords that our front end takes from later drafts
    checker = kind.TYPE_CHECKER.redefine("integer", _is_integer)
    # later drafts let it go, and our front end keeps it in all of them
    older = {"dependencies": jsonschema.Draft7Validator.VALIDATORS["dependencies"]}
    exact = jsonschema.validators.extend(kind, {**older, **kind.VALIDATORS}, type_checker=checker)
    return exact(schema, format_checker=_FORMATS)


def _is_valid_json(schema_text: str, text: str) -> bool:
    try:
        value = json.loads(text, parse_float=Decimal)
    except ValueError as error:
        raise Fault("an output that is no JSON", repr(text[:300])) from error
    if "attern" in schema_text and not _PLAIN.fullmatch(text):
        raise _NoAnswer  # classes such as \s and \W hold other characters in Python than in ECMA-262
    if '"format"' in schema_text and any(word in schema_text for word in _NEGATING):
        raise _NoAnswer  # a checker that is laxer than ours is stricter below a negation
    with decimal.localcontext() as context:
        context.prec = 3_000
        return _validator(schema_text).is_valid(value)


class _Tags:
    """Reads a text as tags, alone or in free text, trying every end of every tag."""

    def __init__(self, spec: StructuralTag, text: str) -> None:
        self._spec, self._text = spec, text

    def is_output(self) -> bool:
        spec = self._spec
        if spec.answer is not None and _judge(spec.answer, self._text):
            return True
        return self._is_rest(0, 0)

    def _is_rest(self, at: int, num_tags: int) -> bool:
        spec, text = self._spec, self._text
        is_enough = num_tags > 0 or not spec.at_least_one
        starts = {start for tag in spec.tags if (start := text.find(tag.trigger, at)) >= 0}
        if spec.free_text:
            if not starts:
                return is_enough
            at = min(starts)
        else:
            if at == len(text):
                return is_enough
            if num_tags:
                if not text.startswith(spec.separator, at):
                    return False
                at += len(spec.separator)
        if num_tags and spec.at_most_one:
            return False
        return any(self._is_rest(end, num_tags + 1) for end in self._ends(at))

    def _ends(self, at: int) -> list[int]:
        """Where a tag that begins at `at` may end."""
        found: set[int] = set()
        for tag in self._spec.tags:
            if not self._text.startswith(tag.begin, at):
                continue
            start = at + len(tag.begin)
            for end in range(start, len(self._text) + 1):
                if self._text.startswith(tag.end, end) and _holds(tag.content, self._text[start:end]):  # fmt: skip
                    found.add(end + len(tag.end))
        return sorted(found)


def _holds(content: Spec, text: str) -> bool:
    try:
        return _judge(content, text)
    except Fault:  # no JSON: this is not where the tag ends
        return False
