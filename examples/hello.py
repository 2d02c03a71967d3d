"""One question, one answer.

$ python examples/hello.py
Ada, welcome to the world of the digital realm.
"""

import radixlm
from radixlm import State, assistant, function, gen, system, user


@function
def hello(s: State, name: str) -> None:
    s += system("You are a friendly assistant.")
    s += user(f"Write one short sentence to welcome {name}.")
    s += assistant(gen("greeting", max_tokens=40))


def main(backend: radixlm.Backend | radixlm.Engine) -> None:
    state = hello.run("Ada", backend=backend)
    print(state["greeting"])


if __name__ == "__main__":
    with radixlm.Engine(model="smollm2-135m") as engine:
        main(engine)
