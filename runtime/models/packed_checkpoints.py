"""AWQ and GPTQ checkpoints: int32 words that hold several codes, apart from their zeros and scales.

Owns the two layouts, and which `quantization_config` they belong to. n codes (8 of 4 bits, 4 of 8 bits) lie in a word, lowest bits first;
`qweight`, `qzeros` and `scales` of a matrix [out, in] are:

    GPTQ   qweight [in / n, out]    a word holds n inputs of one output         weight = scale * (code - zero)
           qzeros [groups, out / n] zeros less one, or in checkpoint_format gptq_v2 the zeros
           scales [groups, out]
           g_idx [in]               the group of each input; with desc_act the groups are not neighbours
    AWQ    qweight [in, out / 8]    a word holds 8 outputs in the order 0 2 4 6 1 3 5 7
           qzeros [groups, out / 8] in the same order
           scales [groups, out]

Sources: the GPTQ and AWQ papers (arXiv 2210.17323, 2306.00978), and the checkpoint formats that GPTQModel and AutoAWQ document. A stored zero of all
ones is the zero 0 less one. Knows nothing of files, names of layers or kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...errors import ModelError
from .weight_groups import Groups

GROUP = 32  # what a packed group of the kernels holds
_AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
_SUPPORTED = "Supported are awq (4 bits, version gemm) and gptq (4 or 8 bits)"
_HINT = (
    f"{_SUPPORTED}; or take the model's float weights or a GGUF file of it, and --quantization int8"
)
_PLACE = "quantization_config"

Parts = Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class PackedFormat:
    """One of the layouts, with the numbers that the configuration gives."""

    method: str  # awq or gptq
    bits: int
    group_size: int  # inputs of a group; -1: all
    zero_offset: int  # what a stored zero lacks

    @property
    def codes_per_word(self) -> int:
        """Codes in an int32."""
        return 32 // self.bits

    def shape(self, qweight: tuple[int, ...]) -> tuple[int, int]:
        """(out, in) of the matrix whose `qweight` has that shape."""
        if len(qweight) != 2:
            raise ModelError(f"a {self.method} qweight of shape {list(qweight)} is no matrix")
        rows, columns = qweight
        if self.method == "awq":
            return columns * self.codes_per_word, rows
        return columns, rows * self.codes_per_word

    def unpack(self, name: str, parts: Parts) -> Groups | Tensor:
        """The matrix `name` in groups, or as floats where its groups are not neighbours. ModelError for parts that do not fit together."""
        num_out, num_in = self.shape(tuple(parts["qweight"].shape))
        num_groups = -(-num_in // self.group_size) if self.group_size > 0 else 1
        self._check(name, parts, num_groups, num_out)
        group_of = self._group_of_inputs(name, parts.get("g_idx"), num_in, num_groups)
        scales = parts["scales"].float()
        if self.method == "awq":
            codes = self._words(parts["qweight"], _AWQ_ORDER).T
            zeros = self._words(parts["qzeros"], _AWQ_ORDER)
        else:
            codes = self._words(parts["qweight"].T)
            zeros = self._words(parts["qzeros"])
        zeros = (zeros[:, :num_out] + self.zero_offset) & (2**self.bits - 1)
        minimums = -zeros.float() * scales
        if self.bits == 8:  # signed, as kernels take them
            minimums = minimums + 128 * scales
            codes = (codes.int() - 128).to(torch.int8)
        codes = codes.contiguous()
        firsts = group_of[::GROUP]
        if num_in % GROUP == 0 and torch.equal(firsts.repeat_interleave(GROUP), group_of):
            return Groups(codes, scales[firsts].T.contiguous(), minimums[firsts].T.contiguous())
        return codes.float() * scales[group_of].T + minimums[group_of].T

    def _words(self, words: Tensor, order: tuple[int, ...] | None = None) -> Tensor:
        """int32 [a, b] -> uint8 [a, b * codes in a word]."""
        shifts = torch.arange(0, 32, self.bits, dtype=torch.int32)
        codes = ((words.contiguous()[..., None] >> shifts) & (2**self.bits - 1)).to(torch.uint8)
        if order is not None:
            codes = codes[..., [order.index(place) for place in range(len(order))]]
        return codes.flatten(1)

    def _check(self, name: str, parts: Parts, num_groups: int, num_out: int) -> None:
        wanted = {
            "scales": (num_groups, num_out),
            "qzeros": (num_groups, -(-num_out // self.codes_per_word)),
        }
        for part, size in wanted.items():
            if tuple(parts[part].shape) != size:
                raise ModelError(
                    f"tensor '{name}.{part}' has shape {list(parts[part].shape)}, its qweight asks for {list(size)}",
                    place=f"{name}.{part}",
                )
        for part in ("qweight", "qzeros"):
            if parts[part].dtype != torch.int32:
                kind = str(parts[part].dtype).removeprefix("torch.")
                raise ModelError(
                    f"tensor '{name}.{part}' holds {kind}, not int32", place=f"{name}.{part}"
                )

    def _group_of_inputs(
        self, name: str, given: Tensor | None, num_in: int, num_groups: int
    ) -> Tensor:
        """int64 [in]. Without `g_idx` the groups are neighbours."""
        if given is None:
            return torch.arange(num_in) // (self.group_size if self.group_size > 0 else num_in)
        if given.shape != (num_in,) or given.amin() < 0 or given.amax() >= num_groups:
            raise ModelError(
                f"tensor '{name}.g_idx' does not give each of {num_in} inputs one of {num_groups} groups",
                place=f"{name}.g_idx",
            )
        return given.long()


def packed_format(settings: Mapping[str, Any] | None) -> PackedFormat | None:
    """The layout that a `quantization_config` names; None without one. ModelError for what cannot be read, by name."""
    if not settings:
        return None
    method = str(settings.get("quant_method", "")).lower()
    if method not in ("awq", "gptq"):
        raise _refused(f"weights quantized by {method or 'an unnamed method'} are not supported", "quant_method")  # fmt: skip
    bits = settings.get("bits", settings.get("w_bit"))
    if bits != 4 and not (bits == 8 and method == "gptq"):
        raise _refused(f"{method} weights of {bits} bits are not supported", "bits")
    if settings.get("dynamic"):
        raise _refused("gptq weights whose modules have bits of their own are not supported", "dynamic")  # fmt: skip
    group_size = settings.get("group_size", settings.get("q_group_size"))
    if not isinstance(group_size, int) or (group_size < 1 and group_size != -1):
        raise _refused(f"{method} weights in groups of {group_size} are not supported", "group_size")  # fmt: skip
    if method == "awq":
        version = str(settings.get("version", "gemm")).lower()
        if version != "gemm":
            raise _refused(f"awq weights of version {version} are not supported", "version")
        return PackedFormat(method, 4, group_size, 0)
    checkpoint_format = settings.get("checkpoint_format") or "gptq"
    if checkpoint_format not in ("gptq", "gptq_v2"):
        raise _refused(f"gptq weights of checkpoint_format {checkpoint_format} are not supported", "checkpoint_format")  # fmt: skip
    return PackedFormat(method, bits, group_size, int(checkpoint_format == "gptq"))


def _refused(problem: str, key: str) -> ModelError:
    return ModelError(problem, place=f"{_PLACE}.{key}", hint=_HINT)
