"""A program written for SGLang runs as it stands: only the import differs.

$ python examples/sglang_program.py
assistant 1. Run on a treadmill!. 2. Run a 5K in 20 minutes.
user      Is that good for me?
assistant It is good for you.
user      Rate it as JSON.
assistant {"stars": 1, "useful": true}
{"stars": 1, "useful": true} and good
"""

import radixlm as sgl


@sgl.function
def tips(s, topic):
    s += sgl.system("You are a helpful assistant. You answer in one short sentence.")
    s += sgl.user("Give me a tip about " + topic + ".")
    forks = s.fork(2)
    for i, f in enumerate(forks):
        f += sgl.assistant(
            "Tip " + str(i + 1) + ":" + sgl.gen("tip", max_tokens=32, stop=["\n", "."])
        )
    s += sgl.assistant("1." + forks[0]["tip"] + ". 2." + forks[1]["tip"] + ".")
    s += sgl.user("Is that good for me?")
    s += sgl.assistant("It is " + sgl.select("verdict", choices=["good", "bad"]) + " for you.")
    s += sgl.user("Rate it as JSON.")
    s += sgl.assistant(sgl.gen("rating", regex=r'\{"stars": [1-5], "useful": (true|false)\}'))


def main(backend):
    sgl.set_default_backend(backend)
    state = tips.run(topic="running", temperature=0.3, seed=1)
    for message in state.messages()[2:]:
        print(f"{message['role']:9} {message['content']}")

    state = tips.run(topic="breakfast", temperature=0, stream=True)
    for text in state.text_iter("rating"):
        print(text, end="", flush=True)
    print(" and", state["verdict"])
    sgl.set_default_backend(None)


if __name__ == "__main__":
    with sgl.Engine(model="smollm2-135m") as engine:
        main(engine)
