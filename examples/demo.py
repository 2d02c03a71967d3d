"""What `make demo` shows: a program forks, shares its prefix, chooses by likelihood and fills a JSON Schema, on a real chat model."""

from typing import Literal

from msgspec.structs import astuple
from pydantic import BaseModel, Field
from rich.console import Console
from rich.table import Table

import radixlm
from radixlm import State, assistant, function, gen, select, system, user, user_begin, user_end

REVIEW = """We stayed two nights at the Hotel Bellevue in Lyon. The room was clean and quiet and the breakfast was excellent.
The staff were friendly. But the wifi was slow and the parking cost 25 euros a day."""


class Report(BaseModel):
    """What the model has to fill in, in this order."""

    hotel: str = Field(max_length=30)
    city: str = Field(max_length=20)
    nights: int = Field(ge=1, le=30)
    room: Literal["dirty", "clean"]
    wifi: Literal["fast", "slow"]


@function
def read_review(s: State, topics: list[str]) -> list[tuple[str, object, radixlm.Meta]]:
    s += system("You read hotel reviews and answer in one short sentence.")
    s += user_begin() + REVIEW + "\n\n"  # computed once, for everything below
    forks = s.fork(len(topics))
    for fork, topic in zip(forks, topics, strict=True):
        fork += f"How was the {topic}?" + user_end()
        fork += assistant(f"The {topic} was" + gen("note", max_tokens=24, stop=[".", "\n"]))
    s += "Is this review positive, negative or mixed?" + user_end()
    s += assistant("The review is " + select("mood", ["positive", "negative", "mixed"]) + ".")
    s += user("Fill in the report as JSON: hotel, city, nights, room, wifi.")
    s += assistant(gen("report", schema=Report, max_tokens=100))
    rows = [(topic, f["note"], f.get_meta("note")) for f, topic in zip(forks, topics, strict=True)]
    return [*rows, *((name, s[name], s.get_meta(name)) for name in ("mood", "report"))]


def main(backend: radixlm.Backend | radixlm.Engine) -> None:
    console = Console(highlight=False)
    state = read_review.run(["room", "breakfast", "wifi"], backend=backend)
    for message in state.messages():
        console.print(f"[bold cyan]{message['role']}[/]\n{message['content'].strip()}\n")
    table = Table("variable", "value", "prompt", "cached", "generated", "forced")
    for name, value, meta in state.ret_value:
        table.add_row(name, str(value).strip(), *map(str, astuple(meta.usage)))
    use = state.usage()
    console.print(table, f"{use.cached_tokens} of {use.prompt_tokens} prompt tokens were cached,")
    console.print(f"{use.forced_tokens} of {use.completion_tokens} output tokens from the grammar.")


if __name__ == "__main__":
    with radixlm.Engine(model="smollm2-135m") as engine:
        main(engine)
