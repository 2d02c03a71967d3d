"""Checks of the Triton kernels that need a process of their own; prints {name: "ok" or the error} as one JSON line.

Triton decides when a kernel is decorated whether it will be interpreted, so one process cannot do both:
`python triton_checks.py interpret` (with TRITON_INTERPRET=1) compares with the reference, `python triton_checks.py compile` compiles for
NVIDIA architectures, for which no device is needed.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import traceback
from collections.abc import Callable

import torch
from attention_cases import attention_case, decoder_shape

Check = Callable[[], None]


def interpret_checks() -> dict[str, Check]:
    """Kernels against the reference, random shapes."""
    from radixlm.kernels.reference.backend import ReferenceOps
    from radixlm.kernels.triton.ops import TritonOps

    ours, reference = TritonOps(), ReferenceOps()

    def norm(rows: int, width: int, dtype: torch.dtype) -> None:
        generator = torch.Generator().manual_seed(rows * width)
        x, residual = (torch.randn(rows, width, generator=generator).to(dtype) for _ in range(2))
        weight = torch.randn(width, generator=generator).to(dtype)
        tolerance = 1e-5 if dtype == torch.float32 else 2e-2
        torch.testing.assert_close(
            ours.rms_norm(x, weight, 1e-5),
            reference.rms_norm(x, weight, 1e-5),
            atol=tolerance,
            rtol=tolerance,
        )
        found = ours.add_rms_norm(x.clone(), residual.clone(), weight, 1e-5)
        expected = reference.add_rms_norm(x.clone(), residual.clone(), weight, 1e-5)
        torch.testing.assert_close(found, expected, atol=tolerance, rtol=tolerance)

    def attention(
        sizes: list[tuple[int, int]],
        heads: tuple[int, int, int],
        page_size: int,
        dtype: torch.dtype,
    ) -> None:
        from radixlm.kernels.ops import Rope

        case = attention_case(len(sizes), sizes, shape=decoder_shape(*heads), page_size=page_size)
        kv = dataclasses.replace(case.kv, storage=case.kv.storage.to(dtype))
        rope = Rope(torch.ones(heads[2] // 2))
        found, expected = (
            ops.attention(case.q.to(dtype), 0, kv, ops.begin_step(case.batch, case.shape, rope, kv))
            for ops in (ours, reference)
        )
        tolerance = 1e-5 if dtype == torch.float32 else 2e-2
        torch.testing.assert_close(found, expected, atol=tolerance, rtol=tolerance)

    def same_bits() -> None:
        """A sequence's row alone, among others and over pages of another size: equal to the last bit."""
        from radixlm.kernels.triton.paged_decode_attention import paged_decode_attention

        generator = torch.Generator().manual_seed(0)
        length, q = 150, torch.randn(1, 4, 16, generator=generator)
        keys, values = (torch.randn(length, 2, 16, generator=generator) for _ in range(2))
        found = []
        for page_size, num_sequences in ((64, 1), (16, 3), (1, 1)):
            num_pages = -(-length // page_size)
            pages = torch.randperm(num_pages, generator=generator)
            pools = []
            for source in (keys, values):
                pool = torch.zeros(num_pages * page_size, 2, 16)
                slots = (
                    pages[torch.arange(length) // page_size] * page_size
                    + torch.arange(length) % page_size
                )
                pool[slots] = source
                pools.append(pool)
            out = torch.zeros(num_sequences, 64)
            lengths = torch.tensor([5] * (num_sequences - 1) + [length], dtype=torch.int32)
            tables = pages.int().expand(num_sequences, -1).contiguous()
            rows = torch.arange(num_sequences)
            paged_decode_attention(
                out,
                q.expand(num_sequences, -1, -1).contiguous(),
                *pools,
                rows,
                lengths,
                tables,
                page_size,
            )
            found.append(out[-1])
        assert all(torch.equal(row, found[0]) for row in found)

    float32, bfloat16 = torch.float32, torch.bfloat16
    return {
        "norm of one row": lambda: norm(1, 576, float32),
        "norm of odd widths": lambda: norm(5, 37, float32),
        "norm in bfloat16": lambda: norm(3, 64, bfloat16),
        "decode, grouped heads": lambda: attention(
            [(63, 1), (64, 1), (130, 1), (0, 1)], (6, 2, 16), 16, float32
        ),
        "decode, one head each, odd head size": lambda: attention(
            [(70, 1), (5, 1)], (3, 3, 12), 4, float32
        ),
        "decode beside chunks": lambda: attention(
            [(70, 1), (20, 40), (9, 3), (100, 1)], (6, 2, 16), 16, float32
        ),
        "chunks only": lambda: attention([(20, 40), (9, 3)], (6, 2, 16), 16, float32),
        "decode in bfloat16": lambda: attention([(70, 1), (90, 1)], (4, 2, 16), 8, bfloat16),
        "same bits in any company": same_bits,
    }


def compile_checks() -> dict[str, Check]:
    """Each kernel to machine code of each architecture."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from radixlm.kernels.triton.paged_decode_attention import paged_decode_attention_kernel
    from radixlm.kernels.triton.rms_norm import rms_norm_kernel

    def compiled(
        kernel,
        pointers: dict[str, str],
        scalars: dict[str, str],
        constants: dict[str, object],
        capability: int,
    ) -> None:
        signature = pointers | scalars | dict.fromkeys(constants, "constexpr")
        source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
        binary = triton.compile(
            source, target=GPUTarget("cuda", capability, 32), options={"enable_fp_fusion": True}
        )
        assert f"sm_{capability}" in binary.asm["ptx"]
        assert len(binary.asm["cubin"]) > 1000

    norm_names = ("normed_ptr", "summed_ptr", "x_ptr", "residual_ptr", "weight_ptr")
    norm_constants = {"hidden_size": 576, "block": 1024, "has_residual": True}
    attention_names = ("out_ptr", "q_ptr", "keys_ptr", "values_ptr")
    indices = {"rows_ptr": "*i64", "context_lens_ptr": "*i32", "page_tables_ptr": "*i32"}
    scalars = {"q_stride": "i32", "table_stride": "i32", "scale": "fp32"}
    attention_constants = {"num_kv_heads": 3, "group_size": 3, "group_block": 16, "head_dim": 64}
    attention_constants |= {"head_block": 64, "page_size": 16, "key_block": 64}

    def norm(kind: str, capability: int) -> None:
        pointers = dict.fromkeys(norm_names, kind)
        compiled(rms_norm_kernel, pointers, {"epsilon": "fp32"}, norm_constants, capability)

    def attention(kind: str, capability: int) -> None:
        pointers = dict.fromkeys(attention_names, kind) | indices
        compiled(paged_decode_attention_kernel, pointers, scalars, attention_constants, capability)

    return {
        "rms_norm for sm_80": lambda: norm("*fp32", 80),
        "rms_norm for sm_90": lambda: norm("*bf16", 90),
        "paged_decode_attention for sm_80": lambda: attention("*fp32", 80),
        "paged_decode_attention for sm_90": lambda: attention("*bf16", 90),
    }


def main(mode: str) -> None:
    """Run the checks of `mode` and print their outcomes."""
    torch.set_num_threads(1)
    outcomes = {}
    for name, check in {"interpret": interpret_checks, "compile": compile_checks}[mode]().items():
        try:
            check()
            outcomes[name] = "ok"
        except Exception:  # noqa: BLE001  (any failure is the outcome to report)
            outcomes[name] = traceback.format_exc()
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1])
