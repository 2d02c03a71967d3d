"""Constraints that a server refuses, each with the place in the body that its error names and words that say why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SCHEMA_PLACE = "response_format.json_schema.schema"
# many empty and overlapping ways through repeats that cannot be copied: nobody makes it small in two seconds
HARD_PATTERN = (
    r"(a\w(?P<n>a)|([^\W\d]|(?m:^a$)|(?<!b)){2,}|((?:[a-cx-z](?s:.)\s)?|(\Wé(?m:^a$))*|(^|[^a]|(?:)){5,100})|\B|\x41|(?!b))*?"
)  # fmt: skip


@dataclass(frozen=True)
class Bad:
    """What is added to a request, the `param` of its refusal, and a part of the message."""

    body: dict[str, Any]
    place: str
    words: str


def _schema(schema: Any, place: str, words: str) -> Bad:
    form = {"name": "x", "schema": schema}
    body = {"response_format": {"type": "json_schema", "json_schema": form}}
    return Bad(body, SCHEMA_PLACE + place, words)


def _nested(depth: int) -> Any:
    schema: Any = {"type": "integer"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return schema


def _property(schema: Any) -> Any:
    return {"type": "object", "properties": {"a": schema}, "required": ["a"]}


def _custom_tool(definition: str) -> dict[str, Any]:
    form = {"type": "grammar", "grammar": {"syntax": "lark", "definition": definition}}
    return {"tools": [{"type": "custom", "custom": {"name": "f", "format": form}}]}


def _strict_tool(schema: Any) -> dict[str, Any]:
    return {"tools": [{"type": "function", "function": {"name": "f", "strict": True, "parameters": schema}}]}  # fmt: skip


BAD = {
    "unknown type": _schema(_property({"type": "strin"}), "#/properties/a/type", "not 'strin'"),
    "unsatisfiable": _schema(_property({"type": "integer", "minimum": 5, "maximum": 3}), "", "no value satisfies"),
    "self-loop": _schema({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "#/$defs/a", "refers to itself"),
    "endless value": _schema(_property({"$ref": "#"}), "", "no value satisfies"),
    "reference to nowhere": _schema({"items": {"$ref": "#/$defs/b"}}, "#/items/$ref", "leads nowhere"),
    "reference to the net": _schema({"items": {"$ref": "http://localhost/x"}}, "#/items/$ref", "nothing is fetched"),
    "bad pattern in a schema": _schema(_property({"type": "string", "pattern": "[z"}), "#/properties/a/pattern", "pattern"),
    "huge schema": _schema({"enum": [f"{number:01000}" for number in range(1_200)]}, "", "spec_bytes"),
    "deep schema": _schema(_nested(250), "", "depth=200"),
    "large enum": _schema({"enum": list(range(100_001))}, "#/enum", "choices=100000"),
    "hard pattern": Bad({"regex": HARD_PATTERN}, "regex", "2 s of processor time"),
    "product of patterns": Bad({"regex": r"(?=.*a.{30}b)(?=.*c.{20}d)[a-z]*"}, "regex", "product_states"),
    "backreference": Bad({"regex": r"(a)\1"}, "regex", "backreference cannot be part of a constraint (column 4)"),
    "open bracket": Bad({"regex": "ab(c"}, "regex", "(column 3)"),
    "long repeat": Bad({"regex": "a{2000000}"}, "regex", "repeat_bound"),
    "many choices": Bad({"choices": [str(number) for number in range(100_001)]}, "choices", "limits.choices"),
    "lark": Bad({"grammar": 'start: a\na: "x" |\n  b c\n'}, "grammar", "a colon is needed behind the name b\n      b c\n        ^ (3:5)"),
    "gbnf": Bad({"grammar": 'root ::= "a" |\n  (b'}, "grammar", "needs its )\n      (b\n        ^ (2:5)"),
    "custom tool": Bad(_custom_tool("start: x"), "tools[0].custom.format.grammar.definition", "the rule x is not defined"),
    "strict tool": Bad(_strict_tool(_property({"type": "string", "pattern": "[z"})), "tools[0].function.parameters#/properties/a/pattern", "pattern"),
    "two constraints": Bad({"regex": "a", "choices": ["b"]}, "choices", "takes one constraint, not regex and choices"),
}  # fmt: skip
