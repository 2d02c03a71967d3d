"""Our own server spoken to as an OpenAI-compatible one. `radixlm.RuntimeEndpoint` tells more: ids, log-probabilities, exact errors."""

from __future__ import annotations

from ....grammar.spec import Choice, Gbnf, JsonSchema, Lark, Regex, Spec
from ..dialect import Dialect
from ..structured import Constrained, cannot_enforce, schema_of

_TITLE = "radixlm"


def _constrain(spec: Spec, is_chat: bool) -> Constrained:
    match spec:
        case Regex(pattern):
            return Constrained({"regex": pattern})
        case Choice(options):
            return Constrained({"choices": list(options)})
        case Lark(text) | Gbnf(text):
            return Constrained({"grammar": text})
        case JsonSchema():
            form = {
                "name": "answer",
                "schema": schema_of(spec),
                "any_order": spec.any_order,
                "whitespace": spec.whitespace,
            }
            return Constrained({"response_format": {"type": "json_schema", "json_schema": form}})
        case _:
            raise cannot_enforce(spec, _TITLE, "Use radixlm.RuntimeEndpoint")


DIALECTS = (
    Dialect(
        name="radixlm",
        title=_TITLE,
        constrain=_constrain,
        owners=("radixlm",),
        sampling={
            name: name
            for name in (
                "top_k",
                "min_p",
                "typical_p",
                "repetition_penalty",
                "min_tokens",
                "ignore_eos",
                "stop_token_ids",
            )
        },
        has_echo=True,
        include_stop="include_stop_str_in_output",
        namespace="cache_salt",
    ),
)
