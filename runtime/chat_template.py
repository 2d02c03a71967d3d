"""Conversations into text pieces, by the model's own chat template.

Owns the checking and flattening of messages, the separation of what the template wrote from what users wrote, and the split of a
template into the beginnings and ends of role blocks. Knows special tokens by their spelling only; no ids. Running the template is
`template_sandbox`'s.

A special token counts as one only where the template wrote it. Spellings inside messages and tools are exchanged for sentinels before
rendering and put back afterwards, into pieces that are plain text. A sentinel is made of punctuation and digits, so that neither JSON
quoting nor a change of case in the template alters it.

A template that never reads `tools` cannot say what they are: for it the conversation is rewritten first (`tools.hermes`), with the tools in
the system message, and calls and results as text.

Role blocks are found by rendering small conversations around a probe text:

    render(before + [probe])  =  render(before) + begin(role) + probe + end(role)

so that the blocks of a program, joined, equal the rendering of its messages as a whole. What a template puts in front of the first
message (BOS, a default system prompt when the first role is not "system") belongs to `begin(role, first=True)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import ModelError, PromptError, RadixError
from .chat_messages import ROLES, Shield, flatten_message, plain_value
from .template_budget import LimitExceeded, Refused, TemplateLimits
from .template_sandbox import SandboxedTemplate
from .tokenizer_parts import Piece
from .tools.custom import as_function
from .tools.hermes import with_custom_calls_as_text, without_tool_roles

_PROBE = "~0~"
# What may stand before a probe of each role. A template can end an assistant's message differently when it is the last one, so
# conversations that end in another role come first.
_BEFORE: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "system": (("user",), ("system",), ("user", "assistant")),
    "developer": (("user",), ("system",), ("user", "assistant")),
    "user": (("user",), ("system",), ("user", "assistant")),
    "assistant": (("user",), ("system", "user")),
    "tool": (("user",), ("user", "assistant")),
}


class ChatTemplate:
    """A model's chat template."""

    def __init__(
        self,
        source: str,
        special_tokens: Iterable[str],
        variables: Mapping[str, str],
        limits: TemplateLimits | None = None,
    ) -> None:
        """`variables` are bos_token, eos_token ... as the template may print them. ModelError when it cannot be compiled."""
        try:
            self._template = SandboxedTemplate(source, limits)
        except Exception as error:  # a hostile template can make the compiler raise anything
            raise ModelError(
                f"the model's chat template cannot be used: {_reason(error)}"
            ) from error
        longest_first = sorted(filter(None, special_tokens), key=lambda text: (-len(text), text))
        self._special = (
            re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
        )
        self._variables = dict(variables)
        self._prints_system: bool | None = None
        self._roles: dict[tuple[str, bool], tuple[list[Piece], list[Piece]]] = {}
        self.uses_tools = "tools" in self._template.names

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] = (),
        add_generation_prompt: bool = True,
    ) -> list[Piece]:
        """The conversation as pieces. PromptError names the message that is wrong, or what the template objects to."""
        flat = [
            flatten_message(message, f"messages[{index}]", parse_arguments=self.uses_tools)
            for index, message in enumerate(messages)
        ]
        if not flat:
            raise PromptError("the conversation has no messages", place="messages")
        listed = [plain_value(tool, f"tools[{index}]") for index, tool in enumerate(tools)]
        if self.uses_tools:
            flat = [dict(with_custom_calls_as_text(message)) for message in flat]
            listed = [dict(as_function(tool)) for tool in listed]
        else:
            has_system = not listed or self._has_system_role()
            flat, listed = without_tool_roles(flat, listed, has_system=has_system), []
        shield = Shield(self._special, [flat, listed])
        text = self._run(
            {
                **self._variables,
                "messages": shield.hide(flat),
                "tools": shield.hide(listed) or None,
                "documents": None,
                "add_generation_prompt": add_generation_prompt,
            }
        )
        return [
            piece if piece.special else Piece(shield.restore(piece.text))
            for piece in self._split(text)
        ]

    def role_begin(self, role: str, *, first: bool = False) -> list[Piece]:
        """What stands before a message of `role`; first: before the first message of a conversation."""
        return list(self._role(role, first)[0])

    def role_end(self, role: str) -> list[Piece]:
        """What stands after a message of `role`."""
        return list(self._role(role, False)[1])

    # -- rendering

    def _run(self, variables: Mapping[str, Any]) -> str:
        try:
            return self._template.render(variables)
        except Refused as error:
            raise PromptError(
                f"the model's chat template refuses: {error.message}", place="messages"
            ) from error
        except LimitExceeded as error:
            raise PromptError(
                f"the model's chat template was stopped: {error.message}",
                place="messages",
                hint="Shorten the conversation, or use a model whose template is not damaged",
            ) from error
        except Exception as error:  # a hostile template can raise anything
            raise PromptError(
                f"the model's chat template failed on these messages: {_reason(error)}",
                place="messages",
            ) from error

    def _split(self, text: str) -> list[Piece]:
        pieces: list[Piece] = []
        at = 0
        for found in self._special.finditer(text) if self._special else ():
            if found.start() > at:
                pieces.append(Piece(text[at : found.start()]))
            pieces.append(Piece(found.group(), special=True))
            at = found.end()
        if at < len(text):
            pieces.append(Piece(text[at:]))
        return pieces

    # -- roles

    def _has_system_role(self) -> bool:
        """Whether the template prints a system message; some refuse it, some leave it out."""
        if self._prints_system is None:
            try:
                self._prints_system = self._probe(("system", "user")).count(_PROBE) == 2
            except RadixError:
                self._prints_system = False
        return self._prints_system

    def _role(self, role: str, first: bool) -> tuple[list[Piece], list[Piece]]:
        if role not in ROLES:
            raise PromptError(
                f"the role {role!r} is unknown", place="role", hint=f"Roles: {', '.join(ROLES)}"
            )
        key = (role, first)
        if key not in self._roles:
            begin, end = self._derive(role, first)
            self._roles[key] = (self._split(begin), self._split(end))
        return self._roles[key]

    def _derive(self, role: str, first: bool) -> tuple[str, str]:
        reason: RadixError | None = None
        for before in ((),) if first else _BEFORE.get(role, _BEFORE["tool"]):
            try:
                return self._derive_after(before, role)
            except RadixError as error:
                reason = reason or error
        raise PromptError(
            f"the model's chat template has no place for a {role!r} message"
            f" {'at the start' if first else 'after others'}: {reason.message if reason else 'no reason given'}",
            place="role",
        ) from reason

    def _derive_after(self, before: tuple[str, ...], role: str) -> tuple[str, str]:
        start = self._probe(before) if before else ""
        whole = self._probe((*before, role))
        if not whole.startswith(start):
            raise ModelError("it writes earlier messages differently when another one follows")
        begin, found, end = whole[len(start) :].rpartition(_PROBE)
        if not found:
            raise ModelError("it does not write the message's content")
        if role == "assistant":
            begin = self._generation_prompt(before) or begin
        return begin, self._end_in_the_middle(before, role, end)

    def _generation_prompt(self, before: tuple[str, ...]) -> str:
        """What asks the model to answer: an assistant block that a program opens begins like this."""
        if not before:
            return ""
        without, having = self._probe(before), self._probe(before, add_generation_prompt=True)
        return having[len(without) :] if having.startswith(without) else ""

    def _end_in_the_middle(self, before: tuple[str, ...], role: str, end_at_last: str) -> str:
        """The end of a block that another one follows, where the last block of a conversation ends differently."""
        if role == "user" or not before:
            return end_at_last
        try:
            whole = self._probe((*before, role, "user"))
            user_begin = self._derive("user", False)[0]
        except RadixError:
            return end_at_last
        between = (
            whole.removesuffix(whole.rpartition(_PROBE)[2])
            .removesuffix(_PROBE)
            .rpartition(_PROBE)[2]
        )
        return between.removesuffix(user_begin) if between.endswith(user_begin) else end_at_last

    def _probe(self, roles: Sequence[str], add_generation_prompt: bool = False) -> str:
        return self._run(
            {
                **self._variables,
                "messages": [{"role": role, "content": _PROBE} for role in roles],
                "tools": None,
                "documents": None,
                "add_generation_prompt": add_generation_prompt,
            }
        )


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:300]}"
