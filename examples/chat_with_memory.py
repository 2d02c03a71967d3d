"""A chat that keeps no history, but notes: what a message tells about the user is filled into a schema and told to the model from then on.

$ python examples/chat_with_memory.py
Notes: name: Ada | Hi, my name is Ada. -> Your name is Ada.
Notes: name: Ada, pet: a dog Rex | I have a dog called Rex. -> Your dog is Rex.
Notes: name: Ada, pet: a dog Rex | What is my name? -> Your name is Ada.
Notes: name: Ada, pet: a dog Rex | What is my dog called? -> Your dog is called Rex.
"""

from typing import Any, Literal

from pydantic import BaseModel, Field

import radixlm
from radixlm import State, assistant, function, gen, user

MESSAGES = ("Hi, my name is Ada.", "I have a dog called Rex.", "What is my name?", "What is my dog called?")  # fmt: skip
NOTES = {  # examples are the best instructions for a small model
    "My name is Tom.": '{"about":"name","value":"Tom"}',
    "What is my name?": '{"about":"nothing","value":""}',
    "Where do I live?": '{"about":"nothing","value":""}',
    "I have a bird called Kiki.": '{"about":"pet","value":"a bird called Kiki"}',
    "What is my job?": '{"about":"nothing","value":""}',
    "What is my bird called?": '{"about":"nothing","value":""}',
}
ANSWERS = {
    "Notes: name: Tom, work: a bank\nWhat is my name?": "Your name is Tom.",
    "Notes: pet: a bird called Kiki\nWhat is my bird called?": "Your bird is called Kiki.",
}


class Note(BaseModel):
    """What a message says about the user."""

    about: Literal["name", "home", "pet", "work", "nothing"]
    value: str = Field(max_length=24)


@function
def by_example(s: State, examples: dict[str, str], message: str, answer: Any) -> None:
    for example, reply in examples.items():
        s += user(example) + assistant(reply)
    s += user(message) + assistant(answer)


def main(backend: radixlm.Backend | radixlm.Engine) -> None:
    memory: dict[str, str] = {}
    for message in MESSAGES:
        note = by_example.run(NOTES, message, gen("note", schema=Note), backend=backend)["note"]
        if note.about != "nothing":
            memory[note.about] = note.value
        message = f"Notes: {', '.join(map(': '.join, memory.items()))}\n{message}"
        reply = by_example.run(ANSWERS, message, gen("reply", max_tokens=24), backend=backend)
        print(message.replace("\n", " | "), "->", reply["reply"])


if __name__ == "__main__":
    with radixlm.Engine(model="smollm2-135m") as engine:
        main(engine)
