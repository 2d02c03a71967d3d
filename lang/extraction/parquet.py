"""Rows from JSON lines into a Parquet file. Owns the mapping from JSON Schema to Arrow types; needs the extra `parquet` (pyarrow).

    string -> string    integer -> int64    number -> float64    boolean -> bool    array of one type -> list
    object of declared properties only -> struct    each of them or null -> the same    anything else -> its JSON text

The file is written beside its place and moved there when it is whole. Must not know jobs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from ...errors import ConfigError
from .references import resolved
from .verdict import write_value

_BATCH_ROWS = 4096
_SCALARS = {"string": "string", "integer": "int64", "number": "float64", "boolean": "bool_"}


def require_pyarrow() -> Any:
    """pyarrow. ConfigError if it is not installed."""
    try:
        import_module("pyarrow.parquet")
        return import_module("pyarrow")
    except ImportError as error:
        raise ConfigError(
            f"Parquet needs pyarrow: {error}", place="output", hint="pip install 'radixlm[parquet]'"
        ) from None


def write_parquet(lines: Path, output: Path, schema: Mapping[str, Any]) -> None:
    """Turn the rows of `lines` into `output`, a batch at a time. A value that its type cannot hold makes all values JSON texts."""
    arrow = require_pyarrow()
    value_type = _Types(arrow, schema).of(schema)
    unfinished = output.with_name(f".{output.name}.part")
    try:
        _write(arrow, lines, unfinished, value_type)
    except (
        arrow.ArrowInvalid,
        arrow.ArrowTypeError,
        OverflowError,
    ):  # 10**30 in an unbounded integer
        _write(arrow, lines, unfinished, None)
    os.replace(unfinished, output)


def _write(arrow: Any, lines: Path, path: Path, value_type: Any) -> None:
    kind = arrow.string() if value_type is None else value_type
    columns: Any = arrow.schema(
        [("source", arrow.string()), ("index", arrow.int64()), ("value", kind)]
    )
    with import_module("pyarrow.parquet").ParquetWriter(path, columns) as writer:
        for rows in _batches(lines):
            for row in rows:
                row["value"] = _fitted(arrow, row["value"], kind)
            writer.write_table(arrow.Table.from_pylist(rows, schema=columns))
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _batches(lines: Path) -> Iterator[list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    with lines.open("rb") as file:
        for line in file:
            rows.append(json.loads(line))
            if len(rows) == _BATCH_ROWS:
                yield rows
                rows = []
    if rows:
        yield rows


def _fitted(arrow: Any, value: Any, kind: Any) -> Any:
    """The value with JSON text where its column is text and it is none, and whole floats where the column holds integers."""
    if value is None:
        return None
    if arrow.types.is_string(kind):
        text = value if isinstance(value, str) else write_value(value)
        return text.encode(errors="replace").decode()
    if arrow.types.is_list(kind) and isinstance(value, list):
        return [_fitted(arrow, item, kind.value_type) for item in cast("list[Any]", value)]
    if arrow.types.is_struct(kind) and isinstance(value, dict):
        inner = cast("dict[str, Any]", value)
        return {field.name: _fitted(arrow, inner.get(field.name), field.type) for field in kind}
    if arrow.types.is_floating(kind) and isinstance(value, int):
        return float(value)
    return int(value) if isinstance(value, float) and arrow.types.is_integer(kind) else value


class _Types:
    """Arrow types for the parts of one schema."""

    def __init__(self, arrow: Any, root: Mapping[str, Any]) -> None:
        self._arrow = arrow
        self._root = root

    def of(self, schema: Any, depth: int = 0) -> Any:
        """The type of the values of a schema."""
        node = self._plain(schema)
        kind = node.get("type")
        if isinstance(kind, str) and kind in _SCALARS:
            return getattr(self._arrow, _SCALARS[kind])()
        if depth > 16:
            return self._arrow.string()
        items = node.get("items")
        if kind == "array" and isinstance(items, dict) and "prefixItems" not in node:
            return self._arrow.list_(self.of(items, depth + 1))
        declared = node.get("properties")
        is_closed = node.get("additionalProperties") is False and "patternProperties" not in node
        if kind == "object" and isinstance(declared, dict) and declared and is_closed:
            parts = cast("dict[str, Any]", declared).items()
            return self._arrow.struct([(name, self.of(part, depth + 1)) for name, part in parts])
        return self._arrow.string()

    def _plain(self, schema: Any) -> dict[str, Any]:
        """The schema without its reference, and without "or null"."""
        node = resolved(self._root, schema)
        for word in ("anyOf", "oneOf"):
            if word in node:
                parts = [resolved(self._root, part) for part in node[word]]
                others = [part for part in parts if part.get("type") != "null"]
                node = others[0] if len(others) == 1 else {}
        kind = node.get("type")
        if isinstance(kind, list):
            kinds = [one for one in cast("list[Any]", kind) if one != "null"]
            return {**node, "type": kinds[0]} if len(kinds) == 1 else {}
        if "enum" in node and "type" not in node:
            texts = all(isinstance(value, str) or value is None for value in node["enum"])
            return {"type": "string"} if texts else {}
        return node
