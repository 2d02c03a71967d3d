"""The tokenizer that a GGUF file's metadata describes, as a `tokenizers` model.

Owns the meaning of the `tokenizer.*` keys and the table of pre-tokenizers by name. Knows nothing of files (it takes a checked metadata
mapping) or of chats. Two kinds are read: "gpt2" (byte-level BPE, Radford et al. 2019) and "llama" (SentencePiece BPE with byte fallback,
Kudo and Richardson 2018; its merges are recovered from the vocabulary's scores).

The kind "gpt2" needs to know how text is cut before merging, and the file only names it. A name that is not in the table is refused: a
wrong cut gives ids the model never saw. Ids equal those of `transformers` on the same file; where a converter's name stands for a cut
that transformers does not tell apart from GPT-2's (the smollm family splits digits off first), this follows transformers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import tokenizers
from tokenizers import models, pre_tokenizers

from ..errors import ModelError
from .tokenizer_parts import TokenizerParts, byte_alphabet, end_token_ids

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = 1, 2, 3, 4, 5, 6

_LLAMA3_CUT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_QWEN2_CUT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_TEKKEN_CUT = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_GPT4O_CUT = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_GPT2_CUT = ""  # built into the byte-level pre-tokenizer

_CUTS: Mapping[str, str] = {
    **dict.fromkeys(("default", "gpt-2", "phi-2", "olmo", "mellum", "modern-bert"), _GPT2_CUT),
    **dict.fromkeys(("smollm", "starcoder", "refact", "codeshell", "command-r"), _GPT2_CUT),
    **dict.fromkeys(
        ("llama-bpe", "llama3", "llama-v3", "smaug-bpe", "falcon3", "dbrx", "lfm2"), _LLAMA3_CUT
    ),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "megrez"), _QWEN2_CUT),
    "tekken": _TEKKEN_CUT,
    **dict.fromkeys(("gpt-4o", "llama4"), _GPT4O_CUT),
}
_WORDS_BEFORE_MERGES = ("llama-bpe", "llama3", "llama-v3")  # a word that is a token is taken whole


def read_gguf_tokenizer(metadata: Mapping[str, Any], num_rows: int | None = None) -> TokenizerParts:
    """The parts of the tokenizer in `metadata`; `num_rows` is the number of rows of the embedding, where larger than the vocabulary.

    Raises ModelError naming the key that is missing, wrong or of an unknown kind.
    """
    kind = _text(metadata, "tokenizer.ggml.model")
    tokens = _list(metadata, "tokenizer.ggml.tokens", str)
    token_types = _list(metadata, "tokenizer.ggml.token_type", int, default=[_NORMAL] * len(tokens))
    if not tokens or len(token_types) != len(tokens):
        raise ModelError(
            f"{len(tokens)} tokens and {len(token_types)} token types",
            place="tokenizer.ggml.token_type",
        )
    ids = _ids(metadata, tokens)
    special = _special(tokens, token_types, kind, ids.declared)
    if kind == "gpt2":
        tokens_spelled, spelled = _byte_spelling(tokens)
        pre_tokenizer = pre_tokenizer_of(_text(metadata, "tokenizer.ggml.pre", default="default"))
        make = partial(_byte_level, metadata, tokens_spelled, pre_tokenizer)
        add_bos_default, prefix_unless = False, None
    elif kind == "llama":
        tokens_spelled = tokens
        pre_tokenizer = pre_tokenizers.Metaspace(
            replacement="▁", prepend_scheme="never", split=False
        )
        make = partial(_sentencepiece, metadata, tokens, token_types, pre_tokenizer)
        spelled = list(map(_sentencepiece_bytes, tokens, token_types))
        has_prefix = metadata.get("tokenizer.ggml.add_space_prefix", True) is True
        add_bos_default, prefix_unless = True, (" ", "▁") if has_prefix else None
    else:
        raise ModelError(
            f"the tokenizer kind {kind!r} is not supported",
            place="tokenizer.ggml.model",
            hint='Kinds: "gpt2" (byte-level BPE), "llama" (SentencePiece BPE)',
        )
    vocabulary = frozenset(tokens_spelled)
    added = _added(tokens, token_types, vocabulary)
    return TokenizerParts(
        backend=lambda: _match_whole(make(), added),
        pipeline={
            "pre_tokenizer": _serialised(pre_tokenizer),
            "added_tokens": [{"content": token} for token in added],
        },
        token_bytes=_token_bytes(
            tokens, token_types, spelled, frozenset(special.values()), num_rows or 0
        ),
        special_tokens=special,
        spellable=_spellable_bytes(kind, vocabulary, token_types),
        characters=_spellable_characters(kind, tokens, token_types),
        prefix_unless=prefix_unless,
        bos_token_id=ids.bos,
        eos_token_ids=end_token_ids(special, ids.ends),
        add_bos=metadata.get("tokenizer.ggml.add_bos_token", add_bos_default) is True,
        chat_template=_text(metadata, "tokenizer.chat_template", default="") or None,
        template_variables=ids.variables,
    )


def _special(
    tokens: list[str], token_types: list[int], kind: str, declared: frozenset[int]
) -> dict[str, int]:
    return {
        token: index
        for index, (token, token_type) in enumerate(zip(tokens, token_types, strict=True))
        if token_type == _CONTROL
        or (token_type == _UNKNOWN and kind == "llama")
        or index in declared
    }


def _added(tokens: list[str], token_types: list[int], vocabulary: frozenset[str]) -> list[str]:
    return [
        token
        for token, token_type in zip(tokens, token_types, strict=True)
        if token_type == _USER_DEFINED and token in vocabulary
    ]


def _match_whole(backend: tokenizers.Tokenizer, added: list[str]) -> tokenizers.Tokenizer:
    """User-defined tokens (such as "<think>") are found in plain text before it is cut."""
    backend.add_tokens(  # pyright: ignore[reportUnknownMemberType]
        [tokenizers.AddedToken(token, normalized=False, special=False) for token in added]
    )
    return backend


def _serialised(stage: Any) -> Any:
    return json.loads(stage.__getstate__())


# ---------------------------------------------------------------------------------------------- byte-level BPE


def _byte_level(
    metadata: Mapping[str, Any], tokens: list[str], pre_tokenizer: Any
) -> tokenizers.Tokenizer:
    name = _text(metadata, "tokenizer.ggml.pre", default="default")
    listed = _list(metadata, "tokenizer.ggml.merges", str)
    merges = _merges(listed)
    backend = _bpe(tokens, merges, ignore_merges=name in _WORDS_BEFORE_MERGES)
    backend.pre_tokenizer = pre_tokenizer
    return backend


def pre_tokenizer_of(name: str) -> Any:
    """The pre-tokenizer that GGUF files call `name`; ModelError when it is unknown."""
    if name not in _CUTS:
        raise ModelError(
            f"the pre-tokenizer {name!r} is not supported",
            place="tokenizer.ggml.pre",
            hint=f"Known: {', '.join(sorted(_CUTS))}. A folder with tokenizer.json says itself how it cuts",
        )
    if not _CUTS[name]:
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(tokenizers.Regex(_CUTS[name]), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def _merges(listed: list[str]) -> list[tuple[str, str]]:
    """Pairs of tokens, each written with a space between."""
    merges: list[tuple[str, str]] = []
    for index, text in enumerate(listed):
        left, _, right = text.partition(" ")
        if not left or not right or " " in right:
            raise ModelError(
                f"merge {index} is {text!r}, not two tokens", place="tokenizer.ggml.merges"
            )
        merges.append((left, right))
    return merges


def _bpe(tokens: list[str], merges: list[tuple[str, str]], **options: Any) -> tokenizers.Tokenizer:
    vocabulary = {token: index for index, token in enumerate(tokens)}
    try:
        return tokenizers.Tokenizer(
            models.BPE(vocab=vocabulary, merges=merges, dropout=None, **options)
        )
    except Exception as error:  # the library raises plain Exception
        raise ModelError(
            f"vocabulary and merges do not fit: {error}", place="tokenizer.ggml.merges"
        ) from error


def _byte_spelling(tokens: list[str]) -> tuple[list[str], list[bytes]]:
    """Each token in the byte alphabet, and the bytes it spells; one that is not written in the alphabet is text as it stands."""
    byte_of = byte_alphabet()
    character_of = {byte: character for character, byte in byte_of.items()}
    # every byte's character becomes the one of that number; other characters below 256 become none that latin-1 could write
    table = dict.fromkeys(range(256), 0xFFFD) | {ord(text): byte for text, byte in byte_of.items()}
    written, spelled = list(tokens), [b""] * len(tokens)
    for index, token in enumerate(tokens):
        try:
            spelled[index] = token.translate(table).encode("latin-1")
        except UnicodeEncodeError:
            data = spelled[index] = token.encode()
            written[index] = "".join(character_of[byte] for byte in data)
    return written, spelled


# ---------------------------------------------------------------------------------------------- SentencePiece


def _sentencepiece(
    metadata: Mapping[str, Any], tokens: list[str], token_types: list[int], pre_tokenizer: Any
) -> tokenizers.Tokenizer:
    scores = _list(metadata, "tokenizer.ggml.scores", float)
    if len(scores) != len(tokens):
        raise ModelError(
            f"{len(tokens)} tokens and {len(scores)} scores", place="tokenizer.ggml.scores"
        )
    if "tokenizer.ggml.merges" in metadata:
        listed = _list(metadata, "tokenizer.ggml.merges", str)
        merges = _merges(listed)
    else:
        merges = _merges_by_score(tokens, scores)
    unknown = next(
        (token for token, kind in zip(tokens, token_types, strict=True) if kind == _UNKNOWN), None
    )
    backend = _bpe(tokens, merges, unk_token=unknown, fuse_unk=True, byte_fallback=True)
    backend.pre_tokenizer = pre_tokenizer
    return backend


def _merges_by_score(tokens: list[str], scores: list[float]) -> list[tuple[str, str]]:
    """Every way to cut a token into two tokens, best score first; among equals, by the lengths and ids of the parts."""
    ids = {token: index for index, token in enumerate(tokens)}
    ranked: list[tuple[float, int, int, int, int, int, str, str]] = []
    for token, index in ids.items():
        for at in range(1, len(token)):
            left, right = token[:at], token[at:]
            if left in ids and right in ids:
                # The order of equals is that of transformers: longer left part first, then the token's own order.
                ranked.append(
                    (
                        -scores[index],
                        -len(left),
                        -len(right),
                        index,
                        ids[left],
                        ids[right],
                        left,
                        right,
                    )
                )
    ranked.sort()
    return [(left, right) for *_, left, right in ranked]


def _sentencepiece_bytes(token: str, token_type: int) -> bytes:
    if token_type == _BYTE:
        digits = token.removeprefix("<0x").removesuffix(">")
        try:
            return bytes([int(digits, 16)])
        except ValueError:
            raise ModelError(f"{token!r} is not a byte", place="tokenizer.ggml.tokens") from None
    return token.replace("▁", " ").encode()


# ---------------------------------------------------------------------------------------------- shared


def _token_bytes(
    tokens: list[str],
    token_types: list[int],
    spelled: list[bytes],
    special: frozenset[int],
    num_rows: int,
) -> list[bytes | None]:
    result: list[bytes | None] = [None] * max(len(tokens), num_rows)
    for index, (data, token_type) in enumerate(zip(spelled, token_types, strict=True)):
        if index in special or not data:
            continue
        if token_type in (_NORMAL, _BYTE):
            result[index] = data
        elif token_type == _USER_DEFINED:
            result[index] = tokens[index].encode()
    return result


def _spellable_bytes(
    kind: str, vocabulary: frozenset[str], token_types: list[int]
) -> frozenset[int] | None:
    if kind == "gpt2":
        return frozenset(
            byte for character, byte in byte_alphabet().items() if character in vocabulary
        )
    return frozenset(range(256)) if token_types.count(_BYTE) == 256 else None


def _spellable_characters(
    kind: str, tokens: list[str], token_types: list[int]
) -> frozenset[str] | None:
    if kind == "gpt2" or token_types.count(_BYTE) == 256:
        return None
    return frozenset(token.replace("▁", " ") for token in tokens if len(token) == 1)


@dataclass(frozen=True, slots=True)
class _Ids:
    bos: int | None
    ends: tuple[int, ...]
    variables: Mapping[str, str]

    @property
    def declared(self) -> frozenset[int]:
        return frozenset(self.ends if self.bos is None else (*self.ends, self.bos))


def _ids(metadata: Mapping[str, Any], tokens: list[str]) -> _Ids:
    def token_id(name: str) -> int | None:
        key = f"tokenizer.ggml.{name}"
        value = metadata.get(key)
        if value is None or (type(value) is int and 0 <= value < len(tokens)):
            return value
        raise ModelError(f"{value!r} is not the id of one of {len(tokens)} tokens", place=key)

    bos, eos = token_id("bos_token_id"), token_id("eos_token_id")
    ends = tuple(
        i for i in (eos, token_id("eot_token_id"), token_id("eom_token_id")) if i is not None
    )
    unknown, padding = token_id("unknown_token_id"), token_id("padding_token_id")
    variables = {"bos_token": bos, "eos_token": eos, "unk_token": unknown, "pad_token": padding}
    return _Ids(
        bos,
        ends,
        {name: "" if index is None else tokens[index] for name, index in variables.items()},
    )


def _text(metadata: Mapping[str, Any], key: str, default: str | None = None) -> str:
    value = metadata.get(key, default)
    if isinstance(value, str):
        return value
    raise ModelError(f"the key {key} is {'missing' if value is None else 'not a text'}", place=key)


def _list(
    metadata: Mapping[str, Any], key: str, kind: type, default: Sequence[Any] | None = None
) -> Any:
    value = metadata.get(key, default)
    if not isinstance(value, list):
        raise ModelError(
            f"the key {key} is {'missing' if value is None else 'not a list'}", place=key
        )
    items = cast("list[Any]", value)
    if set(map(type, items)) - {kind}:
        raise ModelError(f"the list {key} does not hold {kind.__name__} alone", place=key)
    return items
