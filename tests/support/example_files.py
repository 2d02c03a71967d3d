"""The programs in `examples/`, imported by their path."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def load(name: str) -> ModuleType:
    """The module of `examples/{name}.py`, new."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where pydantic looks up what annotations name
    spec.loader.exec_module(module)
    return module


def names() -> list[str]:
    """Of all examples."""
    return sorted(path.stem for path in EXAMPLES.glob("*.py"))
