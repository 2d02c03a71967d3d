"""The scheduler's few numbers, in one frozen place. Owns their defaults, their meaning and their mutual consistency.

Sized for a small CPU; a GPU wants larger ones. Knows nothing of requests or models.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import ConfigError


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """Bounds of one step and the exchange rates of the waiting order."""

    max_tokens_per_step: int = 512  # tokens computed in one step, all sequences together
    max_running: int = 64  # sequences that hold pages and compute
    max_prefill_tokens_beside_decode: int = (
        128  # of them, for prompts, while any stream is running; 0: as many as measured costs allow
    )
    prefill_pause_s: float = 0.1  # then a step with streams and prompts should last no longer
    aging_tokens_per_step: float = (
        8.0  # one step of waiting is worth this many tokens of cached prefix
    )
    max_candidates_per_step: int = (
        16  # waiting requests looked up in the cache for admission, per step
    )
    max_refreshes_per_step: int = (
        4  # other waiting requests whose cached prefix is measured again, per step
    )
    min_follow_tokens: int = 4  # wait for a running leader only if that saves this many tokens
    max_programs: int = 64  # loaded grammars kept beyond those in use
    max_program_bytes: int = 64 << 20  # of them, about; the one used last is kept whatever its size

    def __post_init__(self) -> None:
        """Raise ConfigError naming the first number that cannot work."""
        for name in (
            "max_tokens_per_step",
            "max_running",
            "max_candidates_per_step",
            "min_follow_tokens",
            "max_programs",
        ):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)!r} is less than 1", place=name)
        if self.max_prefill_tokens_beside_decode < 0 or self.prefill_pause_s <= 0:
            raise ConfigError(
                "max_prefill_tokens_beside_decode is at least 0, prefill_pause_s above 0",
                place="max_prefill_tokens_beside_decode",
            )
        if self.aging_tokens_per_step <= 0:
            raise ConfigError(
                f"aging_tokens_per_step={self.aging_tokens_per_step!r} is not above 0: requests could wait for ever",
                place="aging_tokens_per_step",
            )
        if self.max_program_bytes < 0:
            raise ConfigError(
                f"max_program_bytes={self.max_program_bytes!r} is negative",
                place="max_program_bytes",
            )
        if self.max_refreshes_per_step < 0:
            raise ConfigError(
                f"max_refreshes_per_step={self.max_refreshes_per_step!r} is negative",
                place="max_refreshes_per_step",
            )
        if self.max_running > self.max_tokens_per_step:
            # Every running stream must get its token each step, and one token must remain for a prompt.
            raise ConfigError(
                f"max_running={self.max_running} exceeds max_tokens_per_step={self.max_tokens_per_step}",
                place="max_running",
            )
