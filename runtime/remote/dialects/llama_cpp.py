"""llama.cpp's server: `json_schema` and `grammar` (GBNF); a chat whose last message is the assistant's is continued."""

from __future__ import annotations

from ....grammar.spec import Choice, Gbnf, JsonSchema, Spec
from ..dialect import Dialect
from ..structured import Constrained, gbnf_of, object_schema, schema_of

_TITLE = "llama.cpp"


def _constrain(spec: Spec, is_chat: bool) -> Constrained:
    match spec:
        case Choice():
            return Constrained({"grammar": gbnf_of(spec)})
        case Gbnf(text):
            return Constrained({"grammar": text})
        case JsonSchema():
            return Constrained({"json_schema": schema_of(spec)})
        case _:
            schema, wrapped = object_schema(spec, _TITLE)  # a regex: a pattern in an object
            return Constrained({"json_schema": schema}, wrapped)


DIALECTS = (
    Dialect(
        name="llama.cpp",
        title=_TITLE,
        constrain=_constrain,
        owners=("llamacpp", "llama.cpp"),
        sampling={
            **{name: name for name in ("top_k", "min_p", "typical_p", "ignore_eos")},
            "repetition_penalty": "repeat_penalty",
        },
        # its own defaults are top_k 40, top_p 0.95, min_p 0.05
        always={"top_p": 1.0, "top_k": 0, "min_p": 0.0, "typical_p": 1.0, "repeat_penalty": 1.0},
        has_short_default=False,
        has_n=False,
        chat_prefix={},
    ),
)
