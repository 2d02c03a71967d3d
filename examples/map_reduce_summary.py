"""Summarize a long text: each part on a fork of its own (map), then the summaries of the parts (reduce).

$ python examples/map_reduce_summary.py
- The Hotel Bellevue in Lyon was opened in 1998 by two sisters.
- The hotel is known for its breakfast.
- The sisters say that a new lift is too expensive at the moment.
- The hotel will open a small restaurant on the roof.
In one sentence: The Hotel Bellevue in Lyon is known for its breakfast.
"""

import radixlm
from radixlm import State, function, gen

EXAMPLES = """Text: The lake is clean. Many people swim in it. The path around it is broken. Next year there will be a new path.
In one sentence: Many people swim in the clean lake, and the broken path around it will be new next year.

Text: The museum was built in 1901. It shows old trains and ships. Children can drive a small train in the yard.
In one sentence: The museum shows old trains and ships.

Text: The library has ten thousand books. The library is loved for its reading room. The roof is not dry. The library will get a cafe.
In one sentence: The library is loved for its books and its reading room, the roof is not dry, and it will get a cafe.

"""
TEXT = """The Hotel Bellevue in Lyon was opened in 1998 by two sisters. It has forty rooms, most of them with a view of the river.
In 2015 a fire destroyed the kitchen, and it took a year to build a new one.

Today the hotel is known for its breakfast. Bread is baked in the house every morning, and the jam comes from the garden.
Guests often say that they come back only for the breakfast.

Not everything is perfect. The lift is old and slow, and the wifi does not reach the top floor. The sisters say that a new lift
is too expensive at the moment.

Next year the hotel will open a small restaurant on the roof. It will have twelve tables and serve food of the region.
The cook has worked in Paris for ten years."""


@function
def summarize(s: State, text: str) -> None:
    s += EXAMPLES
    parts = text.split("\n\n")
    forks = s.fork(len(parts))
    forks += [f"Text: {part}\nIn one sentence:" for part in parts]  # item i goes to fork i
    forks += gen("point", max_tokens=40, stop=[".", "\n"])
    forks.join()  # s["point"] is now the list of all points
    points = " ".join(f"{point.strip()}." for point in s["point"])
    s += f"Text: {points}\nIn one sentence:" + gen("summary", max_tokens=40, stop=[".", "\n"])


def main(backend: radixlm.Backend | radixlm.Engine) -> None:
    state = summarize.run(TEXT, backend=backend)
    for point in state["point"]:
        print(f"- {point.strip()}.")
    print(f"In one sentence: {state['summary'].strip()}.")


if __name__ == "__main__":
    with radixlm.Engine(model="smollm2-135m") as engine:
        main(engine)
