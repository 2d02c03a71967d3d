"""One branch of a program as the gateway sees it: token ids from the start, and the constant text after them that may still change.

    ids      settled: prompt and output tokens, exactly as the engine computed them
    pending  constant pieces not yet tokenized, or the tail behind the last safe boundary of those that are

Constant text is tokenized as if it stood there whole, in whatever portions it was appended: only text up to a boundary that nothing
appended later can move becomes ids (`Tokenizer.safe_boundary`), the rest waits. A generation takes all: the tail becomes ids, the
output's ids follow as they were sampled, and the next constant starts anew after them. A stop string cuts the output before the token
in which it starts (moved back to a whole character); the bytes kept of that token become constant text.

`key` is the branch's rendered text in the form of `text_memory`; None once raw ids made it unknown. Owns no queue, socket or request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Protocol

from ..errors import ContextOverflow, ProgramError, PromptError
from .detokenizer import IncrementalDecoder, decode_tokens, token_ids_to_bytes
from .messages import Chat, Ids, RoleBegin, RoleEnd, Segment, Text
from .text_memory import TextMemory, special_key
from .tokenizer import Encoded, Piece

PART_CHARS = (
    16384  # tokenized at a time, about 30 ms; whether more of it can fit is asked in between
)


class TokenizerLike(Protocol):
    """What the gateway asks of a tokenizer (see `runtime.tokenizer`)."""

    vocab_size: int
    bos_token_id: int | None
    add_bos: bool
    eos_token_ids: tuple[int, ...]
    token_bytes: list[bytes | None]
    special_spellings: Mapping[int, str]

    def encode(self, text: str, *, strict: bool = False, continued: bool = False) -> Encoded:
        """Ids of plain text; `continued`: text stands before it."""
        ...

    def encode_pieces(
        self, pieces: Sequence[Piece], *, strict: bool = False, continued: bool = False
    ) -> Encoded:
        """Ids of pieces; `continued`: text stands before them."""
        ...

    def render_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] = (),
        add_generation_prompt: bool = True,
    ) -> list[Piece]:
        """A conversation by the model's template."""
        ...

    def role_begin(self, role: str, *, first: bool = False) -> list[Piece]:
        """What stands before a message."""
        ...

    def role_end(self, role: str) -> list[Piece]:
        """What stands after a message."""
        ...

    def safe_boundary(self, text: str) -> int:
        """Where text may be cut, whatever follows it."""
        ...

    def decoder(self) -> IncrementalDecoder:
        """A decoder for one stream."""
        ...


class Branch:
    """The text of one branch, growing. Not thread-safe; a copy shares nothing that changes."""

    __slots__ = (
        "_is_started",
        "_memory",
        "_pending",
        "_tokenizer",
        "ids",
        "key",
        "max_tokens",
        "namespace",
        "replaced",
        "strict_text",
    )

    def __init__(
        self,
        tokenizer: TokenizerLike,
        memory: TextMemory,
        *,
        namespace: str = "",
        strict_text: bool = False,
        max_tokens: int | None = None,
    ) -> None:
        self.namespace = namespace
        self.strict_text = strict_text
        self.max_tokens = max_tokens  # longer prompts are refused before they are tokenized
        self.ids: list[int] = []
        self.key: bytes | None = b""
        self.replaced: tuple[str, ...] = ()
        self._tokenizer = tokenizer
        self._memory = memory
        self._pending: list[Piece] = []
        self._is_started = False

    @property
    def is_empty(self) -> bool:
        """Nothing was appended yet."""
        return not self.ids and not self._pending

    @property
    def tail(self) -> str:
        """The plain text behind the last settled place (for tests and traces)."""
        return "".join(piece.text for piece in self._pending)

    def copy(self) -> Branch:
        """An independent branch at the same place; the tail is copied, not tokenized again."""
        twin = Branch.__new__(Branch)
        for name in Branch.__slots__:
            setattr(twin, name, getattr(self, name))
        twin.ids = list(self.ids)
        twin._pending = list(self._pending)
        return twin

    # ------------------------------------------------------------------------------------------ constants

    def append(self, segments: Sequence[Segment]) -> None:
        """Add constant segments. Raises PromptError or ProgramError; the branch is then not to be used further."""
        for segment in segments:
            match segment:
                case Text(text):
                    self._add([Piece(text)])
                case Ids(token_ids):
                    self._append_ids(token_ids)
                case RoleBegin(role):
                    self._add(self._tokenizer.role_begin(role, first=self.is_empty))
                case RoleEnd(role):
                    self._add(self._tokenizer.role_end(role))
                case Chat(messages, tools, add_generation_prompt):
                    self._add(self._tokenizer.render_chat(messages, tools, add_generation_prompt))

    def _add(self, pieces: Sequence[Piece]) -> None:
        self._pending.extend(piece for piece in pieces if piece.text)

    def _append_ids(self, token_ids: Sequence[int]) -> None:
        bad = next((i for i in token_ids if not 0 <= i < self._tokenizer.vocab_size), None)
        if bad is not None:
            raise PromptError(
                f"token id {bad} is not within 0 .. {self._tokenizer.vocab_size - 1}",
                place="token_ids",
            )
        if self._pending:
            self.settle()
            self._commit_pending()
        self._is_started = True  # raw ids bring their own beginning, BOS included
        self.ids.extend(token_ids)
        self.key = None

    # ------------------------------------------------------------------------------------------ from text to ids

    def settle(self) -> None:
        """Turn pending text into ids as far as nothing appended later can change them."""
        if not self._pending:
            return
        self._refuse_what_cannot_fit()
        if not self._is_started:
            self._is_started = True
            self._recall()
        last_special = max(
            (i for i, piece in enumerate(self._pending) if piece.special), default=-1
        )
        head = self._pending[: last_special + 1]
        text = "".join(piece.text for piece in self._pending[last_special + 1 :])
        cut = self._tokenizer.safe_boundary(text) if text else 0
        if cut:
            head.append(Piece(text[:cut]))
        self._commit(head)
        self._pending = [Piece(text[cut:])] if text[cut:] else []

    def prompt_ids(self) -> list[int]:
        """All ids of the branch, its tail included: what a generation continues. The tail is settled by this."""
        self.settle()
        self._commit_pending()
        if not self.ids:
            self._begin(())
        if not self.ids:
            raise PromptError("the prompt is empty", hint="Give at least one character or token id")
        return self.ids

    def ids_with(self, continuations: Sequence[str]) -> tuple[list[int], list[list[int]]]:
        """Ids of the constant alone, and with each continuation tokenized together with it; the branch stays as it is."""
        self.settle()
        tail = self.tail

        def whole(text: str) -> list[int]:
            if not text:
                return self._with_bos(self.ids, [])
            continued = bool(self.ids)
            encoded = self._tokenizer.encode(text, strict=self.strict_text, continued=continued)
            return self._with_bos(self.ids, encoded.ids)

        return whole(tail), [whole(tail + text) for text in continuations]

    def _commit_pending(self) -> None:
        pieces, self._pending = self._pending, []
        self._commit(pieces)

    def _commit(self, pieces: Sequence[Piece]) -> None:
        for part in self._in_parts(pieces):
            if self.max_tokens is not None and len(self.ids) > self.max_tokens:
                raise ContextOverflow(
                    f"the prompt has more than {len(self.ids)} tokens, the model's context holds {self.max_tokens}",
                    hint="Shorten the prompt",
                )
            self._commit_part(part)

    def _in_parts(self, pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
        """`pieces`, long texts cut where this changes no token: one that cannot fit is then noticed before all of it is tokenized."""
        part: list[Piece] = []
        for is_special, run in groupby(pieces, key=lambda piece: piece.special):
            if is_special:
                part += run
                continue
            text = "".join(piece.text for piece in run)
            while len(text) > PART_CHARS:
                cut = self._tokenizer.safe_boundary(text[:PART_CHARS])
                if not cut:
                    break
                yield [*part, Piece(text[:cut])]
                part, text = [], text[cut:]
            part.append(Piece(text))
        if part:
            yield part

    def _commit_part(self, pieces: Sequence[Piece]) -> None:
        encoded = self._tokenizer.encode_pieces(
            pieces, strict=self.strict_text, continued=bool(self.ids)
        )
        self._begin(encoded.ids)
        self.ids.extend(encoded.ids)
        if encoded.replaced:
            self.replaced = tuple(dict.fromkeys(self.replaced + encoded.replaced))
        if self.key is not None:
            self.key += b"".join(map(self._piece_key, pieces))

    def _begin(self, first_ids: Sequence[int]) -> None:
        if not self.ids and self._needs_bos(first_ids):
            self.ids.append(self._tokenizer.bos_token_id or 0)

    def _with_bos(self, ids: Sequence[int], more: Sequence[int]) -> list[int]:
        bos = [self._tokenizer.bos_token_id or 0] if not ids and self._needs_bos(more) else []
        return [*bos, *ids, *more]

    def _needs_bos(self, first_ids: Sequence[int]) -> bool:
        bos = self._tokenizer.bos_token_id
        return (
            self._tokenizer.add_bos and bos is not None and (not first_ids or first_ids[0] != bos)
        )

    def _refuse_what_cannot_fit(self) -> None:
        """A text whose tokens could not fit even if all were the longest one is refused before it is tokenized."""
        if self.max_tokens is None:
            return
        num_chars = sum(len(piece.text) for piece in self._pending)
        longest = (
            max((len(data) for data in self._tokenizer.token_bytes if data), default=1)
            if num_chars > 65536
            else 1
        )
        if num_chars > 65536 and len(self.ids) + num_chars // longest > self.max_tokens:
            raise ContextOverflow(
                f"the prompt has {num_chars} characters, at least {num_chars // longest} tokens; "
                f"the model's context holds {self.max_tokens}",
                hint="Shorten the prompt",
            )

    # ------------------------------------------------------------------------------------------ memory of own outputs

    def _piece_key(self, piece: Piece) -> bytes:
        if not piece.special:
            return piece.text.encode()
        return b"".join(map(special_key, self._tokenizer.encode_pieces([piece]).ids))

    def _recall(self) -> None:
        """Start from the ids of the longest remembered text that this branch begins with."""
        keys = [self._piece_key(piece) for piece in self._pending]
        found = self._memory.longest(b"".join(keys), self.namespace)
        if found is None or (found.replaced and self.strict_text):
            return
        self.ids = found.token_ids
        self.replaced = found.replaced
        self.key = b"".join(keys)[: found.num_bytes]
        rest: list[Piece] = []
        covered = found.num_bytes
        for piece, key in zip(self._pending, keys, strict=True):
            if covered <= 0:
                rest.append(piece)
            elif covered < len(
                key
            ):  # a remembered text ends with a whole character, and special tokens are not split
                rest.append(Piece(key[covered:].decode(), piece.special))
            covered -= len(key)
        self._pending = rest

    # ------------------------------------------------------------------------------------------ outputs

    def continue_with(self, token_ids: Sequence[int], cut_byte: int = -1) -> None:
        """Add an output: its ids (stop token already dropped), cut after `cut_byte` bytes of its text when that is >= 0."""
        kept, rest = cut_output(self._tokenizer.token_bytes, token_ids, cut_byte)
        self.key = self._remember(kept)
        self.ids.extend(kept)
        self._pending = [Piece(rest)] if rest else []

    def remember_output(self, token_ids: Sequence[int], cut_byte: int = -1) -> None:
        """Remember an output that this branch does not continue with (the second and later of n)."""
        self._remember(cut_output(self._tokenizer.token_bytes, token_ids, cut_byte)[0])

    def _remember(self, kept: Sequence[int]) -> bytes | None:
        """Keep the branch with `kept` behind it under its text as a user sees it (U+FFFD for what is not UTF-8); that key."""
        if self.key is None:
            return None
        key = self.key + decode_tokens(self._tokenizer.token_bytes, kept).encode()
        if kept:
            self._memory.remember(key, [*self.ids, *kept], self.namespace, self.replaced)
        return key


def cut_output(
    token_bytes: Sequence[bytes | None], token_ids: Sequence[int], cut_byte: int
) -> tuple[list[int], str]:
    """The ids wholly before byte `cut_byte` of the output's text, and the kept text after them. cut_byte < 0: no cut.

    The ids end with a whole character: a token in the middle of a character that the cut follows gives up all of it.
    """
    kept = list(token_ids)
    if cut_byte < 0:
        return kept, ""
    spelled = token_ids_to_bytes(token_bytes, token_ids)
    end = len(spelled)
    while kept and (end > cut_byte or (end < cut_byte and spelled[end] & 0xC0 == 0x80)):
        end -= len(token_bytes[kept.pop()] or b"")
    return kept, spelled[end:cut_byte].decode("utf-8", errors="replace")


def check_choices(choices: Sequence[str]) -> None:
    """Raise ProgramError unless there is something to choose from."""
    if not choices:
        raise ProgramError("there is nothing to select from: choices is empty", place="choices")
