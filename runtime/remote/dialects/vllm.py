"""vLLM: `structured_outputs`, or `guided_*` before version 0.12; tokens come as ids; prompts are scored by echo."""

from __future__ import annotations

from typing import Any

from ....grammar.spec import Choice, Gbnf, JsonSchema, Lark, Regex, Spec
from ..dialect import Dialect
from ..structured import Constrained, cannot_enforce, schema_of, without_looks

_TITLE = "vLLM"
_SAMPLING = {
    name: name
    for name in (
        "top_k",
        "min_p",
        "repetition_penalty",
        "min_tokens",
        "ignore_eos",
        "stop_token_ids",
    )
}
# the model's own generation config would decide otherwise
_NEUTRAL = {"top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}


def _kind_and_value(spec: Spec) -> tuple[str, Any]:
    match spec:
        case Regex(pattern):
            return "regex", without_looks(pattern, _TITLE)
        case Choice(options):
            return "choice", list(options)
        case JsonSchema():
            return "json", schema_of(spec)
        case Lark(text) | Gbnf(text):
            return "grammar", text
        case _:
            raise cannot_enforce(spec, _TITLE)


def _structured_outputs(spec: Spec, is_chat: bool) -> Constrained:
    kind, value = _kind_and_value(spec)
    return Constrained({"structured_outputs": {kind: value}})


def _guided(spec: Spec, is_chat: bool) -> Constrained:
    kind, value = _kind_and_value(spec)
    return Constrained({f"guided_{kind}": value})


def _dialect(name: str, owners: tuple[str, ...], constrain: Any) -> Dialect:
    return Dialect(
        name=name,
        title=_TITLE,
        constrain=constrain,
        owners=owners,
        sampling=_SAMPLING,
        always=_NEUTRAL,
        chat_prefix={"continue_final_message": True, "add_generation_prompt": False},
        has_echo=True,
        logprob_ids={"return_tokens_as_token_ids": True},
        include_stop="include_stop_str_in_output",
        namespace="cache_salt",
    )


DIALECTS = (
    _dialect("vllm", ("vllm",), _structured_outputs),
    _dialect("vllm-guided", (), _guided),
)
