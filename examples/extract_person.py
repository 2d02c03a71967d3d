"""A pydantic model in, an instance out: the output is valid by construction.

$ python examples/extract_person.py
Maria Lopez, 34, Madrid: chess, hiking
"""

from pydantic import BaseModel, Field

import radixlm
from radixlm import State, assistant, function, gen, system, user

TEXT = "Maria Lopez is 34 years old and lives in Madrid. She likes chess and hiking."


class Person(BaseModel):
    """What to extract, in this order."""

    name: str = Field(max_length=40)
    age: int = Field(ge=0, le=120)
    city: str = Field(max_length=30)
    hobbies: list[str] = Field(min_length=1, max_length=3)


@function
def extract(s: State, text: str) -> Person:
    s += system("You extract facts from texts as JSON.")
    s += user(text)
    s += assistant(gen("person", schema=Person, max_tokens=120))
    return s["person"]


def main(backend: radixlm.Backend | radixlm.Engine) -> None:
    person = extract.run(TEXT, backend=backend).ret_value
    print(f"{person.name}, {person.age}, {person.city}: {', '.join(person.hobbies)}")


if __name__ == "__main__":
    with radixlm.Engine(model="smollm2-135m") as engine:
        main(engine)
