"""Random context-free grammars in Lark and GBNF against their language by definition, every text up to a length."""

from __future__ import annotations

import random
from itertools import product

import pytest
from cfg_checks import accepted_texts
from cfg_oracle import as_gbnf, as_lark, language, random_rules

from radixlm.grammar.spec import Gbnf, Lark

NUM_SEEDS = 60


@pytest.mark.parametrize("seed", range(NUM_SEEDS))
def test_both_notations_mean_what_the_rules_say(seed: int) -> None:
    rules = random_rules(random.Random(seed), "ab")
    wanted = language(rules, "r0", 6)
    assert accepted_texts(Lark(as_lark(rules), "r0"), "ab", 6) == wanted, as_lark(rules)
    assert accepted_texts(Gbnf(as_gbnf(rules)), "ab", 6) == wanted, as_gbnf(rules)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("is_once", [False, True])
def test_ignored_text_stands_between_any_two_terminals_and_at_both_ends(
    seed: int, is_once: bool
) -> None:
    rules = random_rules(random.Random(1000 + seed), "ab", max_text=1)
    bound = '%llguidance {"skip_repetition": "once"}\n' if is_once else ""
    spec = Lark(f'{bound}%ignore "c"\n{as_lark(rules)}', "r0")
    plain = language(rules, "r0", 5)
    texts = ("".join(text) for size in range(6) for text in product("abc", repeat=size))
    wanted = {t for t in texts if t.replace("c", "") in plain and not (is_once and "cc" in t)}
    assert accepted_texts(spec, "abc", 5) == wanted, spec.text


def test_the_random_grammars_are_of_all_kinds() -> None:
    sizes = [len(language(random_rules(random.Random(s), "ab"), "r0", 6)) for s in range(NUM_SEEDS)]
    assert sum(size == 0 for size in sizes) >= 3
    assert sum(size > 60 for size in sizes) >= 10
    assert sum(1 <= size <= 60 for size in sizes) >= 10
