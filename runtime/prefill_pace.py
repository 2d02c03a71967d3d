"""How many prompt tokens a step may compute beside running streams, from what steps have cost so far.

Every stream waits for the whole step, so the prompt's part of it is the pause that a stream sees. Two costs are learned as moving
averages: a step of streams alone, and one prompt token more. A step may then last `pause_s`, or a few times what the streams
alone take where that is longer: otherwise, on a slow machine, most of each step would go to the streams and no prompt would end.

Owns the two averages. Pure: it is told what a step held and how long it took; knows no clock, request or model.
"""

from __future__ import annotations

from dataclasses import dataclass

_FIRST_TOKENS = 128  # before anything was measured
_MIN_TOKENS = 16  # fewer would cost more in fixed parts than in tokens
_STREAM_STEPS = 6  # a step with prompts may last as long as so many steps of streams alone
_WEIGHT = 0.2  # of the newest step in the averages
_WEIGHT_DOWN = (
    0.5  # of a cheaper one: a machine that was away makes steps dear, nothing makes them too cheap
)
_MAX_CHANGE = 2.0  # one step's cost counts as at most so many times the average


@dataclass(slots=True)
class PrefillPace:
    """The bound of the next step. `max_tokens`: what a step holds at most; `pause_s`: how long it should last."""

    max_tokens: int
    pause_s: float
    stream_s: float | None = None  # a step of streams alone; None: not seen yet
    token_s: float | None = None  # one prompt token more; None: not seen yet
    num_steps: int = (
        0  # with prompts; the first one reads the weights from disk and teaches nothing
    )

    def num_tokens(self) -> int:
        """Prompt tokens for the next step that has streams."""
        if self.token_s is None:
            return min(_FIRST_TOKENS, self.max_tokens)
        stream_s = self.stream_s or 0.0
        room_s = max(self.pause_s, _STREAM_STEPS * stream_s) - stream_s
        if room_s >= self.max_tokens * self.token_s:
            return self.max_tokens
        return min(max(int(room_s / self.token_s), _MIN_TOKENS), self.max_tokens)

    def note(self, num_streams: int, num_tokens: int, seconds: float) -> None:
        """A step computed `num_tokens` tokens, `num_streams` of them each the one token of a stream."""
        num_prompt = num_tokens - num_streams
        if num_streams and not num_prompt:
            self.stream_s = _moved(self.stream_s, seconds)
        elif num_prompt >= _MIN_TOKENS:
            self.num_steps += 1
            beside_s = (self.stream_s or 0.0) if num_streams else 0.0
            if self.num_steps > 1:
                self.token_s = _moved(self.token_s, max(seconds - beside_s, 0.0) / num_prompt)


def _moved(average: float | None, value: float) -> float:
    if average is None or value < average:
        return value if average is None else average + _WEIGHT_DOWN * (value - average)
    return average + _WEIGHT * (min(value, average * _MAX_CHANGE) - average)
