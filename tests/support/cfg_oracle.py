"""Small context-free grammars as plain data: their languages by definition, and their spelling in Lark and GBNF.

    ("text", "ab")  ("any", "ab")  ("call", "r1")  ("seq", [...])  ("or", [...])  ("times", part, low, high)

The language of a grammar is the least set of texts that its rules ask for, built up round by round; nothing of the project is used.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

Part = tuple[Any, ...]
Rules = Mapping[str, Part]


def language(rules: Rules, start: str, max_length: int) -> set[str]:
    """All texts of the rule `start` with at most `max_length` characters."""
    known: dict[str, frozenset[str]] = {name: frozenset() for name in rules}
    while True:
        new = {name: frozenset(_texts(part, known, max_length)) for name, part in rules.items()}
        if new == known:
            return set(known[start])
        known = new


def _texts(part: Part, known: Mapping[str, frozenset[str]], most: int) -> set[str]:
    match part:
        case ("text", text):
            return {text} if len(text) <= most else set()
        case ("any", characters):
            return set(characters)
        case ("call", name):
            return set(known[name])
        case ("or", parts):
            return {text for one in parts for text in _texts(one, known, most)}
        case ("seq", parts):
            texts = {""}
            for one in parts:
                texts = _joined(texts, _texts(one, known, most), most)
            return texts
        case ("times", one, low, high):
            return _repeated(_texts(one, known, most), low, high, most)
        case _:
            raise AssertionError(part)


def _joined(left: set[str], right: set[str], most: int) -> set[str]:
    return {a + b for a in left for b in right if len(a) + len(b) <= most}


def _repeated(texts: set[str], low: int, high: int | None, most: int) -> set[str]:
    current = {""}
    for _ in range(low):
        current = _joined(current, texts, most)
    found = set(current)
    for _ in range(most + 1 if high is None else high - low):
        current = _joined(current, texts, most)
        found |= current
    return found


def random_rules(rng: random.Random, alphabet: str, *, max_text: int = 2) -> dict[str, Part]:
    """One to four rules r0 ... that call each other in any way; r0 is the start."""
    names = [f"r{number}" for number in range(rng.randint(1, 4))]
    rules: dict[str, Part] = {}
    for name in names:
        part = _random_part(rng, names, alphabet, 3, max_text)
        if rng.random() < 0.8:  # a way to end: without one, most grammars mean nothing
            ways = [part, _random_part(rng, names, alphabet, 2, max_text)]
            ways.append(("text", rng.choice(["", *alphabet])))
            rng.shuffle(ways)
            part = ("or", ways)
        rules[name] = part
    return rules


def _random_part(
    rng: random.Random, names: list[str], alphabet: str, depth: int, max_text: int
) -> Part:
    kind = rng.choice(["text", "any", "call", "call"] + ["seq", "or", "seq", "or", "times"] * depth)
    if kind == "text":
        size = rng.randint(min(1, max_text - 1), max_text)
        return ("text", "".join(rng.choice(alphabet) for _ in range(size)))
    if kind == "any":
        return ("any", "".join(sorted(rng.sample(alphabet, rng.randint(1, len(alphabet))))))
    if kind == "call":
        return ("call", rng.choice(names))
    below = [
        _random_part(rng, names, alphabet, depth - 1, max_text) for _ in range(rng.randint(1, 3))
    ]
    if kind != "times":
        return (kind, below)
    low = rng.randint(0, 2)
    return (
        "times",
        below[0],
        low,
        rng.choice([None, low, low + 1, low + 2]) if low else rng.choice([None, 1, 2]),
    )


def as_lark(rules: Rules) -> str:
    """The rules in Lark's notation."""
    return "\n".join(f"{name}: {_lark(part)}" for name, part in rules.items())


def _lark(part: Part) -> str:
    match part:
        case ("text", text):
            return f'"{text}"'
        case ("any", characters):
            return f"/[{characters}]/"
        case ("call", name):
            return name
        case ("seq", parts):
            return f"({' '.join(map(_lark, parts))})"
        case ("or", parts):
            return f"({' | '.join(map(_lark, parts))})"
        case ("times", one, 0, 1):
            return f"[{_lark(one)}]"
        case ("times", one, 0, None):
            return f"({_lark(one)})*"
        case ("times", one, 1, None):
            return f"({_lark(one)})+"
        case ("times", one, low, None):
            return f"({_lark(one)}){{{low},}}"
        case ("times", one, low, high):
            return f"({_lark(one)})~{low}" + ("" if low == high else f"..{high}")
        case _:
            raise AssertionError(part)


def as_gbnf(rules: Rules) -> str:
    """The rules in GBNF; `root` calls the first."""
    lines = [f"{name} ::= {_gbnf(part)}" for name, part in rules.items()]
    return "\n".join([f"root ::= {next(iter(rules))}", *lines])


def _gbnf(part: Part) -> str:
    match part:
        case ("text", text):
            return f'"{text}"'
        case ("any", characters):
            return f"[{characters}]"
        case ("call", name):
            return name
        case ("seq", parts):
            return f"({' '.join(map(_gbnf, parts))})"
        case ("or", parts):
            return f"({' | '.join(map(_gbnf, parts))})"
        case ("times", one, 0, 1):
            return f"{_gbnf(one)}?"
        case ("times", one, 0, None):
            return f"{_gbnf(one)}*"
        case ("times", one, 1, None):
            return f"{_gbnf(one)}+"
        case ("times", one, low, high):
            bounds = f"{low}" if low == high else f"{low},{'' if high is None else high}"
            return f"{_gbnf(one)}{{{bounds}}}"
        case _:
            raise AssertionError(part)
