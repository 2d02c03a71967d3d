"""Small tokenizers for tests: byte-level and SentencePiece-like, as GGUF files and as Hugging Face folders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import tokenizers
from text_samples import SAMPLES
from tokenizers import decoders, models, pre_tokenizers, trainers

from radixlm.runtime.tokenizer_parts import byte_alphabet

SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
CORPUS = [
    *SAMPLES.values(),
    "the theory then there thesis " * 5,
    "print(value) # comment\n    return value\n" * 3,
    "<| |> <|a|> <b|>" * 9,
]


def train_byte_level(pre_tokenizer: Any = None, vocab_size: int = 500) -> tokenizers.Tokenizer:
    """A byte-level BPE trained on the sample texts; all 256 bytes are in its vocabulary."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer or pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(
            vocab_size=vocab_size,
            initial_alphabet=sorted(byte_alphabet()),
            special_tokens=list(SPECIALS),
            show_progress=False,
        ),
    )
    return tokenizer


def gguf_metadata(
    tokenizer: tokenizers.Tokenizer, pre: str, *, without: Sequence[str] = ()
) -> dict[str, Any]:
    """What a converter writes of a byte-level tokenizer; tokens in `without` are left out, with the merges that need them."""
    model = json.loads(tokenizer.to_str())["model"]
    tokens = [
        token for token in sorted(model["vocab"], key=model["vocab"].get) if token not in without
    ]
    known = set(tokens)
    merges = [pair for pair in model["merges"] if {*pair, "".join(pair)} <= known]
    return {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3 if token in SPECIALS else 1 for token in tokens],
        "tokenizer.ggml.merges": [" ".join(pair) for pair in merges],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.padding_token_id": 0,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": CHATML,
    }


def sentencepiece_metadata() -> dict[str, Any]:
    """A small SentencePiece vocabulary: control tokens, 256 bytes, words with scores, no merges."""
    words = ["▁", "▁▁", "▁the", "the", "▁th", "th", "he", "▁t", "in", "er", "on", "re", "an", "▁a"]
    letters = sorted(
        {
            character
            for text in CORPUS
            for character in text
            if character.isascii() and character.isprintable()
        }
        - {" "}
    )
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *words, *letters]
    num_plain = len(words) + len(letters)
    scores = [0.0] * 259 + [-float(rank) for rank in range(num_plain)]
    return {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.token_type": [2, 3, 3, *([6] * 256), *([1] * num_plain)],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    }


def write_gguf(
    path: Path, metadata: dict[str, Any], tensors: dict[str, np.ndarray] | None = None
) -> Path:
    """A GGUF file by the reference writer; metadata values are texts, whole numbers, truth values, or lists."""
    writer = gguf.GGUFWriter(path, metadata.get("general.architecture", "llama"))
    for key, value in metadata.items():
        if key == "general.architecture":
            continue
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, str):
            writer.add_string(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        else:
            writer.add_array(key, value)
    for name, data in (tensors or {"token_embd.weight": np.zeros((2, 32), np.float32)}).items():
        writer.add_tensor(name, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_hf_folder(folder: Path, tokenizer: tokenizers.Tokenizer, **files: dict[str, Any]) -> Path:
    """A folder with tokenizer.json, empty weights and the given JSON files (config={...}, tokenizer_config={...}, ...)."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "model.safetensors").write_bytes(b"")
    for name, content in ({"config": {"model_type": "llama"}} | files).items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder
