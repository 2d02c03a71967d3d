"""Structural tags against their definition: a slow reader that looks for triggers from left to right."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_vocabulary import accepts, allowed, byte_vocabulary, matcher_of, vocabulary_of

from radixlm.errors import GrammarError
from radixlm.grammar.compiler import compile_spec
from radixlm.grammar.matcher import Matcher
from radixlm.grammar.spec import Choice, JsonSchema, Regex, Spec, StructuralTag, Tag, spec_key

CITY = JsonSchema(
    '{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}'
)
COUNT = JsonSchema('{"type":"integer","minimum":0,"maximum":9}')
TAGS = (
    Tag('<call>{"name":"f","arguments":', CITY, "}</call>", "<call>"),
    Tag('<call>{"name":"g","arguments":', COUNT, "}</call>", "<call>"),
)
F = '<call>{"name":"f","arguments":{"city":"Oslo"}}</call>'
G = '<call>{"name":"g","arguments":7}</call>'


def of(spec: StructuralTag) -> Matcher:
    vocabulary = byte_vocabulary()
    return matcher_of(compile_spec(spec, vocabulary.alphabet), vocabulary)


def check(spec: StructuralTag, passing: list[str], failing: list[str]) -> None:
    matcher = of(spec)
    for text in passing:
        assert accepts(matcher, text.encode()), f"{text!r} is refused"
    for text in failing:
        assert not accepts(matcher, text.encode()), f"{text!r} is accepted"


def test_free_text_holds_any_number_of_tags() -> None:
    check(
        StructuralTag(TAGS),
        ["", "Hi", "a < b, <cal", "<<call é", F, f"Let me see.\n{F}", F + G, f"{F} and {G} done"],
        ["<call>", "x<call>y", F[:-1], f"{F}<call>", '<call>{"name":"h","arguments":1}</call>'],
    )


def test_a_tag_can_be_demanded() -> None:
    check(StructuralTag(TAGS, at_least_one=True), [F, f"a{F}b", F + G], ["", "Hi", "<call>"])


def test_behind_the_only_tag_no_trigger_can_come() -> None:
    check(StructuralTag(TAGS, at_most_one=True), ["", F, f"a{F}b <cal"], [F + G, f"{F}<call>"])
    check(StructuralTag(TAGS, at_least_one=True, at_most_one=True), [F, f"a{F}"], ["", F + F])


def test_tags_alone_have_the_separator_between_them() -> None:
    alone = StructuralTag(TAGS, free_text=False, separator="\n")
    check(alone, ["", F, f"{F}\n{G}"], [F + G, f"{F}\n", f" {F}", "Hi"])
    some = msgspec.structs.replace(alone, at_least_one=True)
    check(some, [F, f"{F}\n{G}\n{F}"], ["", f"{F}\n"])
    check(msgspec.structs.replace(some, at_most_one=True), [F, G], ["", f"{F}\n{G}"])


def test_an_answer_stands_instead_of_tags() -> None:
    spec = StructuralTag(TAGS, free_text=False, separator="\n", answer=CITY)
    check(spec, ['{"city":"Oslo"}', F, f"{F}\n{G}"], ["", "Hi", '{"city":"Oslo"}' + F, "{}"])


def test_every_kind_of_constraint_can_be_a_tag_s_content() -> None:
    tags = (
        Tag("[n ", Regex("[0-9]+"), "]", "[n"),
        Tag("[c ", Choice(("red", "blue")), "]", "[c"),
        Tag("[t ", CITY, "]", "[t"),
    )
    check(
        StructuralTag(tags),
        ["[n 12][c red]", "see [c blue] [x", '[t {"city":""}]'],
        ["[n]", "[n 1", "[c green]", "[c"],
    )


def test_what_is_forced_behind_a_trigger_is_known() -> None:
    matcher = of(StructuralTag(TAGS))
    assert matcher.advance_bytes(b"Hi <call>")
    assert matcher.forced_bytes() == b'{"name":"'
    assert matcher.advance_bytes(b'{"name":"g')
    assert matcher.forced_bytes() == b'","arguments":'
    assert not matcher.is_accepting


def test_tokens_over_the_borders_of_text_and_tag_are_allowed_exactly() -> None:
    vocabulary = byte_vocabulary(
        b"x<ca", b"ll>{", b"ll>x", b"7}</call> x<", b"7}</call><call>x", b"ll"
    )
    names = {data: index for index, data in enumerate(vocabulary.token_bytes)}
    matcher = matcher_of(compile_spec(StructuralTag(TAGS), vocabulary.alphabet), vocabulary)
    assert names[b"x<ca"] in allowed(matcher, vocabulary)
    assert matcher.advance(names[b"x<ca"])
    found = allowed(matcher, vocabulary)
    assert names[b"ll>{"] in found
    assert names[b"ll"] in found
    assert names[b"ll>x"] not in found
    assert matcher.advance_bytes(b'll>{"name":"g","arguments":')
    found = allowed(matcher, vocabulary)
    assert names[b"7}</call> x<"] in found
    assert names[b"7}</call><call>x"] not in found


def test_a_tag_that_could_not_be_closed_in_time_is_not_begun() -> None:
    vocabulary = byte_vocabulary()
    matcher = matcher_of(compile_spec(StructuralTag(TAGS), vocabulary.alphabet), vocabulary)
    assert matcher.advance_bytes(b"a <call")
    closing = matcher.fork()
    assert closing.advance_bytes(b">")
    is_begun = 2 + ord(">")
    assert is_begun in allowed(matcher, vocabulary, closing.distance() + 1)
    assert is_begun not in allowed(matcher, vocabulary, closing.distance())


def test_a_trigger_that_no_token_spells_leaves_the_text_free() -> None:
    vocabulary = vocabulary_of(b"a", b"b")
    spec = StructuralTag((Tag("<x>", Choice(("a",)), "</x>", "<x>"),))
    matcher = matcher_of(compile_spec(spec, vocabulary.alphabet), vocabulary)
    assert allowed(matcher, vocabulary) == {0, 2, 3}


# ---------------------------------------------------------------------------------------------- any triggers


@dataclass(frozen=True)
class _Drawn:
    spec: StructuralTag
    texts: list[str]


@st.composite
def drawn_specs(draw: st.DrawFn) -> _Drawn:
    """Triggers over two letters, tags of them, and texts made of pieces of both."""
    words = st.text("ab", min_size=1, max_size=4)
    triggers = draw(st.lists(words, min_size=1, max_size=3, unique=True))
    triggers = [t for t in triggers if not any(o != t and o in t for o in triggers)]
    tags = tuple(
        Tag(
            t + draw(st.text("ab", max_size=1)),
            Choice(("a", "bb")),
            draw(st.text("ab", max_size=2)),
            t,
        )
        for t in triggers
        for _ in range(draw(st.integers(1, 2)))
    )
    free, least, most = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    spec = StructuralTag(tags, free, least, most, separator=draw(st.sampled_from(["", "a", "\n"])))
    whole = [tag.begin + "a" + tag.end for tag in tags]
    pieces = st.sampled_from([*whole, *triggers, "a", "b", "x", spec.separator])
    return _Drawn(spec, draw(st.lists(st.lists(pieces, max_size=6).map("".join), max_size=8)))


def holds(spec: StructuralTag, text: str, num_tags: int = 0) -> bool:
    """The definition: from left to right, the first trigger that is complete begins a tag; behind the tag it starts anew."""
    may_end = num_tags > 0 or not spec.at_least_one
    ends = [t.trigger for t in spec.tags]
    found = sorted((text.find(t) + len(t), text.find(t)) for t in ends if t in text)
    if spec.free_text and not found:
        return may_end
    if spec.free_text:
        starts = [found[0][1]]
    else:
        if not text and num_tags == 0:
            return may_end
        separator = spec.separator if num_tags else ""
        if num_tags and not text:
            return True
        if not text.startswith(separator):
            return False
        starts = [len(separator)]
    if num_tags and spec.at_most_one:
        return False
    return any(
        holds(spec, text[start + len(whole) :], num_tags + 1)
        for start in starts
        for tag in spec.tags
        for content in ("a", "bb")
        for whole in [tag.begin + content + tag.end]
        if text.startswith(whole, start)
    )


@settings(max_examples=60, deadline=None)
@given(drawn_specs())
def test_texts_are_accepted_exactly_by_the_definition(drawn: _Drawn) -> None:
    matcher = of(drawn.spec)
    for text in drawn.texts:
        assert accepts(matcher, text.encode()) == holds(drawn.spec, text), (drawn.spec, text)


@pytest.mark.parametrize("at_most_one", [False, True])
@pytest.mark.parametrize("triggers", ["a", "ab", "aab", "abab", "aba bb", "aab ab ba", "aaab abb"])
def test_all_short_texts_are_read_by_the_definition(triggers: str, at_most_one: bool) -> None:
    """Triggers that overlap themselves and each other: every text over three letters, by program and by definition."""
    words = [t for t in triggers.split() if not any(o != t and o in t for o in triggers.split())]
    tags = tuple(Tag(word, Choice(("a", "bb")), "x", word) for word in words)
    spec = StructuralTag(tags, at_most_one=at_most_one)
    matcher = of(spec)
    for size in range(7):
        for letters in product("abx", repeat=size):
            text = "".join(letters)
            assert accepts(matcher, text.encode()) == holds(spec, text), text


# ---------------------------------------------------------------------------------------------- data and refusals


def test_a_structural_tag_is_a_value() -> None:
    spec = StructuralTag(TAGS, free_text=False, answer=CITY)
    copy = msgspec.msgpack.decode(msgspec.msgpack.encode(spec), type=Spec)
    assert copy == spec
    assert hash(copy) == hash(spec)
    assert spec_key(copy) == spec_key(spec)
    assert spec_key(StructuralTag(TAGS)) != spec_key(spec)


@pytest.mark.parametrize(
    ("spec", "place", "message"),
    [
        (StructuralTag(()), "/tags", "at least one"),
        (StructuralTag((Tag("<a>", CITY, "", "<b>"),)), "/tags/0/trigger", "does not start"),
        (StructuralTag((Tag("<a>", CITY, "", ""),)), "/tags/0/trigger", "does not start"),
        (StructuralTag((Tag("<a>", CITY, "\ud800", "<a>"),)), "/tags/0/end", "surrogate"),
        (StructuralTag(TAGS, free_text=False, separator="\udfff"), "/separator", "surrogate"),
        (StructuralTag((TAGS[0], Tag("ca", CITY, "", "ca"))), "/tags", "contains the trigger"),
        (
            StructuralTag((Tag("<a>", StructuralTag(TAGS), "", "<a>"),)),
            "/tags/0/content",
            "part of",
        ),
        (StructuralTag(TAGS, answer=CITY), "/answer", "instead of tags"),
        (
            StructuralTag(TAGS, free_text=False, at_least_one=True, answer=CITY),
            "/answer",
            "instead",
        ),
        (
            StructuralTag((Tag("<a>", Regex(r"(a)\1"), "", "<a>"),)),
            "/tags/0/content column 4",
            "backreference",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(
    spec: StructuralTag, place: str, message: str
) -> None:
    with pytest.raises(GrammarError, match=message) as refused:
        compile_spec(spec, bytes([1]) * 256)
    assert refused.value.place == place


def test_a_refused_content_names_its_tag_and_the_place_inside() -> None:
    schema = {"type": "object", "properties": {"to": {"type": "string", "pattern": "(?<=a)b"}}}
    tag = Tag(
        "<a>", JsonSchema(json.dumps(schema)), "", "<a>", "tool 'mail'", "tools[3].parameters"
    )
    with pytest.raises(GrammarError, match="tool 'mail'") as refused:
        compile_spec(StructuralTag((*TAGS, tag)), bytes([1]) * 256)
    assert refused.value.place == "tools[3].parameters#/properties/to/pattern"
    assert refused.value.keyword


def test_rules_of_equal_names_in_different_contents_stay_apart() -> None:
    def list_of(item: str) -> JsonSchema:
        items = '{"anyOf":[{"$ref":"#/$defs/list"},' + item + "]}"
        return JsonSchema(
            '{"$ref":"#/$defs/list","$defs":{"list":{"type":"array","items":' + items + "}}}"
        )

    tags = (
        Tag("<n>", list_of('{"const":1}'), "</>", "<n>"),
        Tag("<t>", list_of('{"const":"x"}'), "</>", "<t>"),
        Tag("<m>", list_of('{"const":1}'), "</>", "<m>"),
    )
    check(
        StructuralTag(tags, free_text=False),
        ["<n>[1,[[],1]]</>", '<t>["x",[["x"]]]</>', "<m>[1]</>", "<n>[]</><t>[]</>"],
        ['<n>["x"]</>', "<t>[[1]]</>", "<m>[[2]]</>"],
    )
