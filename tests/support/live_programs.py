"""Programs that are watched while they run, and an object whose validator may refuse it."""

from __future__ import annotations

from pydantic import BaseModel, field_validator

from radixlm import (
    State,
    assistant,
    function,
    gen,
    select,
    user,
)

STORY = "Once upon a time there was a cat."


@function
def pick(s: State) -> str:
    s += user("Pick: ") + assistant(select("type", ["apple", "orange"]))
    if s["type"] == "apple":
        s += " colour " + gen("value")
    else:
        s += " shape " + gen("value")
    return s["value"]


class Cat(BaseModel):
    name: str
    age: int
    likes: list[str]

    @field_validator("age")
    @classmethod
    def _is_alive(cls, age: int) -> int:
        if age > 40:
            raise ValueError("no cat is so old")
        return age


CAT = '{ "name": "Tom Cat", "age": 12, "likes": ["to sleep", "fish"] }'


@function
def describe(s: State) -> None:
    s += gen("cat", schema=Cat)
