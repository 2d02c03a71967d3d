"""Where weights come from: the protocol that a family reads and both file formats provide.

Owns the checks at this border (a missing tensor, a wrong shape) and their messages. Knows nothing of any family's names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from torch import Tensor

from ...errors import ModelError
from ...kernels.ops import QuantizedWeight


class WeightSource(Protocol):
    """An open model: settings, and tensors by the names the file has."""

    @property
    def kind(self) -> Literal["gguf", "hf"]:
        """Which of the two naming schemes the file follows."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """GGUF metadata, or config.json."""
        ...

    def shape_of(self, name: str) -> tuple[int, ...] | None:
        """Shape [out, in] of a tensor, None when the file has no such tensor. Reads no data."""
        ...

    def read(self, name: str) -> Tensor:
        """The tensor's values in the source's working type (float32 or bfloat16), on the CPU. ModelError when absent or damaged."""
        ...

    def read_weight(self, name: str) -> Tensor | QuantizedWeight:
        """As `read`, but where the source was opened so a matrix comes as the file stores it: quantized, or floats of another type."""
        ...


def read_checked(source: WeightSource, name: str, shape: tuple[int, ...]) -> Tensor:
    """The tensor `name`, which must have `shape`; ModelError naming it otherwise."""
    check_shape(source, name, shape)
    return source.read(name)


def check_shape(source: WeightSource, name: str, shape: tuple[int, ...]) -> None:
    """ModelError when there is no tensor `name`, or it has another shape."""
    found = source.shape_of(name)
    if found is None:
        raise ModelError(
            f"the model has no tensor {name!r}",
            place=name,
            hint="The file is incomplete or of another family",
        )
    if found != shape:
        raise ModelError(
            f"tensor {name!r} has shape {list(found)}, its configuration asks for {list(shape)}",
            place=name,
        )


def setting(
    settings: Mapping[str, Any], name: str, kind: type[int] | type[float], default: Any = None
) -> Any:
    """The number `name` of `settings` as `kind`; ModelError when it is missing (and has no default) or no number."""
    value = settings.get(name)
    if value is None:
        value = default
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or (kind is int and value != int(value))
    ):
        problem = "lacks" if value is None else f"has {value!r} for"
        raise ModelError(f"the model's configuration {problem} {name!r}", place=name)
    return kind(value)
