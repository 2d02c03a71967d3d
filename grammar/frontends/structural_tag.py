"""Structural tags: free text that may hold tags, tags alone, or tags instead of an answer.

Owns the rules of the text around the tags; what a tag holds is the front end's of its content. Free text is read by the automaton of
Aho and Corasick over the triggers' characters, one rule a state, so that the grammar is deterministic up to the end of a trigger:

    text(p)  ->  (nothing)  |  c text(q)  |  c calls(t)      p, q: what of a trigger the text ends with; t: the trigger that c completes
    calls(t) ->  (rest of begin, content, end) of any tag of the trigger t

The tag's end leads back to text(""), or to a copy of these rules in which triggers never complete. Source: A. Aho, M. Corasick,
"Efficient string matching", CACM 1975.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import GrammarError
from ..expr import (
    Expr,
    Grammar,
    Limits,
    alt,
    lit,
    opt,
    ref,
    seq,
    star,
)
from ..spec import Spec, StructuralTag, Tag
from . import build as build_any
from .embedding import embed
from .free_text import FreeText

_START = "output"


def build(spec: Spec, limits: Limits) -> Grammar:
    """The grammar of a `StructuralTag`; a GrammarError in a tag names the tag, with the place in its content."""
    if not isinstance(spec, StructuralTag):
        raise GrammarError(f"a structural tag front end was given {type(spec).__name__}")
    _check(spec, limits)
    rules: dict[str, Expr] = {}
    contents = _contents(spec.tags, rules, limits)
    triggers = list(dict.fromkeys(tag.trigger for tag in spec.tags))
    for trigger in triggers:
        rules[f"calls {trigger}"] = _one_of(
            [
                (tag, content)
                for tag, content in zip(spec.tags, contents, strict=True)
                if tag.trigger == trigger
            ]
        )
    if spec.free_text:
        start = _free_text(spec, triggers, rules)
    else:
        start = _tags_alone(spec, triggers)
        if spec.answer is not None:
            answer = _built(spec.answer, limits, "the answer", "/answer")
            start = alt(start, embed(answer, "answer: ", rules))
    rules[_START] = start
    return Grammar(rules, _START)


def _contents(tags: Sequence[Tag], rules: dict[str, Expr], limits: Limits) -> list[Expr]:
    """The contents of the tags, in their order; equal specs are built once."""
    known: dict[Spec, Expr] = {}
    for index, tag in enumerate(tags):
        if tag.content not in known:
            place = tag.place or f"/tags/{index}/content"
            grammar = _built(tag.content, limits, tag.name or f"tag {tag.begin!r}", place)
            known[tag.content] = embed(grammar, f"{index}: ", rules)
    return [known[tag.content] for tag in tags]


def _built(spec: Spec, limits: Limits, name: str, place: str) -> Grammar:
    if isinstance(spec, StructuralTag):
        raise GrammarError(f"{name}: a structural tag cannot be part of another", place=place)
    try:
        return build_any(spec, limits)
    except GrammarError as error:
        inside = error.place if error.place[:1] in ("", "#", "/") else f" {error.place}"
        raise GrammarError(
            f"{name}: {error.message}", place=place + inside, hint=error.hint, keyword=error.keyword
        ) from error


def _one_of(tags: Sequence[tuple[Tag, Expr]]) -> Expr:
    """What may stand behind the trigger that all `tags` share. What their beginnings have in common comes first, once."""
    rests = [tag.begin[len(tag.trigger) :] for tag, _ in tags]
    shared = _common_beginning(min(rests), max(rests))
    ways = [
        seq(lit(rest[len(shared) :]), content, lit(tag.end))
        for rest, (tag, content) in zip(rests, tags, strict=True)
    ]
    return seq(lit(shared), alt(*ways))


def _common_beginning(first: str, last: str) -> str:
    """What two texts begin with alike; of the least and the greatest of many it is what all do."""
    pairs = enumerate(zip(first, last, strict=False))
    return first[: next((at for at, (a, b) in pairs if a != b), min(len(first), len(last)))]


def _tags_alone(spec: StructuralTag, triggers: Sequence[str]) -> Expr:
    one = alt(*(seq(lit(trigger), ref(f"calls {trigger}")) for trigger in triggers))
    some = one if spec.at_most_one else seq(one, star(seq(lit(spec.separator), one)))
    return some if spec.at_least_one or spec.answer is not None else opt(some)


# ---------------------------------------------------------------------------------------------- free text


def _free_text(spec: StructuralTag, triggers: Sequence[str], rules: dict[str, Expr]) -> Expr:
    """The rules of text before and after the first tag; they are the same where the first one is nothing special."""
    before, after = "before", "after"
    if not spec.at_least_one and not spec.at_most_one:
        after = before
    text = FreeText(triggers, rules)
    text.add(before, after, may_end=not spec.at_least_one, may_call=True)
    if after != before:
        text.add(after, after, may_end=True, may_call=not spec.at_most_one)
    return ref(f"{before} ")


# ---------------------------------------------------------------------------------------------- checks


def _check(spec: StructuralTag, limits: Limits) -> None:
    if not spec.tags:
        raise GrammarError("a structural tag needs at least one tag", place="/tags", keyword="tags")
    if spec.answer is not None and (spec.free_text or spec.at_least_one):
        raise GrammarError(
            "an answer stands instead of tags: it goes neither with free text nor with a tag that must come",
            place="/answer",
            keyword="answer",
        )
    _check_spelling(spec.separator, "/separator", "separator")
    num_characters = len(spec.separator)
    for index, tag in enumerate(spec.tags):
        _check_tag(tag, f"/tags/{index}")
        num_characters += len(tag.begin) + len(tag.end)
    if num_characters > limits.spec_bytes:
        raise GrammarError(
            f"the tags have {num_characters} characters, more than limits.spec_bytes={limits.spec_bytes}",
            place="/tags",
            keyword="spec_bytes",
        )
    triggers = list(dict.fromkeys(tag.trigger for tag in spec.tags))
    for inner in triggers:
        for outer in triggers:
            if inner != outer and inner in outer:
                raise GrammarError(
                    f"the trigger {outer!r} contains the trigger {inner!r}, so it can never come",
                    place="/tags",
                    keyword="trigger",
                )


def _check_tag(tag: Tag, place: str) -> None:
    if not tag.trigger or not tag.begin.startswith(tag.trigger):
        raise GrammarError(
            f"the tag's beginning {tag.begin!r} does not start with its trigger {tag.trigger!r}",
            place=f"{place}/trigger",
            keyword="trigger",
        )
    for name, text in (("begin", tag.begin), ("end", tag.end)):
        _check_spelling(text, f"{place}/{name}", name)


def _check_spelling(text: str, place: str, name: str) -> None:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise GrammarError(
            f"{name} contains a lone surrogate, which no text can hold", place=place, keyword=name
        )
