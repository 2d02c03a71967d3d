"""The threads under the native kernels: what one of them throws ends the round, reaches the caller, and leaves a pool that works."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import radixlm
from radixlm.kernels.cpu.backend import BACKEND

COMPILER = shutil.which("g++") or shutil.which("clang++")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
SOURCE = Path(radixlm.__file__).parent / "kernels" / "cpu" / "src"
SUPPORT = Path(__file__).parent.parent / "support"


def compiled(folder: Path, *flags: str) -> Path:
    target = folder / "probe.so"
    command = [str(COMPILER), "-O2", "-std=c++17", "-fPIC", "-shared", "-pthread", f"-I{SOURCE}"]
    subprocess.run(
        [*command, *flags, str(SUPPORT / "pool_probe.cpp"), "-o", str(target)], check=True
    )
    return target


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return ctypes.CDLL(str(compiled(tmp_path_factory.mktemp("probe"))))


@pytest.mark.parametrize("num_threads", [1, 2, 5])
@pytest.mark.parametrize("stage", [0, 1, 3])
def test_an_exception_of_any_member_reaches_the_caller_and_the_next_round_is_whole(
    probe: ctypes.CDLL, num_threads: int, stage: int
) -> None:
    for member in {-1, 0, num_threads - 1}:
        assert probe.probe_pool(num_threads, member, stage, 300) == 0, member


PROGRAM = """
import ctypes, sys
sys.path.insert(0, sys.argv[1])
from native_models import PAGE, ModelKind, Row, make_weights, next_step, packed_for
from radixlm.kernels.cpu.decoder import NativeDecoder
from radixlm.kernels.cpu.pool import allocate

packed = packed_for(make_weights(ModelKind("q4")))

def decoder():
    return NativeDecoder(packed, allocate(packed.shape, 16, PAGE, "float32"), 4)

def compute(model):
    row = Row([3, 1, 5, 7, 9, 2, 8, 6], [i % 83 for i in range(100)])
    return model.logits(model.forward(next_step([(row, 100)], wanted="all"))).tobytes()

wanted, model = compute(decoder()), decoder()
fail = ctypes.CDLL(sys.argv[2]).fail_on_other_threads
fail(1)
failures = 0
for _ in range(50):  # each time the threads find less to allocate, until nothing is left or chance gives all tasks to the first
    try:
        compute(model)
    except MemoryError:
        failures += 1
fail(0)
print(failures, compute(model) == wanted)
fail_at = ctypes.CDLL(sys.argv[2]).fail_at
for n in range(100):  # each large allocation of a step in turn, by its own thread
    model = decoder()
    fail_at(n)
    try:
        compute(model)
        break
    except MemoryError:
        pass
    finally:
        fail_at(-1)
    if compute(model) != wanted:
        sys.exit(f"after allocation {n} failed the next step is wrong")
print(n)
"""


@pytest.mark.skipif(BACKEND.unavailable_reason("cpu") is not None, reason="no native kernels")
def test_memory_that_runs_out_on_a_thread_of_the_pool_fails_the_step_and_not_the_process(
    tmp_path: Path,
) -> None:
    library = compiled(tmp_path, "-DPROBE_REPLACES_NEW")
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    command = [sys.executable, "-c", PROGRAM, str(SUPPORT), str(library)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    failures, is_right, num_allocations = done.stdout.split()
    assert int(failures) >= 1
    assert is_right == "True"
    assert 5 < int(num_allocations) < 99


PINNED = """
import os, sys
sys.path.insert(0, sys.argv[1])
from native_models import PAGE, ModelKind, Row, make_weights, next_step, packed_for
from radixlm.kernels.cpu.decoder import NativeDecoder
from radixlm.kernels.cpu.pool import allocate

packed = packed_for(make_weights(ModelKind()))
everything = os.sched_getaffinity(0)
for pins in (False, True):
    model = NativeDecoder(packed, allocate(packed.shape, 4, PAGE, "float32"), 2, pins_threads=pins)
    model.forward(next_step([(Row([0], [1, 2, 3]), 3)]))
    cores = [os.sched_getaffinity(int(task)) for task in os.listdir("/proc/self/task")]
    print(sum(len(each) == 1 for each in cores), len({min(each) for each in cores if len(each) == 1}))
"""


@pytest.mark.skipif(BACKEND.unavailable_reason("cpu") is not None, reason="no native kernels")
@pytest.mark.skipif(len(getattr(os, "sched_getaffinity", lambda _: [])(0)) < 2, reason="one core")
def test_threads_stay_on_cores_of_their_own_when_asked() -> None:
    command = [sys.executable, "-c", PINNED, str(SUPPORT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout.split() == ["0", "0", "2", "2"]
