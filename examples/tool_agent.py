"""An agent in plain text: it thinks, picks one of our Python functions by likelihood, fills its arguments by their types and sees the result.

$ python examples/tool_agent.py
stock({"item":"bananas"}) = 11
multiply({"a":11,"b":3}) = 33
All our bananas cost 33 euros.
"""

from typing import Annotated, Literal

from pydantic import Field

import radixlm
from radixlm import State, function, gen
from radixlm.lang.patterns import react

QUESTION = "What do all our bananas cost at 3 euros each?"
EXAMPLES = """Question: How many apples do we have?
Thought: I look at the stock of apples.
Action: stock {"item":"apples"}
Observation: 20\nThought: We have 20 apples.
Action: finish\nAnswer: We have 20 apples.

Question: What do all our pens cost at 2 euros each?
Thought: I look at the stock of pens.
Action: stock {"item":"pens"}
Observation: 30\nThought: I multiply 30 pens by 2 euros.
Action: multiply {"a":30,"b":2}
Observation: 60\nThought: The pens cost 60 euros.
Action: finish\nAnswer: All our pens cost 60 euros.

"""
Number = Annotated[int, Field(ge=0, le=999)]


def stock(item: Literal["bananas", "oranges"]) -> int:
    """How many of an item we have."""
    return {"bananas": 11, "oranges": 7}[item]


def multiply(a: Number, b: Number) -> int:
    return a * b


@function
def agent(s: State, question: str) -> None:
    s += f"{EXAMPLES}Question: {question}\n"
    thought = gen("thought", max_tokens=20, stop="\n")
    for step in react(s, [stock, multiply], thought=thought, max_steps=4):
        print(f"{step.result.call} = {step.result.text}" if step.result else s["answer"].strip())


def main(backend: radixlm.Backend | radixlm.Engine) -> None:
    agent.run(QUESTION, backend=backend)


if __name__ == "__main__":
    with radixlm.Engine(model="smollm2-135m") as engine:
        main(engine)
