"""Weights in groups as files store them: whole-number codes, a scale and a minimum for each group of neighbours in a row.

    weight = code * scale (+ minimum)

Owns that form alone. What reads files makes it (`gguf_blocks`, `packed_checkpoints`); `round_weights` turns it into what kernels take.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Groups:
    """Codes (uint8 or int8 [rows, n]), scales and minimums (float32 [rows, n / width])."""

    codes: Tensor
    scales: Tensor
    minimums: Tensor | None = None

    @property
    def width(self) -> int:
        """Weights that share a scale."""
        return self.codes.shape[1] // self.scales.shape[1]

    def to_floats(self) -> Tensor:
        """The weights, float32 [rows, n]."""
        values = self.codes.float().unflatten(1, (self.scales.shape[1], -1))
        values = values * self.scales[:, :, None]
        if self.minimums is not None:
            values = values + self.minimums[:, :, None]
        return values.flatten(1)
