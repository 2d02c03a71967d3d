from __future__ import annotations

import pytest

from radixlm.runtime.pretoken_regex import Pattern

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def cuts(source: str, pairs: str) -> str:
    """Of the two-character words in `pairs`, those between whose characters there always is a cut."""
    pattern = Pattern.parse(source)
    assert pattern is not None
    return " ".join(pair for pair in pairs.split("/") if not pattern.may_join(pair[0], pair[1]))


def test_gpt2_cuts_between_kinds_of_characters_but_not_around_a_contraction() -> None:
    assert cuts(GPT2, "a1/1a/a./.a/a'/a /. /1 ") == "a1 1a a. .a a' a  .  1 "
    assert cuts(GPT2, "ab/12/../'s/'l/ll/re/ a/ 1/ ./  ") == ""


def test_a_place_after_white_space_is_never_a_cut_where_the_end_is_looked_at() -> None:
    assert cuts(GPT2, "\na/\t1/  /\n\n/ \n") == ""


def test_llama3_joins_one_mark_to_a_word_and_line_ends_to_marks() -> None:
    assert cuts(LLAMA3, ".a/(a/.\n/'S") == ""
    assert cuts(LLAMA3, "a1/1a/a./1./a /. /a\n/.1") == "a1 1a a. 1. a  .  a\n .1"


def test_a_bounded_repeat_joins_and_a_count_of_one_does_not() -> None:
    assert cuts(r"\p{N}{1,3}|\p{L}{1}|[^\p{N}\p{L}]{0,1}x?.", "12/ab") == "ab"


def test_text_that_nothing_matches_is_one_piece() -> None:
    assert cuts(r"\p{L}+", "a1/12") == "a1"
    assert cuts(r"\p{L}+", "11") == ""


@pytest.mark.parametrize(
    "source",
    [
        r"\p{Han}+|.",
        r"(?<=a)b",
        r"(?=\d{3})a|.",
        r"a(?=bc)|.",
        r"(?!a).",
        r"^a|.",
        r"a$|.",
        r"\ba|.",
        r"[[:alpha:]]+",
        r"[a-z&&[^x]]+",
        r"(a)\1",
        r"(?P<name>a)",
        r"a*",
        r"(a",
        r"a)",
        r"[a",
        r"\p{L",
        r"a{x}",
        "(" * 5000,
        "",
    ],
)
def test_a_regex_outside_the_dialect_promises_nothing(source: str) -> None:
    assert Pattern.parse(source) is None


@pytest.mark.parametrize(
    "source", [r"\p{N}{1,3}+|.", r"a++|.", r"a*?b|.", r"[\p{L}\p{M}]+|[a-f\-]|.", r"(?i:a|b)+|."]
)
def test_lazy_possessive_and_ranged_forms_are_in_the_dialect(source: str) -> None:
    assert Pattern.parse(source) is not None
