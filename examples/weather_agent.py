"""Tool calls in a chat: the model is told of Python functions, its calls are valid by construction, and it answers with their results.

$ python examples/weather_agent.py
weather({"city":"Paris"}) = sunny, 21 degrees -> The weather in Paris is sunny, with a temperature of 21 degrees.
local_time({"city":"Rome"}) = nine in the morning -> nine in the morning
"""

from typing import Literal

import radixlm
from radixlm import State, function, system, user
from radixlm.lang.agent import agent_loop
from radixlm.lang.tools import describe_tools

QUESTIONS = ("What is the weather in Paris?", "Tell me the local time in Rome.")
TASK = "You are a helpful assistant with tools. Answer in a sentence."
City = Literal["Paris", "Rome", "Oslo"]


def weather(city: City) -> str:
    """The weather of a city."""
    return {"Paris": "sunny, 21 degrees", "Rome": "rain, 17 degrees", "Oslo": "snow"}[city]


async def local_time(city: City) -> str:  # async tools are fine: other programs go on meanwhile
    """What time it is in a city."""
    return "nine in the morning" if city == "Rome" else "eight in the evening"


TOOLS = [weather, local_time]


@function
def ask(s: State, question: str) -> list[str]:
    s += system(f"{TASK}\n\n{describe_tools(TOOLS)}") + user(question)
    s += agent_loop(
        "answer",
        TOOLS,
        max_turns=2,  # in the last one it has to answer
        tool_choice="required",  # for the first: a model of this size would rather guess
        parallel_tool_calls=False,
        max_tokens=40,
    )
    return [f"{each.call} = {each.text}" for turn in s["answer_turns"] for each in turn.results]


def main(backend: radixlm.Backend | radixlm.Engine) -> None:
    for state in ask.run_batch([{"question": each} for each in QUESTIONS], backend=backend):
        print(*state.ret_value, f"-> {state['answer']}")


if __name__ == "__main__":
    with radixlm.Engine(model="smollm2-135m") as engine:
        main(engine)
