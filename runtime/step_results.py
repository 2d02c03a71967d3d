"""What a StepResult means for the requests of its step. Owns the way from arrays back to tokens, logprobs and new samples.

For each row in turn: scores, cursor, then sampled tokens through the token rules. A row's own failure (no finite logit, a
grammar that refuses) is returned as a fault of that request; nothing here raises for one request's sake. Knows nothing of
queues or messages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..errors import ServiceError
from .messages import TokenLogprob
from .plan import Logprobs, StepResult
from .plan_builder import Step
from .request import Request
from .sampling_batch import SampleRow
from .token_rules import TokenRules


@dataclass(slots=True)
class Applied:
    """Outcome of one step, by request."""

    touched: list[Request] = field(default_factory=list[Request])  # got a token or a score
    born: list[Request] = field(default_factory=list[Request])  # siblings that start to live now
    faults: list[tuple[Request, str]] = field(default_factory=list[tuple[Request, str]])
    num_sampled: int = 0
    num_forced: int = 0


class ResultReader:
    """Applies results. `new_key` names siblings."""

    def __init__(self, rules: TokenRules, new_key: Callable[[], int]) -> None:
        self._rules = rules
        self._new_key = new_key

    def apply(self, step: Step, result: StepResult, mask_faults: dict[int, str]) -> Applied:
        """Record scores, append sampled tokens, make siblings. Cursors must have moved already.

        `mask_faults` maps k, an index into the step's samples, to the failure of its grammar mask.
        """
        if len(result.token_ids) != len(step.samples):
            raise ServiceError(
                f"the runner returned {len(result.token_ids)} tokens for {len(step.samples)} samples"
            )
        applied = Applied()
        self._record_scores(step, result, applied)
        row_faults = {**dict(result.errors), **mask_faults}
        siblings = self._fork(step.samples, applied)
        for k, (sample, request) in enumerate(zip(step.samples, siblings, strict=True)):
            fault = row_faults.get(k)
            token_id = int(result.token_ids[k])
            if fault is None and token_id < 0:
                fault = "no token could be sampled"
            if fault is None:
                logprob = None
                if request.logprobs is not None:
                    logprob = _logprob(
                        result.logprobs, k, token_id, sample.request.sampling.logprobs or 0
                    )
                fault = self._take(request, token_id, logprob, applied)
            if fault is not None:
                applied.faults.append((request, fault))
            applied.touched.append(request)
        return applied

    def _take(
        self, request: Request, token_id: int, logprob: TokenLogprob | None, applied: Applied
    ) -> str | None:
        forced_before = request.num_forced
        try:
            fault = self._rules.take(request, token_id, logprob) or self._rules.force(request)
        except Exception as error:  # noqa: BLE001 - a grammar that raises ends its own request only
            fault = f"the grammar failed: {error!r}"
        applied.num_sampled += 1
        applied.num_forced += request.num_forced - forced_before
        return fault

    def _record_scores(self, step: Step, result: StepResult, applied: Applied) -> None:
        for q, (request, position) in enumerate(step.scores):
            wanted = (
                request.sampling.prompt_logprobs
                if position < request.num_prompt
                else request.sampling.logprobs
            )
            logprob = _logprob(result.scores, q, request.tokens[position], wanted or 0)
            request.submission.record_score(request, position, logprob)
            request.pending_scores.popleft()
            if not applied.touched or applied.touched[-1] is not request:
                applied.touched.append(request)

    def _fork(self, samples: list[SampleRow], applied: Applied) -> list[Request]:
        """The request of each sample row; the rows of a submission's first token get their siblings here."""
        owners: list[Request] = []
        for sample in samples:
            parent = sample.request
            if sample.choice == parent.choice:
                owners.append(parent)
                continue
            sibling = parent.sibling(self._new_key(), sample.choice)
            parent.submission.requests.append(sibling)
            parent.submission.is_forked = True
            applied.born.append(sibling)
            owners.append(sibling)
        return owners


def _logprob(source: Logprobs | None, row: int, token_id: int, num_top: int) -> TokenLogprob:
    if source is None:
        raise ServiceError("the runner returned no log-probabilities though they were asked for")
    ids, values = source.top_ids[row, :num_top].tolist(), source.top_values[row, :num_top].tolist()
    top = tuple((i, v) for i, v in zip(ids, values, strict=True) if i >= 0)
    return TokenLogprob(token_id, float(source.chosen[row]), top)
