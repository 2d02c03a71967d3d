"""Sort many texts into topics at once: the label is the likeliest choice, the examples in the prompt are computed once for all.

$ python examples/batch_classify.py
sports    2.7  The striker scored twice in the last ten minutes.
food      1.0  Bake the bread for forty minutes until it is brown.
money     3.4  The bank raised its interest rate again.
science   4.7  The telescope found a planet like the Earth.
food      3.5  Add garlic and onions to the hot oil.
sports    3.5  She won the tennis match in three sets.
money     2.4  Many people took a loan to buy a house.
science   5.9  The cells divide every twenty minutes.
2009 of 2216 prompt tokens were cached
"""

import radixlm
from radixlm import State, function, select

TOPICS = ["food", "money", "science", "sports"]
EXAMPLES = {
    "The team won the cup.": "sports",
    "Mix flour and milk.": "food",
    "Prices rose in March.": "money",
    "Atoms are very small.": "science",
}
TEXTS = [
    "The striker scored twice in the last ten minutes.",
    "Bake the bread for forty minutes until it is brown.",
    "The bank raised its interest rate again.",
    "The telescope found a planet like the Earth.",
    "Add garlic and onions to the hot oil.",
    "She won the tennis match in three sets.",
    "Many people took a loan to buy a house.",
    "The cells divide every twenty minutes.",
]


@function
def classify(s: State, text: str) -> float:
    for example, topic in EXAMPLES.items():
        s += f"Text: {example}\nTopic: {topic}\n\n"
    s += f"Text: {text}\nTopic: " + select("topic", TOPICS)
    scores = sorted(s.get_meta("topic").scores.values())
    return scores[-1] - scores[-2]  # how far ahead of the second: small means unsure


def main(backend: radixlm.Backend | radixlm.Engine) -> None:
    states = classify.run_batch([{"text": text} for text in TEXTS], backend=backend)
    for text, state in zip(TEXTS, states, strict=True):  # in order; a failure stays with its item
        print(state.error() or f"{state['topic']:8} {state.ret_value:4.1f}  {text}")
    uses = [state.usage() for state in states]
    num_prompt, num_cached = sum(u.prompt_tokens for u in uses), sum(u.cached_tokens for u in uses)
    print(f"{num_cached} of {num_prompt} prompt tokens were cached")


if __name__ == "__main__":
    with radixlm.Engine(model="smollm2-135m") as engine:
        main(engine)
