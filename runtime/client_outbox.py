"""What waits for a slow client: bounded by the text it asked for, not by how slowly it reads.

New text of an output joins the text of it that still waits, so a client that stops reading costs at most its outputs once. Owns the
waiting messages of one client; knows no socket.
"""

from __future__ import annotations

from . import messages as m


class ClientOutbox:
    """Messages in order; deltas of one output are joined."""

    __slots__ = ("_messages", "_num_added")

    def __init__(self) -> None:
        self._messages: dict[tuple[object, ...], m.GatewayMessage] = {}  # in order of insertion
        self._num_added = 0

    def __len__(self) -> int:
        return len(self._messages)

    def add(self, message: m.GatewayMessage) -> None:
        """Queue a message behind what waits. A delta may move forward to an earlier one of its output: none crosses its end."""
        if isinstance(message, m.Delta):
            key: tuple[object, ...] = (message.request, message.index)
            waiting = self._messages.get(key)
            if isinstance(waiting, m.Delta):
                message = m.Delta(
                    message.request,
                    message.index,
                    waiting.text + message.text,
                    waiting.token_ids + message.token_ids,
                    waiting.logprobs + message.logprobs,
                )
        else:
            self._num_added += 1
            key = (self._num_added,)
        self._messages[key] = message

    def first(self) -> m.GatewayMessage:
        """The message to send next."""
        return next(iter(self._messages.values()))

    def drop_first(self) -> None:
        """The first message is on its way."""
        del self._messages[next(iter(self._messages))]
