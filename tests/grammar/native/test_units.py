"""The native sources are built as two translation units, which must name them all."""

from __future__ import annotations

from pathlib import Path

import pytest

import radixlm.grammar.native

SOURCE = Path(radixlm.grammar.native.__file__).parent / "src"


@pytest.mark.parametrize("half", ["compile", "match"])
def test_a_unit_includes_every_source_of_its_half(half: str) -> None:
    unit = (SOURCE / f"unit_{half}.cpp").read_text()
    named = {line.split('"')[1] for line in unit.splitlines() if line.startswith("#include")}
    assert named == {path.name for path in SOURCE.glob(f"{half}_*.cpp")}
