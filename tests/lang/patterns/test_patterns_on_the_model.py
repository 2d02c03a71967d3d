"""Every pattern once on the embedded model: what it gives has its type and its place in the text, whatever so small a model says."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

import radixlm
from radixlm import State, assistant, function, gen, gen_int, system, user
from radixlm.lang.patterns import (
    best_of_n,
    branch_solve_merge,
    map_reduce,
    react,
    retry_until_valid,
    self_consistency,
    skeleton_of_thought,
    split_text,
    thinking,
    tree_of_thought,
)

pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(300)]

TEXT = "The lake is clean. Many people swim in it.\n\nThe path around it is broken.\n\nThere will be a new one."
Points = Annotated[list[Annotated[str, Field(max_length=20)]], Field(min_length=2, max_length=3)]
SCORE = user("From 1 to 9, how good is that?") + assistant(gen_int("score", minimum=1, maximum=9))


def say(name: str, num_tokens: int = 16) -> Any:
    return assistant(gen(name, max_tokens=num_tokens, temperature=0.8, stop="\n"))


def stock(item: Literal["pens", "cups"]) -> int:
    """How many we have."""
    return {"pens": 30, "cups": 4}[item]


def consistency(s: State) -> None:
    s += user("What is 3 * 4?")
    vote = self_consistency(
        s, assistant(gen_int("n", minimum=0, maximum=99, temperature=0.8)), "n", num_attempts=5
    )
    assert vote.counts.total() == 5
    assert s["n"] == vote.answer


def best(s: State) -> None:
    s += user("Greet me.")
    judged = best_of_n(s, say("text"), "text", SCORE, num_candidates=3)
    assert len(judged.ranking) == 3
    assert 1 <= judged.score <= 9


def merge(s: State) -> None:
    s += user("Name parts of a house.")
    parts = assistant(gen("parts", schema=Points, max_tokens=60))
    solved = branch_solve_merge(
        s, parts, "parts", lambda p: user(f"What is a {p}?") + say("d"), "d",
        lambda found: user(" ".join(found)) + say("all"),
    )  # fmt: skip
    assert len(solved) == len(s["parts"])


def skeleton(s: State) -> None:
    s += user("Outline a text about sleep.")
    outline = assistant(gen("points", schema=Points, max_tokens=60))
    texts = skeleton_of_thought(s, outline, "points", lambda p: user(p) + say("t"), "t")
    assert len(texts) == len(s["points"])


def tree(s: State) -> None:
    s += user("How do I make tea, step by step?")
    kept = tree_of_thought(
        s, lambda depth: assistant(f"{depth + 1}." + gen("step", max_tokens=10, temperature=0.8)), SCORE,
        "score", depth=2, num_ways=2, num_kept=2,
    )  # fmt: skip
    assert len(kept) == 2
    assert len(kept[0].states) == 2


def reduce(s: State) -> None:
    s += system("You summarize.")
    note = map_reduce(
        s, split_text(TEXT, 40), lambda p: user(p) + say("note"), "note",
        lambda notes: user("\n".join(notes)) + say("note"), num_joined=2,
    )  # fmt: skip
    assert isinstance(note, str)


def act(s: State) -> None:
    s += 'Question: How many cups?\nThought: I look.\nAction: stock {"item":"cups"}\nObservation: 4\nThought: I know.\nAction: finish\nAnswer: 4\n\nQuestion: How many pens?\n'
    steps = react(s, [stock], max_steps=3)
    assert 1 <= len(steps) <= 3
    assert s["answer"]


def retry(s: State) -> None:
    s += user("Say a number.")
    number = retry_until_valid(
        s, assistant(gen_int("n", minimum=0, maximum=99, temperature=1.5)), "n",
        lambda n: n > 3, max_attempts=20, num_at_once=2,
    )  # fmt: skip
    assert number > 3


def think(s: State) -> None:
    answer = gen_int("n", minimum=0, maximum=99)
    s += user("What is 2 + 3?") + assistant(thinking(answer, max_thinking_tokens=12))
    assert s["thinking"]
    assert 0 <= s["n"] <= 99


@pytest.mark.parametrize(
    "body", [consistency, best, merge, skeleton, tree, reduce, act, retry, think]
)
def test_a_pattern_runs_on_the_embedded_model(body: Any, engine: radixlm.Engine) -> None:
    state = function(body).run(backend=engine, seed=4)
    assert state.error() is None
    assert state.usage().cached_tokens > 0
