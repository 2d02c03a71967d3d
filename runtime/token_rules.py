"""What one new token does to its request: counts, logprobs, grammar, stop rules, limits. Owns the decision how a sample ends.

Order of the rules: EOS, stop token id, grammar refusal, stop string, complete grammar, output budget. The first that holds
is the ending. Sampled and forced tokens take the same road, so forcing changes no ending. Knows nothing of batches or pages.
"""

from __future__ import annotations

from .forcing import Forcer
from .messages import TokenLogprob
from .request import Ending, FinishReason, Request
from .vocab_facts import VocabFacts


class TokenRules:
    """The rules over one vocabulary. Methods that return `str | None` return what went wrong, None when all is well."""

    def __init__(self, facts: VocabFacts, forcer: Forcer) -> None:
        self._facts = facts
        self._forcer = forcer
        self._eos = frozenset(facts.eos_token_ids)

    def start(self, request: Request) -> str | None:
        """Before anything is computed: the request may be over at once, or begin with forced tokens."""
        if request.constraint is not None and request.constraint.is_complete:
            request.ending = Ending(FinishReason.STOP, grammar_complete=True)
        elif request.max_new_tokens == 0:
            request.ending = self._ending_by_limit(request)
        return self.force(request)

    def take(
        self, request: Request, token_id: int, logprob: TokenLogprob | None = None
    ) -> str | None:
        """Append a sampled token and decide whether it ends the sample."""
        if request.logprobs is not None:
            request.logprobs.append(logprob)
        return self._append(request, token_id)

    def force(self, request: Request) -> str | None:
        """Append what the grammar forces from here; may end the sample."""
        constraint = request.constraint
        if constraint is None or not request.sampling.jump_forward:
            return None
        while request.ending is None:
            forced = self._forcer.forced_tokens(
                constraint, request.tail_bytes, request.num_remaining
            )
            if not forced:
                return None
            for token_id in forced:
                if request.logprobs is not None:
                    request.logprobs.append(None)
                    request.pending_scores.append(request.num_tokens)
                request.num_forced += 1
                fault = self._append(request, token_id)
                if fault is not None or request.ending is not None:
                    return fault
        return None

    def end_early(self, request: Request) -> None:
        """No page is left for another token: the sample ends with what it has."""
        if request.ending is None:  # else only scores of its forced tokens were pending
            request.ending = self._ending_by_limit(request)
        request.pending_scores.clear()

    def _append(self, request: Request, token_id: int) -> str | None:
        request.tokens.append(token_id)
        if request.counts is not None:
            request.counts.add_output(token_id)
        if token_id in self._eos:
            complete = request.constraint.is_accepting if request.constraint is not None else None
            request.ending = Ending(FinishReason.STOP, grammar_complete=complete)
            return None
        text = self._facts.bytes_of(token_id)
        is_stop_id = (
            token_id in request.sampling.stop_token_ids
            and request.num_output > request.sampling.min_tokens
        )
        if is_stop_id and not request.sampling.include_stop:
            # The token's own text is cut, so the grammar is asked about the text before it.
            complete = request.constraint.is_accepting if request.constraint is not None else None
            cut = request.num_output_bytes if text else -1
            request.ending = Ending(FinishReason.STOP, token_id, cut, complete)
            return None
        if request.constraint is not None:
            fault = request.constraint.accept(token_id)
            if fault is not None:
                return fault
        request.num_output_bytes += len(text)
        request.tail_bytes = (request.tail_bytes + text)[-3:]
        request.ending = self._ending_after(request, token_id if is_stop_id else None, text)
        return None

    def _ending_after(self, request: Request, stop_id: int | None, text: bytes) -> Ending | None:
        constraint, sampling = request.constraint, request.sampling
        accepting = constraint.is_accepting if constraint is not None else None
        if stop_id is not None:
            return Ending(FinishReason.STOP, stop_id, grammar_complete=accepting)
        found = request.stop_strings.push(text) if request.stop_strings is not None else None
        if found is not None and request.num_output >= sampling.min_tokens:
            cut = found.end if sampling.include_stop else found.start
            complete = None if accepting is None else accepting and cut == request.num_output_bytes
            return Ending(FinishReason.STOP, found.stop, cut, complete)
        if constraint is not None and constraint.is_complete:
            return Ending(FinishReason.STOP, grammar_complete=True)
        return self._ending_by_limit(request) if request.num_remaining <= 0 else None

    def _ending_by_limit(self, request: Request) -> Ending:
        """A text that is a sentence of its grammar ends with "stop" whatever ended it: EOS costs no budget."""
        if request.constraint is None:
            return Ending(FinishReason.LENGTH)
        if request.constraint.is_accepting:
            return Ending(FinishReason.STOP, grammar_complete=True)
        return Ending(FinishReason.LENGTH, grammar_complete=False)
