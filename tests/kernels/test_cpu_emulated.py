"""Instruction sets that this machine may lack: their linear layers, compiled with every instruction emulated, against the reference.

Needs a compiler and SIMDe's headers (Debian: libsimde-dev). Emulated FMA rounds twice, so sums differ in the last bits; the integers do not.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from native_linears import STORED, defined, head_of, magnitude_of, rows_of

import radixlm
from radixlm.kernels.cpu.packing import pack

SOURCE = Path(radixlm.__file__).parent / "kernels" / "cpu" / "src"
HEADERS = Path(__file__).parent.parent / "support" / "emulated"
MACROS = {
    "avxvnni": ["-D__AVX2__", "-D__F16C__", "-D__AVXVNNI__"],
    "avx512vnni": ["-D__AVX2__", "-D__F16C__", "-D__AVX512VNNI__"],
}


def compiled(isa: str, folder: Path) -> ctypes.CDLL:
    """The linear layers of that instruction set, on instructions that any machine has."""
    if not (compiler := shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("there is no C++ compiler")
    if not any(Path(root, "simde").exists() for root in ("/usr/include", "/usr/local/include")):
        pytest.skip("SIMDe's headers are not installed")
    target = folder / f"{isa}.so"
    flags = ["-O1", "-std=c++17", "-fPIC", "-shared", "-w", "-ffp-contract=off"]
    flags += [f"-I{HEADERS}", f"-I{SOURCE}", f"-DRADIX_ISA={isa}", *MACROS[isa]]
    subprocess.run(
        [compiler, *flags, str(HEADERS / "linear_only.cpp"), "-o", str(target)], check=True
    )
    return ctypes.CDLL(str(target))


@pytest.mark.timeout(600)  # a compiler reads SIMDe's 100,000 lines
@pytest.mark.parametrize("isa", MACROS)
def test_emulated_instruction_sets_compute_what_the_reference_defines(
    isa: str, tmp_path: Path
) -> None:
    library = compiled(isa, tmp_path)
    for how in STORED:
        for num_out, num_in in [(83, 32), (48, 832)]:
            head = head_of(how, num_out, num_in)
            packed = pack(head, in_halves=True)
            for num_rows in (1, 2, 3, 13):
                rows = rows_of(num_rows, num_in)
                out = torch.empty(num_rows, num_out)
                pointers = [ctypes.c_void_p(x.data_ptr()) for x in (rows, out)]
                library.emulated_linear(ctypes.byref(packed.struct), pointers[0], num_rows, pointers[1])  # fmt: skip
                tolerance = 1e-6 if how.startswith("q") else 1e-5
                magnitude = rows.abs().double() @ magnitude_of(head).T
                difference = (out - defined(rows, head)).abs()
                assert (difference <= tolerance * magnitude + 1e-9).all(), (how, num_in, num_rows)
