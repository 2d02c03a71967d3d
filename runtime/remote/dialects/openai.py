"""OpenAI's own API, and whoever speaks it without additions: schemas in strict mode, everything else as one property of a schema."""

from __future__ import annotations

from ....grammar.spec import Spec
from ..dialect import Dialect
from ..structured import Constrained, cannot_enforce, closed, object_schema

_TITLE = "the OpenAI API"


def _constrain(spec: Spec, is_chat: bool) -> Constrained:
    if not is_chat:
        raise cannot_enforce(
            spec, _TITLE, "Its text completions take no constraint: use a chat model"
        )
    schema, wrapped = object_schema(spec, _TITLE)
    strict = closed(schema, _TITLE, all_required=True)
    form = {"name": "answer", "strict": True, "schema": strict}
    return Constrained({"response_format": {"type": "json_schema", "json_schema": form}}, wrapped)


DIALECTS = (
    Dialect(
        name="openai",
        title=_TITLE,
        constrain=_constrain,
        max_tokens_field="max_completion_tokens",
        max_stops=4,
    ),
)
