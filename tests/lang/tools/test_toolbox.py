from __future__ import annotations

from typing import Any

import pytest

from radixlm import Answer, OutputError, ProgramError, ScriptedBackend, State, function, gen, user
from radixlm.grammar.spec import StructuralTag
from radixlm.lang.tools import Toolbox, ToolReply, call_text, describe_tools


def search(query: str, limit: int = 3) -> str:
    """Search the web."""
    return f"{query}:{limit}"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def reply_to(answer: Any, **options: Any) -> ToolReply:
    @function
    def ask(s: State) -> ToolReply:
        s += user("go") + gen("x", tools=[search, add], **options)
        return s["x"]

    return ask.run(backend=ScriptedBackend({"x": answer})).ret_value


def test_an_output_becomes_text_and_typed_calls_that_can_be_carried_out() -> None:
    text = "Let me see.\n" + call_text("search", query="cats") + "\n" + call_text("add", a=1, b=2)
    reply = reply_to(text)
    assert reply.text == "Let me see."
    assert [(call.name, call.arguments) for call in reply] == [
        ("search", {"query": "cats"}),
        ("add", {"a": 1, "b": 2}),
    ]
    assert [call() for call in reply] == ["cats:3", 3]
    assert (len(reply), reply[1].name, reply.answer) == (2, "add", None)


def test_an_output_without_calls_is_its_text() -> None:
    reply = reply_to("Hello.")
    assert not reply
    assert reply.answer == reply.text == "Hello."


def test_a_constraint_holds_for_the_answer_without_calls() -> None:
    assert reply_to("42", schema=int).answer == 42
    assert reply_to(call_text("add", a=1, b=2), schema=int)[0]() == 3
    with pytest.raises(ProgramError, match="no place for another constraint"):
        gen("x", tools=[add], tool_choice="required", schema=int)


@pytest.mark.parametrize(
    ("choice", "at_least_one", "at_most_one", "names"),
    [
        ("auto", False, False, {"search", "add"}),
        ("required", True, False, {"search", "add"}),
        (add, True, True, {"add"}),
        ("search", True, True, {"search"}),
    ],
)
def test_the_choice_decides_what_may_be_called(
    choice: Any, at_least_one: bool, at_most_one: bool, names: set[str]
) -> None:
    spec = Toolbox([search, add]).constraint(choice)
    assert isinstance(spec, StructuralTag)
    assert (spec.at_least_one, spec.at_most_one) == (at_least_one, at_most_one)
    assert {tag.name.split("'")[1] for tag in spec.tags} == names
    single = Toolbox([search, add]).constraint(choice, parallel=False)
    assert isinstance(single, StructuralTag)
    assert single.at_most_one


def test_with_none_the_output_is_text_that_holds_no_call() -> None:
    assert reply_to("no call", tool_choice="none").text == "no call"
    with pytest.raises(ProgramError, match="breaks"):
        reply_to(call_text("add", a=1, b=2), tool_choice="none")


@pytest.mark.parametrize(
    ("tools", "options", "place"),
    [
        ([], {}, "tools"),
        ("add", {}, "tools"),
        ([add, add], {}, "tools[1].function.name"),
        ([add], {"tool_choice": "multiply"}, "tool_choice"),
        ([add], {"tool_choice": search}, "tool_choice"),
    ],
)
def test_wrong_tools_are_refused_where_they_are_given(
    tools: Any, options: dict[str, Any], place: str
) -> None:
    with pytest.raises(ProgramError) as caught:
        gen("x", tools=tools, **options)
    assert caught.value.place == place


def test_a_call_that_was_cut_raises_when_it_is_read() -> None:
    with pytest.raises(OutputError, match="cut by max_tokens"):
        reply_to(Answer('<tool_call>\n{"name": "add", "arguments": {"a"', "length"))


@pytest.mark.parametrize(
    "text",
    [
        call_text("divide", a=1),
        '<tool_call>\n{"name": "add", "arguments": {"a": }}\n</tool_call>',
        '<tool_call>\n{"name": "add"',
    ],
)
def test_a_script_cannot_show_calls_that_the_engine_would_not_write(text: str) -> None:
    with pytest.raises(ProgramError, match="breaks"):
        reply_to(text)


def test_several_outputs_are_several_replies() -> None:
    first, second = reply_to((call_text("add", a=1, b=2), "no"), n=2)
    assert (len(first), second.answer) == (1, "no")


def test_the_description_names_every_tool_and_its_parameters() -> None:
    text = describe_tools([search, add])
    assert '"name": "search", "description": "Search the web."' in text
    assert '"required": ["a", "b"]' in text
    assert "<tool_call>" in text
