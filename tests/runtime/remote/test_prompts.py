"""A branch as one text, as chat messages, as segments."""

from __future__ import annotations

import pytest

from radixlm.errors import ProgramError
from radixlm.runtime import messages as m
from radixlm.runtime.remote.prompts import (
    Said,
    conversation,
    has_roles,
    plain_text,
    segments_of,
)


def role(name: str, *inner: m.Text | Said, is_open: bool = False) -> list[object]:
    return [m.RoleBegin(name), *inner, *([] if is_open else [m.RoleEnd(name)])]


def said(text: str) -> Said:
    return Said(text, (m.Ids((7, 8)),))


def test_roles_are_messages_and_the_open_one_is_the_beginning_of_the_answer() -> None:
    pieces = [
        *role("system", m.Text("Be brief.")),
        *role("user", m.Text("A"), m.Text("B")),
        *role("assistant", m.Text("It "), said("is"), is_open=True),
    ]
    talk = conversation(pieces, "it")  # type: ignore[arg-type]
    assert talk.messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "AB"},
    ]
    assert talk.prefix == "It is"


def test_text_outside_roles_is_the_users_and_results_are_the_assistants() -> None:
    talk = conversation([m.Text("Q: "), m.Text("x"), said("y"), m.Text("\nQ: "), m.Text("z")], "it")
    assert [(each["role"], each["content"]) for each in talk.messages] == [
        ("user", "Q: x"),
        ("assistant", "y"),
        ("user", "\nQ: z"),
    ]
    assert talk.prefix == ""


def test_white_space_alone_is_no_message() -> None:
    pieces = [m.Text("\n"), *role("user", m.Text("A")), m.Text("\n\n"), *role("user", m.Text("B"))]
    talk = conversation(pieces, "it")  # type: ignore[arg-type]
    assert [each["content"] for each in talk.messages] == ["A", "B"]


def test_whole_conversations_are_taken_as_they_are() -> None:
    chat = m.Chat(({"role": "user", "content": "A"},))
    assert conversation([chat], "it").messages == [{"role": "user", "content": "A"}]
    assert has_roles([chat])
    assert not has_roles([m.Text("x")])


def test_a_result_in_another_role_is_refused() -> None:
    with pytest.raises(ProgramError, match="stands in the role 'user'"):
        conversation([m.RoleBegin("user")], "it")


def test_ids_are_refused_where_only_text_goes() -> None:
    for read in (conversation, plain_text):
        with pytest.raises(ProgramError, match="takes no token ids") as raised:
            read([m.Ids((1,))], "it")
        assert raised.value.place == "token_ids"


def test_roles_are_refused_in_plain_text() -> None:
    assert plain_text([m.Text("a"), said("b")], "it") == "ab"
    with pytest.raises(ProgramError, match="knows no chat roles"):
        plain_text([m.RoleBegin("user")], "it")


def test_segments_keep_the_ids_and_join_texts() -> None:
    pieces = [m.Text("a"), m.Text("b"), said("c"), Said("d", (m.Text("d"),)), m.Text("e")]
    assert segments_of(pieces) == (m.Text("ab"), m.Ids((7, 8)), m.Text("de"))
