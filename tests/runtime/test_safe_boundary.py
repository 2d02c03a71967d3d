from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from text_samples import SAMPLES, odd_texts
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

from radixlm.runtime.safe_boundary import BoundaryFinder, boundary_finder
from radixlm.runtime.tokenizer_gguf import pre_tokenizer_of

BYTE_LEVEL = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
MATCHES_KEPT = pre_tokenizers.Split(
    Regex(r"\p{N}{1,3}|[^\r\n\p{L}\p{N}]?\p{L}+|\s*[\r\n]+|."), "removed", invert=True
)
STAGES: Mapping[str, Any] = {
    **{
        name: pre_tokenizer_of(name)
        for name in ("smollm", "llama-bpe", "qwen2", "tekken", "gpt-4o")
    },
    "digits first": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), GPT2]),
    "numbers first": pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=False), GPT2]
    ),
    "punctuation": pre_tokenizers.Sequence([pre_tokenizers.Punctuation("contiguous"), GPT2]),
    "matches kept": pre_tokenizers.Sequence([MATCHES_KEPT, BYTE_LEVEL]),
}


def finder_of(stage: Any) -> BoundaryFinder:
    return boundary_finder({"pre_tokenizer": json.loads(stage.__getstate__())})


FINDERS = {name: finder_of(stage) for name, stage in STAGES.items()}


def pieces(stage: Any, text: str) -> list[str]:
    return [piece for piece, _ in stage.pre_tokenize_str(text)]


@pytest.mark.parametrize("name", STAGES)
@settings(max_examples=60, deadline=None)
@given(text=odd_texts, more=odd_texts)
def test_both_sides_of_a_boundary_are_cut_alone_as_they_are_cut_together(
    name: str, text: str, more: str
) -> None:
    stage, at = STAGES[name], FINDERS[name].last_boundary(text)
    assert pieces(stage, text[:at]) + pieces(stage, text[at:] + more) == pieces(stage, text + more)


@pytest.mark.parametrize("name", STAGES)
def test_every_prefix_of_every_sample_keeps_its_cuts(name: str) -> None:
    stage = STAGES[name]
    for sample in SAMPLES.values():
        whole = pieces(stage, sample)
        for end in range(0, len(sample), 3):
            at = FINDERS[name].last_boundary(sample[:end])
            assert pieces(stage, sample[:at]) + pieces(stage, sample[at:]) == whole


@pytest.mark.parametrize("name", [name for name in STAGES if name != "matches kept"])
def test_in_prose_the_boundary_is_the_last_word_s_space(name: str) -> None:
    assert "The quick brown fox"[FINDERS[name].last_boundary("The quick brown fox") :] == " fox"


def test_a_boundary_lies_near_the_end_of_code_and_of_cjk_text() -> None:
    for text in (
        "for i in range(10):\n    print(i",
        "彼は言った。「はい」と答えた",
        "x=1;y=22;z=333",
    ):
        assert len(text) - FINDERS["smollm"].last_boundary(text) <= 6


@settings(max_examples=60, deadline=None)
@given(text=odd_texts, more=odd_texts)
def test_a_composing_normalizer_does_not_reach_over_a_boundary(text: str, more: str) -> None:
    normalizer = normalizers.NFC()
    finder = boundary_finder(
        {"normalizer": {"type": "NFC"}, "pre_tokenizer": {"type": "ByteLevel", "use_regex": True}}
    )
    at = finder.last_boundary(text)
    together = pieces(GPT2, normalizer.normalize_str(text + more))
    apart = [
        *pieces(GPT2, normalizer.normalize_str(text[:at])),
        *pieces(GPT2, normalizer.normalize_str(text[at:] + more)),
    ]
    assert together == apart


@example(text="a<thi", more="nk>")
@settings(max_examples=60, deadline=None)
@given(
    text=st.text(alphabet="<think> a1.", max_size=20),
    more=st.text(alphabet="<think> a1.", max_size=10),
)
def test_a_boundary_never_lies_inside_a_word_that_is_matched_whole(text: str, more: str) -> None:
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate("<think>a1.Ġ")}, []))
    tokenizer.pre_tokenizer = GPT2
    tokenizer.add_tokens(
        [AddedToken("<think>", normalized=False), AddedToken(". a", normalized=False)]
    )
    finder = boundary_finder(json.loads(tokenizer.to_str()))
    at = finder.last_boundary(text)

    def ids(part: str) -> list[int]:
        return tokenizer.encode(part).ids

    assert ids(text[:at]) + ids(text[at:] + more) == ids(text + more)


@pytest.mark.parametrize(
    "pipeline",
    [
        {},
        {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True}},
        {"pre_tokenizer": {"type": "Metaspace", "split": False}},
        {
            "pre_tokenizer": {
                "type": "Split",
                "pattern": {"Regex": r"(?<=a)b"},
                "behavior": "Isolated",
                "invert": False,
            }
        },
        {
            "pre_tokenizer": {
                "type": "Split",
                "pattern": {"Regex": r"\s|."},
                "behavior": "MergedWithNext",
                "invert": False,
            }
        },
        {
            "pre_tokenizer": {
                "type": "Split",
                "pattern": {"String": " "},
                "behavior": "Isolated",
                "invert": False,
            }
        },
        {
            "pre_tokenizer": {"type": "Digits", "individual_digits": True},
            "normalizer": {"type": "Strip"},
        },
        {
            "pre_tokenizer": {"type": "Digits", "individual_digits": True},
            "added_tokens": [{"content": "<x>", "special": False, "lstrip": True}],
        },
    ],
)
def test_a_pipeline_that_is_not_understood_promises_nothing(pipeline: dict[str, Any]) -> None:
    assert boundary_finder(pipeline).last_boundary("some text 12, and 3 more") == 0


def test_characters_that_unicode_moved_between_classes_are_not_trusted() -> None:
    new_emoji, new_letter = "\U0001fae8", "\U0001e900"
    assert FINDERS["smollm"].last_boundary(f"a{new_emoji}b{new_letter}") == 0
