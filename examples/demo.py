"""What `make demo` shows: a program forks, shares its prefix, chooses by likelihood and fills a JSON Schema, on a real chat model."""

from __future__ import annotations

import radixlm
from pydantic import BaseModel, Field
from radixlm import State, assistant, function, gen, select, system, user, user_begin, user_end
from rich.console import Console
from rich.table import Table

REVIEW = """I bought these headphones for the train. The sound is warm and the battery lasts all week. But the left ear
pad came off after ten days, and support took a month to answer. For the price I would still take them again."""
TOPICS = ("the sound", "the battery", "the support")


class Report(BaseModel):
    """What the model has to fill in, in this order."""

    product: str = Field(max_length=30)
    stars: int = Field(ge=1, le=5)
    broken_part: str = Field(max_length=30)
    would_buy_again: bool


@function
def read_review(s: State, review: str) -> list[tuple[str, object, radixlm.Meta]]:
    s += system("You read product reviews and answer in a few words.")
    s += user_begin() + f"Review:\n{review}\n\n"  # computed once, for everything below
    forks = s.fork(len(TOPICS))
    for fork, topic in zip(forks, TOPICS, strict=True):
        fork += f"What does the review say about {topic}?" + user_end()
        fork += assistant(gen("note", max_tokens=30, stop="\n"))
    s += "Is the review positive, negative or mixed?" + user_end()
    s += assistant("The review is " + select("mood", ["positive", "negative", "mixed"]) + ".")
    s += user("Fill in the report as JSON.")
    s += assistant(gen("report", schema=Report, max_tokens=100))
    rows = [(topic, f["note"], f.get_meta("note")) for f, topic in zip(forks, TOPICS, strict=True)]
    return [*rows, *((name, s[name], s.get_meta(name)) for name in ("mood", "report"))]


def main(backend: radixlm.Backend | radixlm.Engine) -> None:
    console = Console()
    state = read_review.run(REVIEW, backend=backend)
    for message in state.messages():
        console.print(f"[bold cyan]{message['role']}[/] {message['content']}\n", highlight=False)
    table = Table(
        "step", "value", "prompt", "cached", "generated", "forced", title="variables and tokens"
    )
    for name, value, meta in state.ret_value:
        use = meta.usage
        counts = (use.prompt_tokens, use.cached_tokens, use.completion_tokens, use.forced_tokens)
        table.add_row(name, str(value).strip(), *map(str, counts))
    console.print(table)
    use = state.usage()
    share = use.cached_tokens / max(use.prompt_tokens, 1)
    console.print(f"{share:.0%} of {use.prompt_tokens} prompt tokens came from the cache.")


if __name__ == "__main__":
    with radixlm.Engine(model="smollm2-135m") as engine:
        main(engine)
