"""The schema behind local references (#/$defs/Line), for those who look at a schema's shape. Validation has its own, complete way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

_MAX_STEPS = 32


def resolved(root: Mapping[str, Any], node: Any) -> dict[str, Any]:
    """The node behind its references, with what stands beside them; {} for anything that is no object, or not in this schema."""
    for _ in range(_MAX_STEPS):
        if not isinstance(node, Mapping):
            return {}
        this = dict(cast("Mapping[str, Any]", node))
        reference = this.pop("$ref", None)
        if not isinstance(reference, str):
            return this
        found = _at(root, reference)
        node = {**found, **this}
    return {}


def _at(root: Mapping[str, Any], reference: str) -> dict[str, Any]:
    found: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        found = cast("Mapping[str, Any]", found).get(key) if isinstance(found, Mapping) else None
    is_local = reference.startswith("#") and isinstance(found, Mapping)
    return dict(cast("Mapping[str, Any]", found)) if is_local else {}
