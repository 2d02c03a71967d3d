"""A pydantic model in, an instance out: the output is valid by construction.  Run: python examples/extract_person.py"""

from __future__ import annotations

import radixlm
from pydantic import BaseModel, Field
from radixlm import State, assistant, function, gen, system, user

TEXT = (
    "Grace Hopper, born in New York in 1906, was a mathematician and a rear admiral of the US Navy."
)


class Person(BaseModel):
    """What to extract, in this order."""

    name: str = Field(max_length=40)
    birth_year: int = Field(ge=1000, le=2100)
    birth_place: str = Field(max_length=40)
    occupations: list[str] = Field(max_length=3)


@function
def extract(s: State, text: str) -> Person:
    s += system("You extract facts from texts as JSON.")
    s += user(text)
    s += assistant(gen("person", schema=Person, max_tokens=120))
    return s["person"]


def main(backend: radixlm.Backend | radixlm.Engine) -> None:
    person = extract.run(TEXT, backend=backend).ret_value
    print(
        f"{person.name}, {person.birth_place} {person.birth_year}: {', '.join(person.occupations)}"
    )


if __name__ == "__main__":
    with radixlm.Engine(model="smollm2-135m") as engine:
        main(engine)
