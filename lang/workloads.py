"""The workloads of `radixlm bench programs`: programs as people write them, small enough for a CPU.

Owns the programs and the items that each is run with. They follow the kinds of the SGLang paper (L. Zheng et al., "SGLang: Efficient Execution of
Structured Language Model Programs", 2024): few-shot, choosing an ending, ReAct over recorded observations, a judge that forks, tree and skeleton of
thought, JSON by a regex, chats. Knows no engine and no measurement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .function import Program, function
from .primitives.gen import gen
from .primitives.roles import assistant, system, user
from .primitives.select import select
from .state import State

if TYPE_CHECKING:
    from ..runtime.messages import TokenLogprob

RULES = "Answer in one short sentence. Be exact, be kind, and never invent a fact. "
SHOTS = "".join(
    f"Question: What is {a} plus {b}?\nAnswer: {a + b}\n\n" for a, b in zip(range(3, 23), range(20, 40), strict=True)
)  # fmt: skip
ENDINGS = (" it was cold.", " it sang.", " he slept.", " they paid.")
WORDS = ("river", "library", "bicycle", "garden", "winter", "bridge", "market", "teacher")
CHARACTER = (
    r'\{\n    "name": "[A-Z][a-z ]{2,20}",\n    "house": "(Gryffindor|Slytherin|Ravenclaw|Hufflepuff)",\n'
    r'    "blood status": "(Pure-blood|Half-blood|Muggle-born)",\n    "occupation": "(student|teacher|auror)",\n'
    r'    "wand": \{\n        "wood": "[a-z]{3,12}",\n        "length": [0-9]{1,2}\.[0-9]\n    \},\n    "alive": "(Alive|Deceased)"\n\}'
)


@function
def few_shot(s: State, question: str) -> None:
    """Twenty examples, then a question."""
    s += SHOTS + f"Question: {question}\nAnswer:" + gen("answer", max_tokens=4)


@function
def endings(s: State, start: str) -> None:
    """The likeliest of four endings, as one request."""
    s += SHOTS + f"Sentence: {start}" + select("end", ENDINGS)


@function
def endings_apart(s: State, start: str) -> None:
    """The same by four requests of one ending each, over one prefix."""
    s += SHOTS + f"Sentence: {start}"
    forks = s.fork(4)
    forks += [select("end", [ending]) for ending in ENDINGS]
    scores = [fork.get_meta("end").scores[fork["end"]] for fork in forks]
    s += ENDINGS[scores.index(max(scores))]


@function
def endings_as_prompts(s: State, start: str) -> None:
    """The same by four prompts that are scored from their first token on, which is what a completion API with `echo` does."""
    s += SHOTS + f"Sentence: {start}"
    forks = s.fork(5)
    for fork, ending in zip(forks, ("", *ENDINGS), strict=True):
        fork += ending
        fork += gen("end", max_tokens=1, prompt_logprobs=0, prompt_logprobs_start=0)
    found = [fork.get_meta("end").prompt_logprobs or () for fork in forks]
    num_before = len(found[0])
    scores = [_mean(each[num_before:]) for each in found[1:]]
    s += ENDINGS[scores.index(max(scores))]


def _mean(entries: Sequence[TokenLogprob | None]) -> float:
    values = [entry.logprob for entry in entries if entry is not None]
    return sum(values) / max(len(values), 1)


@function
def react(s: State, question: str, steps: int = 3) -> None:
    """Thoughts between observations that were recorded."""
    s += RULES + f"Question: {question}\n"
    for step in range(steps):
        s += f"Thought {step}:" + gen("thought", max_tokens=8, stop="\n")
        s += f"\nObservation {step}: The record says that entry {step} of {question} was found.\n"
    s += "Answer:" + gen("answer", max_tokens=6)


def _essay(word: str) -> str:
    """Six sentences, as short as an essay can be."""
    return (
        f"Every morning the {word} is the first thing that people here see, and the last that they speak of at night. "
        f"My grandmother said that a town without its {word} would be a house without a door. "
        "She had come by train, with one suitcase, in a year when nobody wanted to stay. "
        f"What kept her was neither work nor love: it was the {word}, and how the light fell on it. "
        "I did not understand her until I was grown, and far away, and it rained for a week. "
        f"Now I know that we do not choose a place; a {word} chooses us, and waits."
    )


def _problem(word: str, number: int) -> str:
    """A task in words, of the kind that schools set."""
    return (
        f"At the {word}, {number + 12} visitors come in the first hour and {number + 5} more in each hour after it. "
        f"A third of all visitors buy a ticket for {number + 4} coins, and the others go in free. "
        f"The keeper pays {number + 9} coins an hour for light. How many coins are left after four hours?"
    )


@function
def judge(s: State, essay: str) -> None:
    """Six judges of one essay, then a grade over all."""
    s += system(RULES) + user(f"Read this essay, then judge it. {essay}")
    sides = ("clarity", "humour", "depth", "order", "style", "truth")
    forks = s.fork(6)
    forks += [user(f"Its {side}?") + assistant(gen("verdict", max_tokens=8)) for side in sides]
    forks.join()
    s += user("; ".join(s["verdict"])) + assistant(gen("grade", max_tokens=4))


@function
def tree_of_thought(s: State, question: str) -> None:
    """Three ideas, three on each, two on each of those."""
    s += RULES + f"Problem: {question}\n"
    level = [s]
    for width in (3, 3, 2):
        forks = [each.fork(width) for each in level]
        level = [child for group in forks for child in group]
        for number, child in enumerate(level):
            child += f"Idea {number % width}:" + gen("idea", max_tokens=6)


@function
def skeleton(s: State, topic: str) -> None:
    """Points first, then each in full, side by side."""
    s += RULES + f"Three points about the {topic}:" + gen("points", max_tokens=16)
    forks = s.fork(3)
    forks += [f"\nPoint {i + 1} in full:" + gen("point", max_tokens=16) for i in range(3)]
    forks.join("concat")
    s += "\nIn short:" + gen("end", max_tokens=8)


@function
def character(s: State, name: str) -> None:
    """JSON whose shape a regex gives."""
    s += f"{name} is a character of a story. Their file:\n" + gen(
        "file", max_tokens=140, regex=CHARACTER
    )


@function
def chat(s: State, topic: str, num_tokens: int) -> None:
    """Three turns."""
    s += system(RULES)
    for turn in range(3):
        s += user(f"Tell me more of the {topic}, part {turn}.")
        s += assistant(gen("reply", max_tokens=num_tokens))


@function
def agent(s: State, kind: str, number: int) -> None:
    """Sixteen of these share four beginnings and do different things."""
    s += system(RULES + f"You are the {kind}. " + f"The {kind} knows the rules of the house. " * 4)
    s += user(f"Task {number}.") + assistant(gen("plan", max_tokens=10))
    if number % 2:
        forks = s.fork(2 + number % 3)
        forks += [
            user(f"Try {i}.") + assistant(gen("try", max_tokens=8)) for i in range(len(forks))
        ]
        forks.join()
    s += user("And then?") + assistant(gen("then", max_tokens=8) + select("done", ["yes", "no"]))


@dataclass(frozen=True)
class Workload:
    """`num_pages`: of a cache that is too small, else it fits. `others` do the same task in another way."""

    name: str
    program: Program
    items: list[dict[str, Any]]
    num_pages: int = 0
    others: Mapping[str, Program] = field(default_factory=dict[str, Program])


def workloads(scale: int) -> list[Workload]:
    """All of them; `scale` 1 is the smallest."""
    words = [WORDS[i % 8] + ("" if i < 8 else f" {i}") for i in range(4 * scale)]
    agents = [{"kind": WORDS[i % 4], "number": i} for i in range(16)]
    return [
        Workload("few-shot", few_shot, [{"question": f"What is {i} plus 2?"} for i in range(8 * scale)]),
        Workload(
            "select of 4", endings, [{"start": f"On the {word}"} for word in words],
            others={"four requests": endings_apart, "four scored prompts": endings_as_prompts},
        ),
        Workload("react replay", react, [{"question": f"Who built the {word}?"} for word in words]),
        Workload("judge, fork 6", judge, [{"essay": _essay(word)} for word in words]),
        Workload("tree of thought 3x3x2", tree_of_thought, [{"question": _problem(word, number)} for number, word in enumerate(words[: 2 * scale])]),
        Workload("skeleton of thought", skeleton, [{"topic": word} for word in words]),
        Workload("json character", character, [{"name": word.title()} for word in words[: 2 * scale]]),
        Workload("chat, short", chat, [{"topic": word, "num_tokens": 4} for word in words]),
        Workload("chat, long", chat, [{"topic": word, "num_tokens": 32} for word in words[: 2 * scale]]),
        Workload("16 mixed agents, small cache", agent, agents, num_pages=60),
    ]  # fmt: skip
