"""Several answers, a judge, the best one: candidates are drawn on forks, each is scored by how likely "yes" is, the conversation goes on with the best.

$ python examples/judge_answers.py
Why is the sky blue?
  0.70  The explanation of why the sky is blue is based on the physical process of scattering light when it enters the Earth's atmosphere
  0.48  The sky is blue because the human eye's color receptors work correctly when it's not too hot to drink
  688 of 848 prompt tokens were cached
Why do leaves turn red?
  1.11  Lakes of color can become increasingly dark as the leaves dry out and start to turn the red color
  0.77  The leaves turn red as they stop and die
  740 of 886 prompt tokens were cached
"""

import radixlm
from radixlm import State, assistant, function, gen, select, system, user
from radixlm.lang.patterns import best_of_n

QUESTIONS = ("Why is the sky blue?", "Why do leaves turn red?")


def judge(s: State) -> None:
    """Not a number that the model writes, but how much likelier "yes" is than "no"."""
    s += user("Is this answer correct and clear? Answer yes or no.")
    s += assistant(select("verdict", ["yes", "no"]))
    scores = s.get_meta("verdict").scores
    s["score"] = scores["yes"] - scores["no"]


@function
def answer(s: State, question: str) -> None:
    s += system("You explain things to children in one short sentence.") + user(question)
    candidate = assistant(gen("answer", max_tokens=40, temperature=0.9, stop=[".", "\n"]))
    best = best_of_n(s, candidate, "answer", judge, num_candidates=5)
    print(question)
    for score, text in (best.ranking[0], best.ranking[-1]):
        print(f"{score:6.2f}  {text.strip()}")
    use = s.usage()
    print(f"  {use.cached_tokens} of {use.prompt_tokens} prompt tokens were cached")


def main(backend: radixlm.Backend | radixlm.Engine) -> None:
    for question in QUESTIONS:
        answer.run(question, backend=backend, seed=3)


if __name__ == "__main__":
    with radixlm.Engine(model="smollm2-135m") as engine:
        main(engine)
