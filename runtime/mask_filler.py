"""Grammar masks of one step, filled while the forward pass runs where it runs beside the caller (a GPU, a spare core), else before
sampling. Owns the buffer they stand in; knows no model.

A grammar that fails here leaves an open mask, so that the batch can be sampled, and a fault that ends its own request.
"""

from __future__ import annotations

import numpy as np

from .bans import Bans
from .plan import U32
from .plan_builder import Step
from .request import Request

_EVERY_TOKEN = np.uint32(0xFFFFFFFF)


class MaskFiller:
    """Fills `masks` [M, ceil(V / 32)] in the order of `plan.sampling.mask_rows`."""

    def __init__(self, vocab_size: int, bans: Bans) -> None:
        self._bans = bans
        self._buffer: U32 = np.zeros((1, (vocab_size + 31) // 32), dtype=np.uint32)

    def fill(self, step: Step) -> tuple[U32 | None, dict[int, str]]:
        """The masks, valid until the next call (None without constrained rows), and the faults by sample index k."""
        mask_rows: list[int] = step.plan.sampling.mask_rows.tolist()
        if not mask_rows:
            return None, {}
        if len(mask_rows) > len(self._buffer):
            self._buffer = np.zeros((2 * len(mask_rows), self._buffer.shape[1]), dtype=np.uint32)
        faults: dict[int, str] = {}
        before: Request | None = None
        for m, k in enumerate(mask_rows):
            request, row = step.samples[k].request, self._buffer[m]
            if request is before:  # siblings drawing their first token from one row
                row[:] = self._buffer[m - 1]
                if k - 1 in faults:
                    faults[k] = faults[k - 1]
                continue
            before = request
            fault = self._fill_row(request, row)
            if fault is not None:
                row[:] = _EVERY_TOKEN
                faults[k] = fault
        return self._buffer[: len(mask_rows)], faults

    def _fill_row(self, request: Request, row: U32) -> str | None:
        if request.constraint is None:
            return "a constrained row has no grammar"
        try:
            request.constraint.fill_mask(row, request.num_remaining, self._bans.mask(request))
        except Exception as error:  # noqa: BLE001 - a defect of one grammar must not reach other requests
            return f"the grammar failed while its mask was made: {error!r}"
        return None if row.any() else "the grammar allows no token here"
