"""Ask three questions side by side over one shared prefix, then use the answers.

$ python examples/fork_join.py
sleep     One tip that can help you improve your sleep is to avoid heavy meals and caffeine before bed
food      One tip that can help you improve your eating habits is to start with the right kind of food
exercise  One tip that can help you improve your fitness is to start with a balanced diet and get enough sleep

Start with the right kind of food and start with a balanced diet.
"""

import radixlm
from radixlm import State, assistant, function, gen, system, user

HABITS = ("sleep", "food", "exercise")


@function
def coach(s: State) -> None:
    s += system("You are a health coach. You answer in one short sentence.")
    forks = s.fork(len(HABITS))  # the system message is computed once
    for fork, habit in zip(forks, HABITS, strict=True):
        fork += user(f"Give me one tip about {habit}.")
        fork += assistant(gen("tip", max_tokens=40, stop=[".", "\n"]))
    forks.join()  # s["tip"] is now the list of the three tips
    tips = "\n".join(f"- {tip.strip()}" for tip in s["tip"])
    s += user(f"My plan:\n{tips}\nWhich one should I start with?")
    s += assistant("Start with" + gen("plan", max_tokens=40, stop=[".", "\n"]))


def main(backend: radixlm.Backend | radixlm.Engine) -> None:
    state = coach.run(backend=backend)
    for habit, tip in zip(HABITS, state["tip"], strict=True):
        print(f"{habit:9} {tip.strip()}")
    print(f"\nStart with{state['plan']}.")


if __name__ == "__main__":
    with radixlm.Engine(model="smollm2-135m") as engine:
        main(engine)
