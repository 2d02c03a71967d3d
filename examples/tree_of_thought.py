"""Search a tree of thoughts: every line of thought is continued in all ways, and only the most plausible ones are kept.

A thought is the next step of a plan, its value how likely the model finds it. All lines share their beginnings, so that most of the
tree is computed once.

$ python examples/tree_of_thought.py
keeping 1, value -4.8: Boil the water. Pour the hot water over the tea bag. Put a tea bag into the cup. Drink the tea.
  404 of 518 prompt tokens were cached
keeping 3, value -4.5: Boil the water. Put a tea bag into the cup. Pour the hot water over the tea bag. Drink the tea.
  1062 of 1230 prompt tokens were cached
"""

import radixlm
from radixlm import State, assistant_begin, function, select, system, user

GOAL = "How do I make a cup of tea?"
STEPS = (
    "Drink the tea.",
    "Boil the water.",
    "Pour the hot water over the tea bag.",
    "Put a tea bag into the cup.",
)


@function
def plan(s: State, width: int) -> tuple[float, list[str]]:
    s += system("You describe how things are done, step by step.") + user(GOAL) + assistant_begin()
    lines = [(0.0, list[str](), s)]  # the value of each line of thought, its steps, its branch
    for number in range(1, len(STEPS) + 1):
        found: list[tuple[float, list[str], State]] = []
        for value, steps, branch in lines:
            trial = branch.copy()
            trial += f"{number}. " + select("next", [step for step in STEPS if step not in steps])
            for step, score in trial.get_meta("next").scores.items():
                found.append((value + score, [*steps, step], branch))
        lines = []
        for value, steps, parent in sorted(found, key=lambda line: -line[0])[:width]:
            branch = parent.copy()  # two of the kept lines may have the same parent
            branch += f"{number}. {steps[-1]}\n"
            lines.append((value, steps, branch))
    return lines[0][:2]


def main(backend: radixlm.Backend | radixlm.Engine) -> None:
    for width in (1, 3):
        state = plan.run(width, backend=backend)
        value, steps = state.ret_value
        use = state.usage()
        print(f"keeping {width}, value {value:.1f}: {' '.join(steps)}")
        print(f"  {use.cached_tokens} of {use.prompt_tokens} prompt tokens were cached")


if __name__ == "__main__":
    with radixlm.Engine(model="smollm2-135m") as engine:
        main(engine)
