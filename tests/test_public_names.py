"""The flat list of public names: complete, documented, nothing else."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import radixlm
from radixlm import errors


def test_the_list_is_sorted_and_without_repetition() -> None:
    assert radixlm.__all__ == sorted(set(radixlm.__all__))


@pytest.mark.parametrize("name", radixlm.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(radixlm, name)
    assert inspect.getdoc(value)
    if not isinstance(value, str):  # the name of a method, which is its own value
        assert value.__module__.startswith("radixlm.")
    assert name in dir(radixlm)


def test_all_errors_are_public() -> None:
    classes = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.RadixError)
    }
    assert classes <= set(radixlm.__all__)


def test_names_for_type_checkers_are_the_public_ones() -> None:
    source = inspect.getsource(radixlm)
    checked = source[source.index("if TYPE_CHECKING:") : source.index("__version__")]
    for name in radixlm.__all__:
        assert f"{name}," in checked or checked.count(f" {name}\n"), name


def test_unknown_names_are_attribute_errors_and_folders_are_modules() -> None:
    with pytest.raises(AttributeError, match="no attribute 'genn'"):
        _ = radixlm.genn
    code = "import radixlm; print(radixlm.lang.__name__, radixlm.errors.TimedOut.__name__)"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert out.stdout.split() == ["radixlm.lang", "TimedOut"]
