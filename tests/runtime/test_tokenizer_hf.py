from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from text_samples import SAMPLES, odd_texts
from tiny_vocabularies import (
    CHATML,
    SPECIALS,
    sentencepiece_metadata,
    train_byte_level,
    write_hf_folder,
)
from tokenizers import AddedToken, Regex, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend
from tokenizers.models import BPE, WordPiece
from transformers import PreTrainedTokenizerFast

from radixlm.errors import ModelError
from radixlm.runtime.model_files import resolve_model
from radixlm.runtime.tokenizer import Tokenizer, load_tokenizer

quick = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
STAGES = {
    "gpt2": GPT2,
    "digits first": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), GPT2]),
    "split": pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(SPLIT), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    ),
    "prefix space": pre_tokenizers.ByteLevel(add_prefix_space=True),
}  # fmt: skip


def without_specials(text: str) -> str:
    for spelling in SPECIALS:
        text = text.replace(spelling, "")
    return text


@pytest.fixture(scope="module", params=STAGES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    backend = train_byte_level(STAGES[request.param])
    if request.param == "split":
        backend.normalizer = normalizers.NFC()
        backend.add_tokens([AddedToken("<tool_call>", normalized=False)])
    return write_hf_folder(tmp_path_factory.mktemp("hf"), backend)


@pytest.fixture(scope="module")
def ours(folder: Path) -> Tokenizer:
    return load_tokenizer(resolve_model(str(folder)))


@pytest.fixture(scope="module")
def theirs(folder: Path) -> Any:
    return PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))


@quick
@given(odd_texts)
def test_ids_are_those_of_transformers(ours: Tokenizer, theirs: Any, text: str) -> None:
    text = without_specials(text)
    assert ours.encode(text).ids == theirs(text, add_special_tokens=False).input_ids


def test_samples_get_the_ids_that_transformers_gives(ours: Tokenizer, theirs: Any) -> None:
    for sample in SAMPLES.values():
        assert ours.encode(sample).ids == theirs(sample, add_special_tokens=False).input_ids


@quick
@given(odd_texts, odd_texts)
def test_a_text_can_be_continued_from_its_boundary(ours: Tokenizer, text: str, more: str) -> None:
    at = ours.safe_boundary(text)
    assert (
        ours.encode(text[:at]).ids + ours.encode(text[at:] + more).ids
        == ours.encode(text + more).ids
    )


@quick
@given(odd_texts)
def test_plain_text_never_yields_special_tokens(ours: Tokenizer, text: str) -> None:
    ids = ours.encode(text + "<|im_end|>").ids
    assert ours.special_token_ids.isdisjoint(ids)
    assert ours.decode(ids).endswith("<|im_end|>")


def test_a_special_spelling_in_plain_text_is_cut_like_any_other_text(
    ours: Tokenizer, folder: Path
) -> None:
    backend = Backend.from_file(str(folder / "tokenizer.json"))
    backend.encode_special_tokens = True
    for text in ("a <|im_end|> b", "<|im_start|><|im_end|>", "x<|endoftext|>"):
        assert ours.encode(text).ids == backend.encode(text, add_special_tokens=False).ids


def test_special_tokens_template_and_stop_ids_come_from_the_files_beside_it(tmp_path: Path) -> None:
    backend = train_byte_level()
    write_hf_folder(
        tmp_path,
        backend,
        config={"vocab_size": 600, "eos_token_id": 2},
        generation_config={"eos_token_id": [2, 7]},
        tokenizer_config={
            "bos_token": "<|im_start|>",
            "eos_token": {"content": "<|im_end|>"},
            "chat_template": CHATML,
        },
    )
    tokenizer = load_tokenizer(resolve_model(str(tmp_path)))
    assert tokenizer.vocab_size == 600
    assert tokenizer.eos_token_ids == (2, 7, 0)
    assert (tokenizer.bos_token_id, tokenizer.add_bos) == (1, False)
    assert tokenizer.token_bytes[7] is None, "a stop id is never text"
    assert tokenizer.special_token_ids == {0, 1, 2}
    assert tokenizer.role_begin("user")[0].special
    (tmp_path / "chat_template.jinja").write_text("file: {{ messages[0].content }}{{ tools }}")
    tokenizer = load_tokenizer(resolve_model(str(tmp_path)))
    assert tokenizer.render_chat([{"role": "user", "content": "x"}])[0].text == "file: xNone"
    assert tokenizer.template_uses_tools


def test_a_named_default_template_is_found(tmp_path: Path) -> None:
    templates = [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]
    write_hf_folder(tmp_path, train_byte_level(), tokenizer_config={"chat_template": templates})
    assert (
        load_tokenizer(resolve_model(str(tmp_path)))
        .render_chat([{"role": "user", "content": ""}])[0]
        .text
        == "d"
    )


@pytest.mark.parametrize("declared", [None, True, False])
def test_bos_is_added_as_declared_or_as_the_post_processor_does(
    tmp_path: Path, declared: bool | None
) -> None:
    backend = train_byte_level()
    backend.post_processor = processors.TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", 1)]
    )
    config = {"bos_token": "<|im_start|>"} | (
        {} if declared is None else {"add_bos_token": declared}
    )
    write_hf_folder(tmp_path, backend, tokenizer_config=config)
    assert load_tokenizer(resolve_model(str(tmp_path))).add_bos is (declared is not False)


@pytest.mark.parametrize("kind", ["prepend", "metaspace"])
def test_a_sentencepiece_tokenizer_with_either_way_of_prefixing_equals_transformers(
    kind: str, tmp_path: Path
) -> None:
    metadata = sentencepiece_metadata()
    vocabulary = {token: index for index, token in enumerate(metadata["tokenizer.ggml.tokens"])}
    merges = [("▁", "t"), ("h", "e"), ("▁t", "he"), ("t", "h"), ("i", "n")]
    backend = Backend(
        BPE(
            vocabulary | {"▁the": vocabulary["▁the"]},
            [m for m in merges if m[0] + m[1] in vocabulary],
            unk_token="<unk>",
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    if kind == "prepend":
        backend.normalizer = normalizers.Sequence(
            [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        )
    else:
        backend.pre_tokenizer = pre_tokenizers.Metaspace(
            replacement="▁", prepend_scheme="first", split=False
        )
    write_hf_folder(tmp_path, backend)
    ours = load_tokenizer(resolve_model(str(tmp_path)))
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    for text in ("the in", " the", "  x", "日本\n", "a"):
        assert ours.encode(text).ids == theirs(text, add_special_tokens=False).input_ids, text
    assert ours.decode(ours.encode("the\n日", continued=True).ids) == "the\n日"


def test_a_kind_that_does_not_say_its_bytes_is_refused_by_name(tmp_path: Path) -> None:
    write_hf_folder(tmp_path, Backend(WordPiece({"a": 0, "[UNK]": 1}, unk_token="[UNK]")))
    with pytest.raises(ModelError, match="WordPiece"):
        load_tokenizer(resolve_model(str(tmp_path)))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer.json", b"{"),
        ("tokenizer.json", b"[]"),
        ("tokenizer.json", b'{"model": {"type": "BPE"}}'),
        ("tokenizer.json", b'{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}'),
        ("tokenizer.json", b"\xff"),
        ("tokenizer_config.json", b"[" * 100_000),
        ("config.json", b"1"),
        ("chat_template.jinja", b"\xff\xfe"),
        ("chat_template.jinja", b"{% for"),
    ],
)
def test_a_damaged_file_is_refused_and_named(tmp_path: Path, name: str, content: bytes) -> None:
    write_hf_folder(tmp_path, train_byte_level())
    files = resolve_model(str(tmp_path))
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelError):
        load_tokenizer(files)


def test_ids_outside_the_vocabulary_in_a_config_are_left_out(tmp_path: Path) -> None:
    write_hf_folder(
        tmp_path,
        train_byte_level(),
        generation_config={"eos_token_id": [2, -1, 10**9, "x"]},
        config={"vocab_size": -5},
    )
    assert load_tokenizer(resolve_model(str(tmp_path))).eos_token_ids == (2, 0)


def test_a_special_word_that_the_vocabulary_holds_as_plain_text_is_cut(tmp_path: Path) -> None:
    whole = json.loads(train_byte_level().to_str())
    whole["model"]["ignore_merges"] = True
    whole["model"]["vocab"]["END"] = 500
    whole["added_tokens"].append(
        {
            "id": 500,
            "content": "END",
            "special": True,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
        }
    )
    write_hf_folder(tmp_path, train_byte_level())
    (tmp_path / "tokenizer.json").write_text(json.dumps(whole))
    tokenizer = load_tokenizer(resolve_model(str(tmp_path)))
    assert tokenizer.special_token_ids.isdisjoint(tokenizer.encode("END").ids)
    assert tokenizer.decode(tokenizer.encode("END a END b").ids) == "END a END b"
