"""Ten thousand choices: from the options to the first mask, by kind of text, in processor time. Wanted: compiled in less than 50 ms.

Run: .venv/bin/python tests/bench/bench_choices.py [--options N] [--model NAME] [--json]

The way is the whole one of a request: front end and compile in the worker, the program as bytes to the engine, loaded there, first mask.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import time
from collections.abc import Callable

import numpy as np

from radixlm.grammar import matching
from radixlm.grammar.compiler import compile_spec
from radixlm.grammar.program import GrammarProgram
from radixlm.grammar.spec import Choice
from radixlm.grammar.vocabulary import Vocabulary
from radixlm.runtime.model_files import resolve_model
from radixlm.runtime.tokenizer import load_tokenizer

REPEATS = 5
STEPS = ("compile", "to bytes", "load", "first mask")
_SYLLABLES = ["ba", "bi", "bo", "da", "de", "di", "fa", "fe", "ga", "go", "ha", "he", "hi", "ka", "ke", "la", "le", "li", "lo", "ma", "me", "mi", "na", "ne", "no", "pa", "re", "ri", "ro", "sa", "se", "si", "ta", "te", "ti", "to", "ve", "we", "ya"]  # fmt: skip


def _phrase(rng: random.Random, number: int) -> str:
    words = ("".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4))) for _ in range(rng.randint(1, 4)))  # fmt: skip
    return f"{' '.join(words).capitalize()} {number % 7}"


def _random_text(rng: random.Random, number: int) -> str:
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz ", k=40))


def _many_alphabets(rng: random.Random, number: int) -> str:
    points = (rng.choice((rng.randint(0x4E00, 0x9FFF), rng.randint(0x430, 0x44F))) for _ in range(rng.randint(2, 8)))  # fmt: skip
    return "".join(map(chr, points))


KINDS: dict[str, Callable[[random.Random, int], str]] = {
    "phrases": _phrase,
    "near-duplicates": lambda rng, number: f"The customer number {number * 7919 % 100_000:05d} of the northern region has paid",
    "random texts of 40": _random_text,
    "other alphabets": _many_alphabets,
}  # fmt: skip


def times_ms(options: tuple[str, ...], vocabulary: Vocabulary) -> list[float]:
    """Processor time of each step."""
    row = np.zeros((vocabulary.vocab_size + 31) // 32, dtype=np.uint32)
    marks = [time.thread_time()]
    program = compile_spec(Choice(options), vocabulary.alphabet)
    marks.append(time.thread_time())
    data = program.to_bytes()
    marks.append(time.thread_time())
    loaded = matching.masks_of(GrammarProgram.from_bytes(data), vocabulary)
    marks.append(time.thread_time())
    matching.matcher_of(loaded).fill_mask(row)
    marks.append(time.thread_time())
    return [1000 * (after - before) for before, after in itertools.pairwise(marks)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--options", type=int, default=10_000)
    parser.add_argument("--model", default="smollm2-135m", help="whose vocabulary to take")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    facts = load_tokenizer(resolve_model(options.model))
    vocabulary = Vocabulary(facts.token_bytes, facts.eos_token_ids)
    found: dict[str, dict[str, float]] = {}
    for name, make in KINDS.items():
        rng = random.Random(1)
        texts = tuple({make(rng, number): None for number in range(options.options)})
        runs = [times_ms(texts, vocabulary) for _ in range(REPEATS)]
        found[name] = dict(zip(STEPS, map(statistics.median, zip(*runs, strict=True)), strict=True))
        found[name]["together"] = statistics.median(map(sum, runs))
    if options.json:
        print(json.dumps(found))
        return
    print(
        f"{options.options} options, ms" + "".join(f"{name:>12}" for name in (*STEPS, "together"))
    )
    for name, row in found.items():
        print(f"{name:<20}" + "".join(f"{value:>12.1f}" for value in row.values()))


if __name__ == "__main__":
    main()
