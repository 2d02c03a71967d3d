"""Pointers and positions in JSON texts, whole or cut anywhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from radixlm.grammar.explain.json_places import open_place, parts_behind, place_of

TEXT = ' {"a": [1, {"b/c": "x]"}, []],\n "q\\"\\u0041": {"d": null}}'


@pytest.mark.parametrize(
    ("pointer", "begins"),
    [
        ("#", '{"a"'),
        ("#/a", '"a": ['),
        ("#/a/0", "1,"),
        ("#/a/1", '{"b'),
        ("#/a/1/b~1c", '"b/c"'),
        ("#/a/2", "[]]"),
        ('#/q"A', '"q'),
        ('#/q"A/d', '"d"'),
    ],
)
def test_a_pointer_leads_to_a_key_or_an_item(pointer: str, begins: str) -> None:
    at = place_of(TEXT, pointer)
    assert at is not None
    assert TEXT[at:].startswith(begins)


def test_a_pointer_to_nothing_leads_nowhere() -> None:
    assert place_of(TEXT, "#/a/3") is None
    assert place_of(TEXT, "#/b") is None


@pytest.mark.parametrize(
    ("text", "pointer", "string", "container"),
    [
        ("", "#", "", "#"),
        ("{", "#", "", "#"),
        ('{"a', "#", '"a', "#"),
        ('{"a"', "#/a", "", "#"),
        ('{"a":[', "#/a/0", "", "#/a"),
        ('{"a":["x", "y', "#/a/1", '"y', "#/a"),
        ('{"a":["x"', "#/a", "", "#/a"),
        ('{"a":[{"b":1}], "c', "#", '"c', "#"),
        ('{"a":[{"b":1}', "#/a", "", "#/a"),
    ],
)
def test_what_stands_open_at_the_end(text: str, pointer: str, string: str, container: str) -> None:
    place = open_place(text)
    assert (place.pointer, place.string_so_far, place.container) == (pointer, string, container)


def test_every_place_is_found_again() -> None:
    def walk(value: Any, pointer: str) -> None:
        assert place_of(TEXT, pointer) is not None, pointer
        parts = (
            value.items()
            if isinstance(value, dict)
            else enumerate(value)
            if isinstance(value, list)
            else ()
        )
        for key, each in parts:
            walk(each, f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}")

    walk(json.loads(TEXT), "#")


def test_parts_behind_a_position_are_those_of_one_container() -> None:
    text = '{"a":1,"b":{"c":2},"d":3}'
    assert [text[at : at + 3] for at in parts_behind(text, 7, "#")] == ['"b"', '"d"']
