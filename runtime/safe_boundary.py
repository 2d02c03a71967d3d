"""Where a text can be cut so that its parts, tokenized apart, give the ids of the whole, whatever is appended later.

Owns the reading of a `tokenizers` pipeline (normalizer, added tokens, pre-tokenizers) into rules about two neighbouring characters, and
the search for the last place where the rules promise a cut. Knows nothing of vocabularies: merges never reach across a cut.

A pipeline cuts between a and b in every text if one of its stages does. A stage must depend on nothing before the place where its piece
starts; whatever is not known to behave so (a normalizer that rewrites, a prefix space, a regex outside the dialect) gives no promise at
all, and the only boundary is 0: always right, only slow.

Character classes differ a little between Unicode versions of Python and of the tokenizer's regex engine. Only characters that were
classified in Unicode 3.2 as they are today are trusted; others never lie beside a boundary.
"""

from __future__ import annotations

import functools
import itertools
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .pretoken_regex import Pattern

_Joins = Callable[[str, str], bool]
_GPT2_REGEX = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_CACHED_PAIRS = 8192
_ASCII_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_COMPOSING = ("NFC", "NFD", "NFKC", "NFKD")


class BoundaryFinder:
    """The boundaries that one tokenizer's pipeline promises."""

    def __init__(self, joins: Sequence[_Joins] | None, *, ascii_only: bool = False) -> None:
        """`joins`: per stage, whether two neighbours may share a piece; None: nothing is promised."""
        self._joins = tuple(joins or ())
        self._ascii_only = ascii_only
        self._is_cut = functools.lru_cache(maxsize=_CACHED_PAIRS)(self._compute_is_cut)

    def last_boundary(self, text: str) -> int:
        """The largest k, in characters, with a promised cut before text[k]; 0 when there is none."""
        if not self._joins:
            return 0
        is_cut = self._is_cut
        for at in range(len(text) - 1, 0, -1):
            if is_cut(text[at - 1], text[at]):
                return at
        return 0

    def _compute_is_cut(self, left: str, right: str) -> bool:
        if self._ascii_only:
            trusted = left.isascii() and right.isascii()
        else:
            trusted = _is_stable(left) and _is_stable(right)
        return trusted and any(not joins(left, right) for joins in self._joins)


def boundary_finder(pipeline: Mapping[str, Any]) -> BoundaryFinder:
    """The finder for a serialised tokenizer (the keys `normalizer`, `added_tokens`, `pre_tokenizer` of its JSON)."""
    nothing = BoundaryFinder(None)
    normalizer = _flat(pipeline.get("normalizer"), "normalizers")
    if not all(stage.get("type") in (*_COMPOSING, "Lowercase") for stage in normalizer):
        return nothing
    joins: list[_Joins] = []
    for stage in _flat(pipeline.get("pre_tokenizer"), "pretokenizers"):
        found = _stage(stage)
        if found is None:
            return nothing
        joins.extend(found)
    added: list[Mapping[str, Any]] = pipeline.get("added_tokens") or []
    matched = [token for token in added if not token.get("special")]
    if any(token.get(flag) for token in matched for flag in ("lstrip", "rstrip", "single_word")):
        return nothing
    inside = {pair for token in matched for pair in _pairs(str(token.get("content", "")))}
    if inside:
        joins = [functools.partial(_joins_or_inside, join, frozenset(inside)) for join in joins]
    # A composing normalizer reaches over a boundary unless both sides are characters that it leaves alone.
    return BoundaryFinder(joins, ascii_only=bool(normalizer))


def _flat(stage: Mapping[str, Any] | None, key: str) -> list[Mapping[str, Any]]:
    if stage is None:
        return []
    if stage.get("type") == "Sequence":
        return [inner for member in stage.get(key) or () for inner in _flat(member, key)]
    return [stage]


def _stage(stage: Mapping[str, Any]) -> list[_Joins] | None:
    """What one pre-tokenizer promises: no rule or several; None when it spoils every promise."""
    kind = stage.get("type")
    if kind == "ByteLevel":
        if stage.get("add_prefix_space"):
            return (
                None  # a part that starts inside the text would get a space that the whole does not
            )
        return _regex_rule(_GPT2_REGEX) if stage.get("use_regex", True) else []
    if kind == "Split":
        # Either the matches are the pieces and what lies between is one, or what lies between is dropped.
        whole = (stage.get("behavior"), bool(stage.get("invert")))
        written: Mapping[str, Any] = stage.get("pattern") or {}
        regex = written.get("Regex")
        known = whole in (("Isolated", False), ("Removed", True))
        return _regex_rule(regex) if known and isinstance(regex, str) else None
    if kind == "Digits":
        return [_class_rule(_is_number, alone=bool(stage.get("individual_digits")))]
    if kind == "Punctuation" and stage.get("behavior") in ("Isolated", "Contiguous"):
        return [_class_rule(_is_punctuation, alone=stage.get("behavior") == "Isolated")]
    return None


def _regex_rule(source: str) -> list[_Joins] | None:
    pattern = Pattern.parse(source)
    return None if pattern is None else [pattern.may_join]


def _class_rule(is_member: Callable[[str], bool], *, alone: bool) -> _Joins:
    """Members of a class are cut from the others, and (alone) from one another."""

    def joins(left: str, right: str) -> bool:
        if alone:
            return not (is_member(left) or is_member(right))
        return is_member(left) == is_member(right)

    return joins


def _joins_or_inside(
    joins: _Joins, inside: frozenset[tuple[str, str]], left: str, right: str
) -> bool:
    return (left, right) in inside or joins(left, right)


def _pairs(text: str) -> list[tuple[str, str]]:
    return list(itertools.pairwise(text))


def _is_number(character: str) -> bool:
    return unicodedata.category(character) in ("Nd", "Nl", "No")


def _is_punctuation(character: str) -> bool:
    return character in _ASCII_PUNCTUATION or unicodedata.category(character).startswith("P")


def _is_stable(character: str) -> bool:
    return unicodedata.category(character) == unicodedata.ucd_3_2_0.category(character) != "Cn"
