"""SGLang: `regex` and `ebnf` beside the OpenAI fields, schemas as `response_format` (chat) or `json_schema` (completions)."""

from __future__ import annotations

from ....grammar.spec import Choice, Gbnf, JsonSchema, Regex, Spec
from ..dialect import Dialect
from ..structured import Constrained, alternatives, cannot_enforce, schema_of, without_looks

_TITLE = "SGLang"


def _constrain(spec: Spec, is_chat: bool) -> Constrained:
    match spec:
        case Regex(pattern):
            return Constrained({"regex": without_looks(pattern, _TITLE)})
        case Choice():
            return Constrained({"regex": f"({alternatives(spec)})"})
        case Gbnf(text):
            return Constrained({"ebnf": text})
        case JsonSchema(text):
            if not is_chat:
                return Constrained({"json_schema": text})
            form = {"name": "answer", "schema": schema_of(spec), "strict": True}
            return Constrained({"response_format": {"type": "json_schema", "json_schema": form}})
        case _:
            raise cannot_enforce(spec, _TITLE, "It takes GBNF, not Lark")


DIALECTS = (
    Dialect(
        name="sglang",
        title=_TITLE,
        constrain=_constrain,
        owners=("sglang",),
        sampling={
            name: name
            for name in (
                "top_k",
                "min_p",
                "repetition_penalty",
                "min_tokens",
                "ignore_eos",
                "stop_token_ids",
            )
        },
        # the model's own generation config would decide otherwise
        always={"top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0},
        chat_prefix={"continue_final_message": True},
        has_echo=True,
        include_stop="no_stop_trim",
    ),
)
