"""One-line probes of what an engine does with white space, escapes, key order, spellings of numbers, and each keyword.

A probe whose name says "bad" is refused; the others are accepted, but for those that the language documents as not its own.
"""

from __future__ import annotations

from typing import Any

import pytest
from grammar_engine import schema_constraint
from shared_data import CASES, rows_at_collection

from radixlm.errors import GrammarError

pytestmark = pytest.mark.data

# Texts that are no output, each for a reason that the front ends' README gives.
DECLINED = {
    "order b,a": "declared keys come in declared order",
    "extra key first": "additional keys come after the declared ones",
    "missing required": "not valid",
    "lone surrogate": "half a pair is no text",
    "raw newline in string": "no JSON",
    "integer 1.0": "integers have no fraction",
    "integer 1e2": "integers have no exponent",
    "integer 01": "no JSON",
    "integer -0": "zero has no minus among integers",
    "\\u0041 printable escape": "printable ASCII stands for itself",
    "enum number 1 as 1.0": "constants keep the schema's spelling",
    "enum string as \\u escape": "constants have one spelling",
    "const object key order": "constants have one spelling",
    "pattern \\d vs arabic digit": "ECMA-262: \\d is ASCII",
    "minLength counts code points": "not valid",
    "addlProps schema vs declared late": "not valid",
    "false schema property": "not valid",
    "12 newlines": "gaps are bounded",
    "40 spaces": "gaps are bounded",
    "trailing newline": "a text ends with its value",
    "trailing space": "a text ends with its value",
}  # fmt: skip
IN_ANY_ORDER = ("order b,a", "extra key first")
REFUSED = {
    "$ref self loop": "$ref",
    "unsatisfiable": "unsatisfiable",
    "uniqueItems bad": "uniqueItems",  # of integers without bounds
}
PROBES = rows_at_collection(CASES / "grammar_probes.jsonl")


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe["name"])
def test_a_probe_gets_the_documented_answer(probe: dict[str, Any]) -> None:
    name = probe["name"]
    if name in REFUSED:
        with pytest.raises(GrammarError) as caught:
            schema_constraint(probe["schema"], whitespace="flexible")
        assert caught.value.keyword == REFUSED[name], caught.value
        return
    constraint = schema_constraint(probe["schema"], whitespace="flexible")
    is_wanted = "bad" not in name and name not in DECLINED
    assert constraint.accepts(probe["text"]) == is_wanted, DECLINED.get(name)


@pytest.mark.parametrize(
    "probe", [one for one in PROBES if one["name"] in IN_ANY_ORDER], ids=lambda probe: probe["name"]
)
def test_key_order_is_free_where_that_is_asked_for(probe: dict[str, Any]) -> None:
    constraint = schema_constraint(probe["schema"], whitespace="flexible", any_order=True)
    assert constraint.accepts(probe["text"])


@pytest.mark.parametrize(
    "probe",
    [one for one in PROBES if "bad" in one["name"] and one["name"] not in REFUSED],
    ids=lambda probe: probe["name"],
)
def test_what_is_refused_stays_refused_in_any_order(probe: dict[str, Any]) -> None:
    constraint = schema_constraint(probe["schema"], whitespace="flexible", any_order=True)
    assert not constraint.accepts(probe["text"])
