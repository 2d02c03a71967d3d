"""An agent: step by step it picks a tool by likelihood, fills the arguments by their schema and sees the result, until it answers.

$ python examples/tool_agent.py
Question: What do all our bananas cost at 3 euros each?
stock: "bananas" = 11
multiply: [11,3] = 33
answer: All our bananas cost 33 euros.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

import radixlm
from radixlm import State, function, gen, select

QUESTION = "What do all our bananas cost at 3 euros each?"
EXAMPLES = """Question: How many apples do we have?
stock: "apples" = 20
answer: We have 20 apples.

Question: How much is 12 * 7?
multiply: [12,7] = 84
answer: 12 * 7 is 84.

Question: What do all our pens cost at 2 euros each?
stock: "pens" = 30
multiply: [30,2] = 60
answer: All our pens cost 60 euros.

"""
Number = Annotated[int, Field(ge=0, le=999)]
TOOLS: dict[str, tuple[Any, Any]] = {  # what the arguments are, and what is done with them
    "stock": (Literal["bananas", "oranges"], {"bananas": 11, "oranges": 7}.get),
    "multiply": (tuple[Number, Number], lambda pair: pair[0] * pair[1]),
}


@function
def agent(s: State, question: str) -> None:
    s += f"{EXAMPLES}Question: {question}\n"
    for _ in range(4):  # steps at most
        s += select("step", [*TOOLS, "answer"]) + ":"
        if s["step"] == "answer":
            break
        schema, carry_out = TOOLS[s["step"]]
        s += " " + gen("arguments", schema=schema, max_tokens=20)
        s += f" = {carry_out(s['arguments'])}\n"
    s += gen("answer", max_tokens=30, stop="\n")
    print(s.text().removeprefix(EXAMPLES))


def main(backend: radixlm.Backend | radixlm.Engine) -> None:
    agent.run(QUESTION, backend=backend)


if __name__ == "__main__":
    with radixlm.Engine(model="smollm2-135m") as engine:
        main(engine)
