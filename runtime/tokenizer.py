"""Text to token ids and back, for one model: plain text, chat messages, forced bytes.

Owns the rules that hold for every tokenizer: plain text never yields special tokens, no character is lost in silence, and a text can be
continued without encoding its history again. Knows nothing of files' formats (`tokenizer_gguf`, `tokenizer_hf` read them), of requests
or of tensors. A character that no token can spell becomes U+FFFD (or "?") and is reported, or is refused with its line and column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..errors import PromptError
from .detokenizer import IncrementalDecoder, decode_tokens
from .model_files import ModelFiles
from .safe_boundary import boundary_finder
from .tokenizer_parts import Piece, TokenizerParts

if TYPE_CHECKING:
    import tokenizers

    from .chat_template import ChatTemplate

__all__ = ["Encoded", "Piece", "Tokenizer", "load_tokenizer"]

_REPLACEMENTS = ("\ufffd", "?")


@dataclass(frozen=True, slots=True)
class Encoded:
    """Ids of a text, and the characters that no token spells and that were replaced, each once, in order of appearance.

    A lone surrogate is reported by its number ("\\ud800"), because it cannot travel as text.
    """

    ids: list[int]
    replaced: tuple[str, ...] = ()


class Tokenizer:
    """One model's tokenizer. It does not change after it is made; threads may share it."""

    def __init__(self, parts: TokenizerParts) -> None:
        self._make_backend = parts.backend
        self._special_tokens = dict(parts.special_tokens)
        self.special_spellings: Mapping[int, str] = {
            index: text for text, index in self._special_tokens.items()
        }
        self._prefix_unless = parts.prefix_unless
        self._spellable = bytes(range(256) if parts.spellable is None else sorted(parts.spellable))
        self._characters = parts.characters
        self._boundaries = boundary_finder(parts.pipeline)
        self._longest_token_bytes = max(
            (len(data) for data in parts.token_bytes if data), default=0
        )
        self._ids_by_bytes = _ids_by_bytes(parts.token_bytes)
        self._template = _template_of(parts)
        self._replacement = next((text for text in _REPLACEMENTS if self._is_spellable(text)), None)
        self.token_bytes = (
            parts.token_bytes
        )  # [vocab_size] what each token spells; None: special or unused
        self.vocab_size = len(parts.token_bytes)  # columns of the logits
        self.bos_token_id = parts.bos_token_id
        self.add_bos = (
            parts.add_bos and parts.bos_token_id is not None
        )  # unless a prompt begins with it anyway
        self.eos_token_ids = parts.eos_token_ids  # every id that ends a generation
        self.special_token_ids = frozenset(self._special_tokens.values())

    @cached_property
    def _backend(self) -> tokenizers.Tokenizer:
        backend = self._make_backend()
        backend.no_truncation()
        backend.no_padding()
        return backend

    def warm_up(self) -> None:
        """Make what encodes, which otherwise waits for the first text. ModelError when the model's files do not fit together."""
        _ = self._backend

    # -- text

    def encode(self, text: str, *, strict: bool = False, continued: bool = False) -> Encoded:
        """Ids of plain text; spellings of special tokens inside it are ordinary characters.

        continued: other ids stand before these, so a tokenizer that writes a space before a prompt does not write it here.
        strict: raise PromptError with place "line:column" at the first character that no token spells, instead of replacing it.
        """
        text, replaced = self._make_spellable(text, strict)
        return Encoded(self._encode_spellable(text, not continued), replaced)

    def encode_pieces(
        self, pieces: Sequence[Piece], *, strict: bool = False, continued: bool = False
    ) -> Encoded:
        """Ids of pieces in a row. Neighbouring plain pieces are tokenized as one text; special pieces are their token.

        Raises PromptError for a special piece that this model does not have.
        """
        ids: list[int] = []
        replaced: dict[str, None] = {}
        for piece in _merged(pieces):
            if piece.special:
                ids.append(self.special_token_id(piece.text))
                continue
            text, lost = self._make_spellable(piece.text, strict)
            replaced.update(dict.fromkeys(lost))
            ids += self._encode_spellable(text, not (ids or continued))
        return Encoded(ids, tuple(replaced))

    def special_token_id(self, spelling: str) -> int:
        """The id of a special token by its exact spelling; PromptError when there is none."""
        if spelling not in self._special_tokens:
            raise PromptError(f"the model has no special token {spelling!r}")
        return self._special_tokens[spelling]

    def safe_boundary(self, text: str) -> int:
        """A character offset k, as late as is known, with encode(text[:k]) + encode(text[k:] + x) == encode(text + x) for every x."""
        return 0 if self._prefix_unless is not None else self._boundaries.last_boundary(text)

    def encode_forced(self, data: bytes) -> list[int]:
        """Ids whose token bytes, joined, are exactly `data`.

        Raises PromptError when no tokens spell it. Whole code points get the ids that their text would have.
        """
        try:
            ids = self._encode_spellable(data.decode("utf-8"), False)
        except UnicodeDecodeError:
            ids = []
        if b"".join(self.token_bytes[i] or b"" for i in ids) == data:
            return ids
        return self._longest_first(data)

    def decode(self, token_ids: Iterable[int]) -> str:
        """Text of ids: special tokens yield nothing, bytes that are not UTF-8 become U+FFFD."""
        return decode_tokens(self.token_bytes, token_ids)

    def decoder(self) -> IncrementalDecoder:
        """A fresh decoder for one stream of ids."""
        return IncrementalDecoder(self.token_bytes)

    # -- chat

    @property
    def has_chat_template(self) -> bool:
        """Whether the model comes with a chat template."""
        return self._template is not None

    @property
    def template_uses_tools(self) -> bool:
        """Whether the chat template mentions tools at all; where not, they must be described in a message."""
        return self._template is not None and self._template.uses_tools

    def render_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] = (),
        add_generation_prompt: bool = True,
    ) -> list[Piece]:
        """The conversation by the model's template; special tokens only where the template writes them.

        Raises PromptError: a message that is wrong (with its place), or what the template objects to.
        """
        return self._chat().render(messages, tools, add_generation_prompt)

    def role_begin(self, role: str, *, first: bool = False) -> list[Piece]:
        """What stands before a message of `role`.

        first: the message opens the conversation, so what the template puts in front of everything belongs to it (BOS; SmolLM2 and others
        insert a default system message when the first role is not "system").
        """
        return self._chat().role_begin(role, first=first)

    def role_end(self, role: str) -> list[Piece]:
        """What stands after a message of `role`."""
        return self._chat().role_end(role)

    def _chat(self) -> ChatTemplate:
        if self._template is None:
            raise PromptError(
                "the model has no chat template, so it knows no roles or messages",
                hint="Use plain text, or a model made for chat",
            )
        return self._template

    # -- spelling

    def _is_spellable(self, text: str) -> bool:
        if self._characters is not None:
            return self._characters.issuperset(text)
        try:
            return not text.encode("utf-8").translate(None, self._spellable)
        except UnicodeEncodeError:
            return False  # a lone surrogate

    def _make_spellable(self, text: str, strict: bool) -> tuple[str, tuple[str, ...]]:
        if self._is_spellable(text):
            return text, ()
        lost = {character: None for character in text if not self._is_spellable(character)}
        if strict or self._replacement is None:
            raise _unspellable(text, next(iter(lost)), len(lost))
        spellable = text.translate({ord(character): self._replacement for character in lost})
        return spellable, tuple(_reportable(character) for character in lost)

    # -- encoding

    def _encode_spellable(self, text: str, at_start: bool) -> list[int]:
        if not text:
            return []
        if (
            at_start
            and self._prefix_unless is not None
            and not text.startswith(self._prefix_unless)
        ):
            text = " " + text
        ids: list[int] = self._backend.encode(text, add_special_tokens=False).ids
        found = self.special_token_ids.intersection(ids)
        return self._encode_around(text, found) if found else ids

    def _encode_around(self, text: str, found: frozenset[int]) -> list[int]:
        """A vocabulary can hold a special token's spelling as an ordinary word: cut such words after their first character."""
        spellings = sorted(
            (self.special_spellings[index] for index in found), key=len, reverse=True
        )
        # (?<=x)(?=yz) finds the place inside every "xyz", and consumes nothing
        inside = re.compile(
            "|".join(
                f"(?<={re.escape(text[:1])})(?={re.escape(text[1:])})"
                for text in spellings
                if text[1:]
            )
        )
        parts: list[str] = inside.split(text) if inside.pattern else [text]
        ids: list[int] = []
        for part in filter(None, parts):
            ids += self._backend.encode(part, add_special_tokens=False).ids
        if not self.special_token_ids.isdisjoint(ids):
            raise PromptError(
                f"the text cannot be encoded without the special token {spellings[0]!r}",
                hint="Leave that spelling out",
            )
        return ids

    def _longest_first(self, data: bytes) -> list[int]:
        ids: list[int] = []
        at = 0
        while at < len(data):
            for size in range(min(self._longest_token_bytes, len(data) - at), 0, -1):
                found = self._ids_by_bytes.get(data[at : at + size])
                if found is not None:
                    ids.append(found)
                    at += size
                    break
            else:
                raise PromptError(f"no token spells the byte 0x{data[at]:02x}", place=f"byte {at}")
        return ids


def load_tokenizer(files: ModelFiles, *, chats: bool = True) -> Tokenizer:
    """The tokenizer of a model; ModelError when it is missing, damaged or of an unknown kind. Without
    `chats` it has no chat template, and what encodes is made at the first text: the engine decodes, and encodes only what a grammar forces."""
    parts = _read_parts(files)
    if not chats:
        return Tokenizer(replace(parts, chat_template=None))
    tokenizer = Tokenizer(parts)
    tokenizer.warm_up()
    return tokenizer


def _read_parts(files: ModelFiles) -> TokenizerParts:
    if files.kind == "gguf":
        from .gguf_file import open_gguf
        from .tokenizer_gguf import read_gguf_tokenizer

        file = open_gguf(files.path)
        embedding = file.tensors.get("token_embd.weight")
        return read_gguf_tokenizer(file.metadata, embedding.shape[0] if embedding else None)
    from .tokenizer_hf import read_hf_tokenizer

    return read_hf_tokenizer(files.path)


def _template_of(parts: TokenizerParts) -> ChatTemplate | None:
    if not parts.chat_template:
        return None
    # not above: the engine, which renders no chats, does without what this imports
    from .chat_template import ChatTemplate

    return ChatTemplate(parts.chat_template, parts.special_tokens, parts.template_variables)


def _ids_by_bytes(token_bytes: Sequence[bytes | None]) -> dict[bytes, int]:
    table: dict[bytes, int] = {}
    for index, data in enumerate(token_bytes):
        if data:
            table.setdefault(data, index)
    return table


def _merged(pieces: Iterable[Piece]) -> list[Piece]:
    merged: list[Piece] = []
    for piece in pieces:
        if merged and not piece.special and not merged[-1].special:
            merged[-1] = Piece(merged[-1].text + piece.text)
        elif piece.text:
            merged.append(piece)
    return merged


def _reportable(character: str) -> str:
    """A lone surrogate cannot travel as text: its number in ASCII does."""
    return f"\\u{ord(character):04x}" if "\ud800" <= character <= "\udfff" else character


def _unspellable(text: str, character: str, num_lost: int) -> PromptError:
    before = text[: text.index(character)]
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    others = f" (and {num_lost - 1} other characters)" if num_lost > 1 else ""
    return PromptError(
        f"no token of the model spells the character U+{ord(character):04X}{others}",
        place=f"{line}:{column}",
        hint="Remove it, or let such characters be replaced",
    )
