"""Answers that a grammar cannot judge: a check of the program refuses them, and the model is asked again with the reason, three times at most.

$ python examples/ask_again.py
Bicycles, the most versatile and affordable.
    refused: Sugar and butter - the perfect combination.
The Double Compounding Complex.
    refused: The ocean book store, the other side of the sea, the other side of the ocean, and the other side of the sky...
    refused: The sea, ocean, ocean walk, sky smoke take it there
    refused: The sea, ocean, ocean walk, sky smoke take it there.
no slogan
"""

import radixlm
from radixlm import State, assistant, function, gen, system, user

PRODUCTS = ("a bicycle shop", "a small bakery", "a bookshop at the sea")


def fits(slogan: str) -> str | None:
    """Why a slogan is refused, None if it is fine."""
    words = slogan.strip(' ".!').split()
    if len(words) > 6:
        return f"it has {len(words)} words, at most 6 fit on the sign"
    return None if len(words) > 1 else "it is too short"


@function
def slogan(s: State, product: str) -> list[str]:
    s += system("You write short slogans.")
    s += user("A slogan for a flower shop.") + assistant("Flowers every day.")
    s += user(f"A slogan for {product}.")
    s += assistant(gen("slogan", 30, temperature=0.8, stop="\n", check=fits, max_reasks=3))
    return [attempt.text.strip() for attempt in s.get_meta("slogan").attempts]


def main(backend: radixlm.Backend | radixlm.Engine) -> None:
    items = [{"product": product} for product in PRODUCTS]
    for state in slogan.run_batch(items, backend=backend, seed=5):
        *refused, last = state.ret_value
        for text in refused:
            print(f"    refused: {text}")
        print("no slogan" if state.error() else last)


if __name__ == "__main__":
    with radixlm.Engine(model="smollm2-135m") as engine:
        main(engine)
