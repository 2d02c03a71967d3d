"""The native kernels on machines that this one is not: processors without its instructions, and 64-bit ARM, both emulated by QEMU.

Debian: qemu-user, g++-aarch64-linux-gnu. Skipped where they are missing; no package of a test needs them.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from native_models import ModelKind, make_weights

import radixlm
from radixlm.kernels import build_native
from radixlm.kernels.cpu import packed_file
from radixlm.kernels.cpu.backend import BACKEND
from radixlm.kernels.cpu.library import instruction_sets, load
from radixlm.kernels.cpu.pack_model import pack_model

SUPPORT = Path(__file__).parent.parent / "support"
SOURCE = Path(radixlm.__file__).parent / "kernels" / "cpu" / "src"
REASON = BACKEND.unavailable_reason("cpu")
KV = ("bfloat16", "int8")
PROGRAM = """
import hashlib, sys
from pathlib import Path
import numpy as np
from radixlm.kernels.cpu import packed_file
from radixlm.kernels.cpu.decoder import NativeDecoder
from radixlm.kernels.cpu.library import instruction_sets, load, reads_halves
from radixlm.kernels.cpu.pool import allocate
from radixlm.kernels.step import StepBatch

n = np.arange(40, dtype=np.int32)
for isa, kv in [(isa, kv) for isa in instruction_sets(load()) for kv in sys.argv[2:]]:
    packed = packed_file.read(Path(sys.argv[1], str(reads_halves(load(), isa))), {})
    decoder = NativeDecoder(packed, allocate(packed.shape, 8, 16, kv), 2, isa)
    step = StepBatch(
        token_ids=n, positions=n, slot_ids=n.astype(np.int64), query_starts=np.array([0, 40], np.int32),
        context_lens=n[[39]] + 1, page_tables=np.array([[0, 1, 2]], np.int32), logit_rows=n, groups=(),
    )
    print(f"{isa}/{kv}", hashlib.sha256(decoder.logits(decoder.forward(step)).tobytes()).hexdigest())
"""


def outcomes(command: list[str]) -> dict[str, str]:
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=250)
    return dict(line.split() for line in done.stdout.splitlines())


@pytest.mark.skipif(REASON is not None, reason=str(REASON))
@pytest.mark.skipif(shutil.which("qemu-x86_64") is None, reason="QEMU is not installed")
@pytest.mark.timeout(300)
def test_a_library_built_here_runs_on_processors_that_lack_its_instructions(tmp_path: Path) -> None:
    for in_halves in (False, True):
        packed = pack_model(make_weights(ModelKind("q4", has_bias=True)), in_halves)
        packed_file.write(tmp_path / str(in_halves), {}, packed)
    python = [sys.executable, "-c", PROGRAM, str(tmp_path), *KV]
    here = outcomes(python)
    assert list(here) == [f"{isa}/{kv}" for isa in instruction_sets(load()) for kv in KV]
    # with AVX2 and nothing newer; without any AVX
    for processor, wanted in (("Haswell-v4", ["avx2", "portable"]), ("Nehalem", ["portable"])):
        found = outcomes(["qemu-x86_64", "-cpu", processor, *python])
        assert list(found) == [f"{isa}/{kv}" for isa in wanted for kv in KV]
        assert found == {name: here[name] for name in found}


def logits(command: list[str]) -> np.ndarray:
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    return np.array(done.stdout.split(), np.float64)


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[str]]:
    """Commands of the whole model for ARM (emulated) and for this machine's plain C++."""
    compilers = [shutil.which("aarch64-linux-gnu-g++"), shutil.which("g++")]
    emulator = shutil.which("qemu-aarch64")
    if None in compilers or emulator is None:
        pytest.skip("a cross compiler or QEMU is not installed")
    folder, made = tmp_path_factory.mktemp("arm"), []
    for number, compiler in enumerate(compilers):
        target = folder / f"probe{number}"
        flags = [*build_native.FLAGS, "-Werror", "-static", "-ffp-contract=off", "-DRADIX_ISA=portable"]  # fmt: skip
        sources = [SOURCE / "unit.cpp", SOURCE / "library.cpp", SUPPORT / "kernel_probe.cpp"]
        command = [str(compiler), *flags, f"-I{SOURCE}", *map(str, sources), "-o", str(target)]
        subprocess.run(command, check=True, timeout=200)
        made.append([str(target)])
    return [emulator, *made[0]], made[1]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("weights", range(5), ids=["f32", "bf16", "q4", "q8", "f16"])
@pytest.mark.parametrize("kv", range(3), ids=["float32", "bfloat16", "int8"])
def test_on_arm_the_kernels_compile_and_give_the_same_logits_up_to_rounding(
    probes: tuple[list[str], list[str]], weights: int, kv: int
) -> None:
    arguments = [str(weights), str(kv), "2", "portable"]
    arm, here = (logits([*probe, *arguments]) for probe in probes)
    assert arm.size == 103 * 83
    assert np.isfinite(arm).all()
    difference = np.abs(arm - here)
    # ARM fuses products and sums; an activation, key or value next to a tie may be rounded the other way
    is_rounded = weights in (2, 3) or kv > 0
    assert np.median(difference) < (0.01 if is_rounded else 1e-5) * here.std()
    assert difference.max() < (0.3 if is_rounded else 1e-3) * here.std()


@pytest.mark.timeout(300)
def test_on_arm_threads_change_no_bit(probes: tuple[list[str], list[str]]) -> None:
    digests = {
        hashlib.sha256(logits([*probes[0], "2", "1", threads, "portable"]).tobytes()).hexdigest()
        for threads in ("1", "3")
    }
    assert len(digests) == 1
