"""Ten seconds of broken and odd constraints; `tests/bench/fuzz_grammar.py` does as many minutes as one likes."""

from __future__ import annotations

import random

import pytest
from fuzz_checks import Fault, check, judged
from fuzz_driver import Finding, fuzz, shrink
from fuzz_inputs import KINDS, fuzz_spec

from radixlm.grammar.spec import JsonSchema, Regex, StructuralTag, Tag

SECONDS = 10


@pytest.mark.slow
def test_odd_constraints_are_refused_with_a_reason_or_give_valid_outputs_only() -> None:
    faults: list[Finding] = []
    for _, finding in fuzz([*KINDS], first_seed=0, seconds=SECONDS, pool=[]):
        if finding is not None:
            faults.append(shrink(finding))
            break
    assert not faults, f"{faults[0].signature}: {faults[0].detail}\n{faults[0].spec}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_case_is_the_same_constraint_everywhere(kind: str) -> None:
    assert fuzz_spec(kind, 7, []) == fuzz_spec(kind, 7, [])


def test_the_oracles_tell_right_from_wrong() -> None:
    schema = JsonSchema('{"type": "number", "multipleOf": 0.1}')
    assert judged(schema, "0.3")
    assert judged(schema, "0.35") is False
    with pytest.raises(Fault, match="no JSON"):
        judged(schema, "01")
    assert judged(Regex("(a+)+$"), "a" * 40 + "!") is None  # Python does not come to an end
    tags = StructuralTag((Tag("<t>", Regex("a*"), "</t>", "<t"),), at_most_one=True)
    assert judged(tags, "x<t>aa</t>y")
    assert judged(tags, "x<t>b</t>") is False
    assert judged(tags, "<t></t><t></t>") is False


def test_a_refused_constraint_is_no_fault() -> None:

    assert check(Regex("(a"), random.Random(0)) == "refused"
