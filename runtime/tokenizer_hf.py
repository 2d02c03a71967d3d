"""The tokenizer of a Hugging Face folder: tokenizer.json, with what the files beside it say of special tokens and chats.

Owns the reading of tokenizer.json, tokenizer_config.json, generation_config.json, config.json and chat_template.jinja. Knows nothing of
weights. Read are byte-level BPE and SentencePiece-like models with byte fallback; others (WordPiece ...) do not say which bytes a
token spells and are refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import tokenizers

from ..errors import ModelError
from .tokenizer_parts import TokenizerParts, byte_alphabet, end_token_ids

MAX_FILE_BYTES = 256 << 20
_BYTE_TOKENS = {f"<0x{byte:02X}>": byte for byte in range(256)}


def read_hf_tokenizer(folder: Path) -> TokenizerParts:
    """The parts of the folder's tokenizer. Raises ModelError naming the file that is missing, damaged or of an unknown kind."""
    whole = _read_json(folder / "tokenizer.json")
    config = _read_json(folder / "tokenizer_config.json", optional=True)
    model_config = _read_json(folder / "config.json", optional=True)
    generation = _read_json(folder / "generation_config.json", optional=True)
    prefix_unless = _take_prefix_space(whole)
    try:
        backend = tokenizers.Tokenizer.from_str(json.dumps(whole))
    except Exception as error:  # the library raises plain Exception
        raise ModelError(f"{folder / 'tokenizer.json'} cannot be read: {error}") from error
    backend.encode_special_tokens = True  # plain text never becomes a special token
    byte_level = _is_byte_level(whole)
    special = {
        str(token["content"]): int(token["id"])
        for token in cast("list[dict[str, Any]]", whole.get("added_tokens") or [])
        if token.get("special") and token.get("content")
    }
    variables = {
        name: _spelling(config.get(name))
        for name in ("bos_token", "eos_token", "unk_token", "pad_token")
    }
    for name in ("bos_token", "eos_token"):
        found = backend.token_to_id(variables[name]) if variables[name] else None
        if found is not None:
            special.setdefault(variables[name], found)
    declared = [
        *_ids(generation.get("eos_token_id")),
        *_ids(model_config.get("eos_token_id")),
        *([special[variables["eos_token"]]] if variables["eos_token"] in special else []),
    ]
    bos = special.get(variables["bos_token"])
    num_rows = max(_num_rows(model_config), backend.get_vocab_size(with_added_tokens=True))
    vocabulary = backend.get_vocab(with_added_tokens=True)
    num_rows = max(num_rows, max(vocabulary.values(), default=-1) + 1)
    eos = end_token_ids(special, tuple(i for i in declared if 0 <= i < num_rows))
    token_bytes = _token_bytes(
        vocabulary, byte_level, _added(whole), {*special.values(), *eos}, num_rows
    )
    return TokenizerParts(
        backend=lambda: backend,
        pipeline={key: whole.get(key) for key in ("normalizer", "added_tokens", "pre_tokenizer")},
        token_bytes=token_bytes,
        special_tokens=special,
        spellable=_spellable(vocabulary, byte_level),
        characters=None
        if byte_level or _has_byte_tokens(vocabulary)
        else frozenset(text.replace("▁", " ") for text in vocabulary if len(text) == 1),
        prefix_unless=prefix_unless,
        bos_token_id=bos,
        eos_token_ids=eos,
        add_bos=_adds_bos(config, whole, variables["bos_token"]),
        chat_template=_chat_template(folder, config),
        template_variables=variables,
    )


# ---------------------------------------------------------------------------------------------- files


def _read_json(path: Path, optional: bool = False) -> dict[str, Any]:
    if optional and not path.is_file():
        return {}
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ModelError(f"{path} is larger than {MAX_FILE_BYTES >> 20} MiB")
        parsed: Any = json.loads(path.read_bytes())
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is not JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise ModelError(f"{path} does not hold an object")
    return cast("dict[str, Any]", parsed)


def _chat_template(folder: Path, config: Mapping[str, Any]) -> str | None:
    path = folder / "chat_template.jinja"
    if path.is_file():
        try:
            return path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"cannot read {path}: {error}") from error
    template: Any = config.get("chat_template")
    if isinstance(template, list):  # several by name; "default" is for conversations
        named = cast("list[dict[str, Any]]", template)
        template = next(
            (entry.get("template") for entry in named if entry.get("name") == "default"), None
        )
    return template if isinstance(template, str) and template else None


# ---------------------------------------------------------------------------------------------- special tokens


def _spelling(value: Any) -> str:
    """A token in tokenizer_config.json: its text, or an object that holds it."""
    if isinstance(value, dict):
        value = cast("dict[str, Any]", value).get("content")
    return value if isinstance(value, str) else ""


def _ids(value: Any) -> Iterable[int]:
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    return (item for item in values if type(item) is int)


def _num_rows(model_config: Mapping[str, Any]) -> int:
    text_config: Any = model_config.get("text_config")
    nested = cast("dict[str, Any]", text_config) if isinstance(text_config, dict) else {}
    rows: Any = model_config.get("vocab_size", nested.get("vocab_size"))
    return rows if type(rows) is int and 0 <= rows < 1 << 24 else 0


def _adds_bos(config: Mapping[str, Any], whole: Mapping[str, Any], bos: str) -> bool:
    declared: Any = config.get("add_bos_token")
    if isinstance(declared, bool):
        return declared
    todo: list[Any] = [whole.get("post_processor")]
    while todo:
        stage: Any = todo.pop()
        if isinstance(stage, dict):
            fields = cast("dict[str, Any]", stage)
            todo += fields.get("processors") or []
            single: list[dict[str, Any]] = fields.get("single") or []
            if fields.get("type") == "TemplateProcessing" and single:
                begin: dict[str, Any] = single[0].get("SpecialToken") or {}
                return bool(bos) and begin.get("id") == bos
    return False


# ---------------------------------------------------------------------------------------------- spelling


def _stages(whole: Mapping[str, Any], part: str, key: str) -> list[dict[str, Any]]:
    stage: Any = whole.get(part)
    if not isinstance(stage, dict):
        return []
    fields = cast("dict[str, Any]", stage)
    return [*(fields.get(key) or [])] if fields.get("type") == "Sequence" else [fields]


def _is_byte_level(whole: Mapping[str, Any]) -> bool:
    """Byte-level or SentencePiece-like; ModelError for the rest."""
    model: Mapping[str, Any] = whole.get("model") or {}
    cuts = _stages(whole, "pre_tokenizer", "pretokenizers")
    if any(stage.get("type") == "ByteLevel" for stage in cuts):
        return True
    if model.get("type", "BPE") in ("BPE", "Unigram") and not model.get(
        "continuing_subword_prefix"
    ):
        return False
    raise ModelError(
        f"the tokenizer kind {model.get('type')!r} is not supported",
        place="tokenizer.json: model.type",
        hint="Byte-level BPE and SentencePiece models (BPE or Unigram) are read",
    )


def _take_prefix_space(whole: dict[str, Any]) -> tuple[str, ...] | None:
    """Before which texts no space goes; the pipeline is changed not to add it, for it must not at every part of a prompt."""
    found: tuple[str, ...] | None = None
    for part, key in (("normalizer", "normalizers"), ("pre_tokenizer", "pretokenizers")):
        for stage in _stages(whole, part, key):
            if stage.get("type") == "Prepend" and stage.get("prepend") == "▁":
                stage["prepend"] = ""
                found = ()
            elif (
                stage.get("type") == "Metaspace"
                and stage.get("prepend_scheme", "always") != "never"
            ):
                stage["prepend_scheme"] = "never"
                stage.pop("add_prefix_space", None)
                found = (" ", "▁")
            elif stage.get("type") == "ByteLevel" and stage.get("add_prefix_space"):
                stage["add_prefix_space"] = False
                found = (" ",)
    return found


def _has_byte_tokens(vocabulary: Mapping[str, int]) -> bool:
    return _BYTE_TOKENS.keys() <= vocabulary.keys()


def _spellable(vocabulary: Mapping[str, int], byte_level: bool) -> frozenset[int] | None:
    if byte_level:
        return frozenset(
            byte for character, byte in byte_alphabet().items() if character in vocabulary
        )
    return frozenset(range(256)) if _has_byte_tokens(vocabulary) else None


def _added(whole: Mapping[str, Any]) -> frozenset[int]:
    """Added tokens that are not special: they are written as plain text, in no alphabet."""
    added: list[dict[str, Any]] = whole.get("added_tokens") or []
    return frozenset(
        int(token["id"]) for token in added if not token.get("special") and "id" in token
    )


def _token_bytes(
    vocabulary: Mapping[str, int],
    byte_level: bool,
    added: frozenset[int],
    silent: set[int],
    num_rows: int,
) -> list[bytes | None]:
    byte_of = byte_alphabet()
    result: list[bytes | None] = [None] * num_rows
    for token, index in vocabulary.items():
        if index in silent or not token:
            continue
        if index in added:
            result[index] = token.encode()
        elif byte_level:
            known = all(character in byte_of for character in token)
            result[index] = (
                bytes(byte_of[character] for character in token) if known else token.encode()
            )
        elif token in _BYTE_TOKENS:
            result[index] = bytes([_BYTE_TOKENS[token]])
        else:
            result[index] = token.replace("▁", " ").encode()
    return result
