"""Let the model reason many times and take the answer that most attempts agree on (a question picked for which that helps).

$ python examples/self_consistency.py
A box holds 3 pens. How many pens are in 4 boxes?
one attempt:  4  (One box holds 3 pens. Two boxes hold 4 pens.)
 8 votes for 12
 6 votes for 4
 2 votes for 10
"""

from collections import Counter

import radixlm
from radixlm import State, function, gen, gen_int

QUESTION = "A box holds 3 pens. How many pens are in 4 boxes?"
EXAMPLES = """Question: Ann has 4 pens. She gets 3 more and loses 2. How many pens has she?
Reasoning: She has 4 pens. She gets 3 more, 4 + 3 = 7. She loses 2, 7 - 2 = 5.
Answer: 5

Question: A box holds 6 eggs. How many eggs are in 3 boxes?
Reasoning: One box holds 6 eggs. Three boxes hold 3 * 6 = 18 eggs.
Answer: 18

Question: Ben has 10 coins. He spends 4 and finds 1. How many coins has he?
Reasoning: He has 10 coins. He spends 4, 10 - 4 = 6. He finds 1, 6 + 1 = 7.
Answer: 7

"""


@function
def solve(s: State, question: str, num_attempts: int, temperature: float) -> Counter[int]:
    s += f"{EXAMPLES}Question: {question}\nReasoning:"
    attempts = s.fork(num_attempts)  # all that stands above is computed once
    attempts += gen("reasoning", max_tokens=32, temperature=temperature, stop="\n")
    attempts += "\nAnswer: " + gen_int("answer", minimum=0, maximum=99)
    attempts.join()  # s["answer"] is now the list of all answers
    return Counter(s["answer"])


def main(backend: radixlm.Backend | radixlm.Engine) -> None:
    print(QUESTION)
    single = solve.run(QUESTION, num_attempts=1, temperature=0.0, backend=backend)
    print(f"one attempt:  {single['answer'][0]}  ({single['reasoning'][0].strip()})")
    votes = solve.run(QUESTION, num_attempts=20, temperature=0.5, seed=2, backend=backend)
    for answer, count in votes.ret_value.most_common(3):
        print(f"{count:2} votes for {answer}")


if __name__ == "__main__":
    with radixlm.Engine(model="smollm2-135m") as engine:
        main(engine)
