"""Tools and agents on the embedded model: calls are valid by construction, whatever so small a model wants."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

import radixlm
from radixlm import State, assistant, function, gen, system, user
from radixlm.lang.agent import agent_loop
from radixlm.lang.tools import describe_tools

pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(300)]


class Place(BaseModel):
    city: str = Field(max_length=20)
    country: Literal["France", "Italy"]


def weather(place: Place, days: Annotated[int, Field(ge=1, le=7)] = 1) -> str:
    """The weather of a place."""
    return f"sunny in {place.city} for {days} days"


async def add(a: Annotated[int, Field(ge=0, le=99)], b: Annotated[int, Field(ge=0, le=99)]) -> int:
    """Add two numbers."""
    return a + b


TOOLS = [weather, add]


def test_calls_are_valid_and_typed(engine: radixlm.Engine) -> None:
    @function
    def ask(s: State, question: str, choice: Any) -> Any:
        s += system(describe_tools(TOOLS)) + user(question)
        s += assistant(gen("x", tools=TOOLS, tool_choice=choice, max_tokens=90))
        return s["x"]

    items = [
        {"question": "What is the weather in Paris, France?", "choice": weather},
        {"question": "What is 12 plus 30?", "choice": add},
        {"question": "What is 12 plus 30?", "choice": "required"},
    ]
    first, second, third = (each.ret_value for each in ask.run_batch(items, backend=engine))
    assert isinstance(first[0].arguments["place"], Place)
    assert first[0]().startswith("sunny in")
    assert 0 <= asyncio.run(second[0]()) <= 198
    assert {call.name for call in third} <= {"weather", "add"}
    assert len(third) >= 1


def test_an_agent_calls_sees_the_result_and_answers(engine: radixlm.Engine) -> None:
    @function
    def ask(s: State) -> None:
        s += system(describe_tools([weather])) + user("What is the weather in Paris, France?")
        s += agent_loop("answer", [weather], max_turns=2, tool_choice="required", max_tokens=90,
                        parallel_tool_calls=False)  # fmt: skip

    state = ask.run(backend=engine)
    turns = state["answer_turns"]
    assert [len(turn.results) for turn in turns] == [1, 0]
    assert turns[0].results[0].error is None
    assert state["answer"].strip()
    assert "<tool_call>" not in state["answer"]
    assert [m["role"] for m in state.messages()] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
    ]
