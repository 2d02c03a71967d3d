from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from text_samples import odd_texts
from tiny_vocabularies import CHATML

from radixlm.errors import ModelError, PromptError
from radixlm.runtime.chat_messages import Shield
from radixlm.runtime.chat_template import ChatTemplate, Piece
from radixlm.runtime.template_budget import TemplateLimits

SPECIAL = (
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<s>",
    "</s>",
    "<|eot_id|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
)
VARIABLES = {"bos_token": "<s>", "eos_token": "</s>"}
DEFAULT_SYSTEM = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nDEFAULT<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
HEADERS = (
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{{ m.content }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
LAST_DIFFERS = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}{% if not (loop.last and m.role == 'assistant') %}</s>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
TEMPLATES = {
    "chatml": CHATML,
    "default system": DEFAULT_SYSTEM,
    "headers": HEADERS,
    "last differs": LAST_DIFFERS,
}
STRICT = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}"
    "<s>{{ m.role }}: {{ m.content }}</s>{% endfor %}"
)


def chat(source: str) -> ChatTemplate:
    return ChatTemplate(source, SPECIAL, VARIABLES)


def joined(pieces: list[Piece]) -> list[Piece]:
    """Neighbouring plain pieces made one, as encoding does."""
    whole: list[Piece] = []
    for piece in pieces:
        if whole and not (piece.special or whole[-1].special):
            whole[-1] = Piece(whole[-1].text + piece.text)
        elif piece.text:
            whole.append(piece)
    return whole


conversations = st.tuples(
    st.booleans(), st.lists(odd_texts.filter(bool), min_size=1, max_size=6)
).map(lambda drawn: [
    {"role": "system" if drawn[0] and i == 0 else "user" if (i - drawn[0]) % 2 == 0 else "assistant", "content": text}
    for i, text in enumerate(drawn[1])
])  # fmt: skip


@pytest.mark.parametrize("name", TEMPLATES)
@settings(max_examples=25, deadline=None)
@given(messages=conversations)
def test_role_blocks_joined_equal_the_rendering_of_the_whole(
    name: str, messages: list[dict[str, Any]]
) -> None:
    template = chat(TEMPLATES[name])
    if name == "last differs" and messages[-1]["role"] == "assistant":
        messages = [*messages, {"role": "user", "content": "more"}]
    blocks: list[Piece] = []
    for index, message in enumerate(messages):
        blocks += template.role_begin(message["role"], first=index == 0)
        blocks.append(Piece(message["content"]))
        blocks += template.role_end(message["role"])
    assert joined(blocks) == joined(template.render(messages, add_generation_prompt=False))
    if messages[-1]["role"] == "user":
        blocks += template.role_begin("assistant")
        assert joined(blocks) == joined(template.render(messages, add_generation_prompt=True))


def test_a_default_system_message_belongs_to_the_first_block_only() -> None:
    template = chat(DEFAULT_SYSTEM)
    assert "DEFAULT" in "".join(piece.text for piece in template.role_begin("user", first=True))
    assert "DEFAULT" not in "".join(piece.text for piece in template.role_begin("user"))
    assert "DEFAULT" not in "".join(
        piece.text for piece in template.role_begin("system", first=True)
    )


def test_the_default_template_renders_byte_for_byte() -> None:
    turns = [("user", "Hi"), ("assistant", "Yo"), ("user", "2?")]
    messages = [{"role": role, "content": content} for role, content in turns]
    first = "".join(piece.text for piece in chat(DEFAULT_SYSTEM).render(messages[:1]))
    whole = "".join(piece.text for piece in chat(DEFAULT_SYSTEM).render(messages))
    assert whole == (
        "<|im_start|>system\nDEFAULT<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
        "<|im_start|>assistant\nYo<|im_end|>\n<|im_start|>user\n2?<|im_end|>\n<|im_start|>assistant\n"
    )
    assert whole.startswith(first + "Yo<|im_end|>\n")


@settings(max_examples=40, deadline=None)
@given(st.lists(odd_texts, min_size=1, max_size=4))
def test_only_the_template_writes_special_tokens(texts: list[str]) -> None:
    pieces = chat(CHATML).render([{"role": "user", "content": text} for text in texts])
    assert [piece.text for piece in pieces if piece.special] == [
        "<|im_start|>",
        "<|im_end|>",
    ] * len(texts) + ["<|im_start|>"]
    plain = "".join(piece.text for piece in pieces if not piece.special)
    assert plain == "".join(f"user\n{text}\n" for text in texts) + "assistant\n"


@pytest.mark.parametrize(
    "content", ["<|im_end|>", "~0#0~ <s>", "~0#~1#<s>", "<|im_start<|im_start|>|>", "a<s><s></s>"]
)
def test_what_looks_like_a_sentinel_or_a_token_survives(content: str) -> None:
    tools = [{"name": content, "parameters": {content: ["<|eot_id|>", 1, None]}}]
    template = chat("{{ tools|tojson(ensure_ascii=true) }}{{ messages[0].content|upper }}")
    pieces = template.render([{"role": "user", "content": content}], tools)
    assert not any(piece.special for piece in pieces)
    text = "".join(piece.text for piece in pieces)
    assert text.count(content) >= 2
    assert "<|eot_id|>" in text


def test_a_text_full_of_sentinels_costs_one_look_at_it() -> None:
    # a search for each of them in turn would take hours here, and the gateway answers nobody meanwhile
    content = "<s>" + "".join(f"~{number}#" for number in range(400_000))
    shield = Shield(re.compile("<s>"), [content])
    assert shield.restore(shield.hide(content)) == content
    assert "<s>" not in shield.hide(content)


@pytest.mark.parametrize(
    ("content", "flat"),
    [
        (None, ""),
        ("x", "x"),
        ([], ""),
        ([{"type": "text", "text": "a"}, "b", {"type": "text", "text": "c"}], "abc"),
    ],
)
def test_content_reaches_the_template_as_one_string(content: Any, flat: str) -> None:
    message = {"role": "user", "content": content, "name": None}
    assert joined(chat("{{ messages[0].content + '!' }}").render([message])) == [Piece(flat + "!")]
    assert joined(chat("{{ messages[0].content + '!' }}").render([{"role": "user"}])) == [
        Piece("!")
    ]


TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
]
TOOL_TURNS = [
    {"role": "user", "content": "Weather?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "Sunny <|im_end|>"},
]


def text_of(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def test_calls_and_results_are_text_on_a_template_that_knows_no_tools() -> None:
    pieces = chat(DEFAULT_SYSTEM).render(TOOL_TURNS)
    assert text_of(pieces) == (
        "<|im_start|>system\nDEFAULT<|im_end|>\n<|im_start|>user\nWeather?<|im_end|>\n<|im_start|>assistant\n"
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\nSunny <|im_end|>\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    )
    assert Piece("<|im_end|>", special=True) in pieces
    plain = text_of([piece for piece in pieces if not piece.special])
    assert plain.count("<|im_end|>") == 1  # the user's own, as text


def test_tools_are_told_in_the_system_message_of_a_template_that_knows_none() -> None:
    template = chat(DEFAULT_SYSTEM)
    assert not template.uses_tools
    added = text_of(template.render(TOOL_TURNS, TOOLS))
    assert json.dumps(TOOLS[0]) in added
    assert "DEFAULT" not in added
    own = text_of(template.render([{"role": "system", "content": "Be kind."}, *TOOL_TURNS], TOOLS))
    assert own.startswith("<|im_start|>system\nBe kind.\n\n")
    assert own.count(json.dumps(TOOLS[0])) == 1


def test_a_second_turn_begins_with_the_first_turn_and_its_output() -> None:
    first = text_of(chat(DEFAULT_SYSTEM).render(TOOL_TURNS[:1], TOOLS))
    output = '<tool_call>\n{"name": "get_weather", "arguments": {"city":"Paris"}}\n</tool_call>'
    call = {"name": "get_weather", "arguments": '{"city":"Paris"}'}
    answered = [TOOL_TURNS[0], {"role": "assistant", "tool_calls": [{"function": call}]}]
    second = text_of(chat(DEFAULT_SYSTEM).render([*answered, TOOL_TURNS[2]], TOOLS))
    assert second.startswith(first + output + "<|im_end|>")


def test_without_a_system_role_the_first_user_message_tells_of_the_tools() -> None:
    alternating = STRICT.replace("{% if (m", "{% if tool and (m")
    for source in (
        alternating,
        "{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}",
    ):
        text = text_of(chat(source).render([{"role": "user", "content": "Weather?"}], TOOLS))
        assert json.dumps(TOOLS[0]) in text
        assert "</tool_response>.\n\nWeather?" in text


def test_a_template_that_prints_tools_gets_messages_and_tools_as_they_are() -> None:
    template = chat(
        "{% for tool in tools %}{{ tool.function.name }} {% endfor %}"
        "{{ messages[1].tool_calls[0].function.arguments.city }} {{ messages[2].role }}"
    )
    assert template.uses_tools
    assert text_of(template.render(TOOL_TURNS, TOOLS)) == "get_weather Paris tool"


def test_a_template_that_only_speaks_of_tools_does_not_use_them() -> None:
    assert not chat("{# no tools #}The tools {{ messages[0].content }}").uses_tools


@pytest.mark.parametrize(
    ("messages", "place"),
    [
        ([], "messages"),
        (["hi"], "messages[0]"),
        (
            [{"role": "user", "content": "x"}, {"role": "banana", "content": "x"}],
            "messages[1].role",
        ),
        ([{"content": "x"}], "messages[0].role"),
        ([{"role": ["user"], "content": "x"}], "messages[0].role"),
        ([{"role": "user", "content": 5}], "messages[0].content"),
        (
            [{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}],
            "messages[0].content[0]",
        ),
        ([{"role": "user", "content": "x", "extra": {"a": object()}}], "messages[0].extra.a"),
    ],
)
def test_a_wrong_message_is_named(messages: Any, place: str) -> None:
    with pytest.raises(PromptError) as refused:
        chat(CHATML).render(messages)
    assert refused.value.place == place


def test_a_message_nested_without_end_is_refused() -> None:
    nest: list[Any] = []
    nest.append(nest)
    with pytest.raises(PromptError, match="nested deeper"):
        chat(CHATML).render([{"role": "user", "content": "x", "nest": nest}])


def test_what_the_template_refuses_is_the_user_s_error_with_its_message() -> None:
    template = chat(STRICT)
    with pytest.raises(PromptError, match="System role not supported"):
        template.render([{"role": "system", "content": "S"}, {"role": "user", "content": "U"}])
    with pytest.raises(
        PromptError, match=r"no place for a 'system' message.*System role not supported"
    ):
        template.role_begin("system", first=True)
    assert joined(template.render([{"role": "user", "content": "U"}]))[1] == Piece("user: U")
    assert template.role_begin("user")[0] == Piece("<s>", special=True)


def test_an_unknown_role_has_no_block() -> None:
    with pytest.raises(PromptError, match="banana"):
        chat(CHATML).role_begin("banana")


@pytest.mark.parametrize(
    "source", ["{% for %}", "{{ 'a'|no_such_filter }}", "{% include 'x'", "x" * 10**6]
)
def test_a_template_that_cannot_be_compiled_is_the_model_s_error(source: str) -> None:
    with pytest.raises(ModelError, match="chat template cannot be used"):
        chat(source)


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages[0].nothing.more }}",
        "{{ messages + 1 }}",
        "{% include 'x' %}",
        "{{ ''.__class__.mro }}",
    ],
)
def test_a_template_that_fails_is_an_error_and_not_a_crash(source: str) -> None:
    with pytest.raises(PromptError, match="chat template failed"):
        chat(source).render([{"role": "user", "content": "x"}])


def test_a_template_bomb_is_an_error_that_says_so() -> None:
    template = ChatTemplate(
        "{% for i in range(9999) %}x{% endfor %}", SPECIAL, VARIABLES, TemplateLimits(steps=50)
    )
    with pytest.raises(PromptError, match="was stopped: more than 50 steps"):
        template.render([{"role": "user", "content": "x"}])


def test_a_template_that_drops_the_content_has_no_role_blocks() -> None:
    with pytest.raises(PromptError, match="does not write the message's content"):
        chat("<s>{{ messages|length }}").role_begin("user", first=True)
