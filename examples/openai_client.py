"""The server answers the `openai` package: a chat as it is written, a pydantic model, a tool call.

$ radixlm serve --port 8000 &
$ python examples/openai_client.py
The capital of Italy is Rome.
hotel='Bellevue' city='Lyon' wifi='slow'
Weather {"city":"Paris"}
"""

from typing import Any, Literal

from openai import OpenAI, pydantic_function_tool
from pydantic import BaseModel, Field

MODEL = "smollm2-135m"


class Stay(BaseModel):
    """What to read from a review."""

    hotel: str = Field(max_length=20)
    city: str = Field(max_length=20)
    wifi: Literal["fast", "slow", "unknown"]


class Weather(BaseModel):
    """The weather of a city."""

    city: str


def ask(text: str) -> Any:
    return [{"role": "user", "content": text}]


def main(base_url: str = "http://127.0.0.1:8000/v1") -> None:
    chat = OpenAI(base_url=base_url, api_key="none").chat.completions

    question = ask("What is the capital of Italy? Answer in one word.")
    for chunk in chat.create(model=MODEL, messages=question, temperature=0, stream=True):
        print(chunk.choices[0].delta.content or "", end="", flush=True)

    review = ask("A review: We stayed at the Hotel Bellevue in Lyon. The wifi was slow.")
    read = chat.parse(model=MODEL, messages=review, response_format=Stay, temperature=0)
    print("\n", read.choices[0].message.parsed, sep="")

    tool: Any = {"tools": [pydantic_function_tool(Weather)], "tool_choice": "required"}
    question = ask("What is the weather in Paris?")
    answer: Any = chat.create(model=MODEL, messages=question, max_tokens=24, temperature=0, **tool)
    for call in answer.choices[0].message.tool_calls:
        print(call.function.name, call.function.arguments)


if __name__ == "__main__":
    main()
