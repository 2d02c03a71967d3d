"""What `radixlm doctor` looks at: packages, kernels, the model's file, this machine, and the folders that the runtime needs.

Owns the checks and their words. Starts no engine and changes nothing but a temporary folder. Knows nothing of printing.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import platform
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radixlm.errors import RadixError

if TYPE_CHECKING:
    from radixlm.kernels.cpu.packed import PackedModel
    from radixlm.runtime.config import EngineConfig
    from radixlm.runtime.model_files import ModelFiles

_PACKAGES = ("torch", "numpy", "transformers", "tokenizers", "msgspec", "pyzmq", "uvloop", "starlette", "uvicorn", "pydantic",
             "greenlet", "jsonschema", "pyarrow", "triton")  # fmt: skip
_OPTIONAL = frozenset({"triton", "pyarrow", "uvloop"})
_INSTRUCTIONS = (
    "avx2",
    "fma",
    "f16c",
    "avx512f",
    "avx512_vnni",
    "avx_vnni",
    "avx512_bf16",
    "amx_int8",
    "asimd",
    "i8mm",
)
_BITS = {"int8": 8.5, "int4": 5.0}  # of a weight, scales and minimums of its group counted
_READ_BYTES = 128 << 20
_ROWS = 64  # of the head, to see how fast it multiplies


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact; `problem` says what is wrong with it, and what to do."""

    section: str
    name: str
    value: Any
    problem: str = ""


def examine(config: EngineConfig) -> list[Finding]:
    """Everything, for an engine that would be started with `config`."""
    return [
        *_packages(),
        *_machine(config),
        *_kernels(config),
        *_grammar(),
        *_model(config),
        *_folders(config),
    ]


def machine_facts() -> dict[str, Any]:
    """The machine in a few words: processor, cores, instructions, memory, versions of what computes."""
    from radixlm.runtime.cores import usable_cores

    fields = _cpuinfo()
    flags = set((fields.get("flags") or fields.get("Features", "")).split())
    return {
        "processor": fields.get("model name") or platform.processor() or platform.machine(),
        "usable_cores": usable_cores(),
        "instructions": " ".join(name for name in _INSTRUCTIONS if name in flags),
        "memory": f"{_memory_bytes() / 2**30:.1f} GiB",
        "python": platform.python_version(),
        "torch": _version("torch"),
        "system": platform.platform(),
    }


# ------------------------------------------------------------------------------------------ parts


def _packages() -> list[Finding]:
    found = [Finding("packages", "radixlm", _version("radixlm") or "not installed as a package")]
    for name in _PACKAGES:
        version = _version(name)
        is_missing = version is None and name not in _OPTIONAL
        problem = f"install {name}" if is_missing else ""
        found.append(Finding("packages", name, version or "not installed", problem))
    return found


def _machine(config: EngineConfig) -> list[Finding]:
    facts = machine_facts()
    rows = [
        Finding("machine", name.replace("_", " "), value)
        for name, value in facts.items()
        if name != "torch"
    ]
    one, all_cores = read_rate(1), read_rate(config.threads)
    rows.append(Finding("machine", "reads, 1 thread", f"{one:.1f} GB/s"))
    rows.append(Finding("machine", f"reads, {config.threads} threads", f"{all_cores:.1f} GB/s"))
    return rows


def _kernels(config: EngineConfig) -> list[Finding]:
    from radixlm.kernels.cpu.library import instruction_sets, load
    from radixlm.kernels.registry import backend_names, load_backend, usable_backends
    from radixlm.runtime.native_runner import can_serve

    rows: list[Finding] = []
    for name in backend_names():
        try:
            reason = load_backend(name).unavailable_reason("cpu")
        except Exception as error:  # noqa: BLE001  whatever keeps a backend from loading is what is reported
            reason = f"it does not load: {error}"
        rows.append(Finding("kernels", name, reason or "can serve"))
    try:
        chosen = usable_backends(config.kernels)[0]
        is_native = chosen.name == "cpu" and can_serve(config.dtype, config.kv_dtype)
        remark = ", in an engine without torch" if is_native else ""
        rows.append(Finding("kernels", "would serve", chosen.name + remark))
        of_backend = str(chosen.kv_dtype or config.dtype).removeprefix("torch.")
        by_default = "int8 beside quantized weights, else bfloat16" if is_native else of_backend
        kept = by_default if config.kv_dtype == "auto" else config.kv_dtype
        rows.append(Finding("kernels", "keys and values", kept))
    except RadixError as error:
        rows.append(Finding("kernels", "would serve", "none", str(error)))
    with contextlib.suppress(OSError):
        sets = ", ".join(instruction_sets(load()))
        rows.append(Finding("kernels", "native instruction sets", f"{sets} (the first serves)"))
    return rows


def _grammar() -> list[Finding]:
    from radixlm.grammar.matching import engine_name

    return [Finding("grammars", "engine", engine_name())]


def _model(config: EngineConfig) -> list[Finding]:
    from radixlm.runtime.model_files import resolve_model

    try:
        files = resolve_model(config.model, Path(config.cache_dir))
        facts = _gguf_facts(files) if files.kind == "gguf" else _folder_facts(files)
    except RadixError as error:
        return [Finding("model", config.model, "not usable", str(error))]
    rows = [Finding("model", "file", str(files.path))]
    rows += [Finding("model", name, value) for name, value in facts.items()]
    rows += _packed_weights(config, files)
    if config.quantization == "file":
        parts = [files.path] if files.kind == "gguf" else files.path.glob("*.safetensors")
        weight_bytes, form = sum(part.stat().st_size for part in parts), "the file has it"
    else:
        bits = _BITS.get(config.quantization, 32 if config.dtype == "float32" else 16)
        weight_bytes = int(facts.get("parameters", 0) * bits / 8)
        form = config.quantization if config.quantization in _BITS else config.dtype
    if weight_bytes:
        ceiling = read_rate(config.threads) * 1e9 / weight_bytes
        text = f"{ceiling:.0f} tokens/s, if every weight is read once as {form}"
        rows.append(Finding("model", "ceiling of 1 stream", text))
    return rows


def _packed_weights(config: EngineConfig, files: ModelFiles) -> list[Finding]:
    """Whether a start finds the weights packed and every byte of them as it was written, and how fast they are multiplied."""
    from radixlm.kernels.cpu.packed_file import verify
    from radixlm.runtime.engine_process import weights_of

    found = weights_of(config, files).find()
    if found is None:
        return [Finding("model", "packed weights", "none yet: the first start packs them")]
    path, packed = found
    if not verify(path):
        hint = f"delete {path}: the next start packs the weights again"
        return [Finding("model", "packed weights", "damaged", hint)]
    rows = [Finding("model", "packed weights", str(path))]
    with contextlib.suppress(
        OSError, RadixError
    ):  # where the kernels were not built, or not for these weights
        rate = product_rate(packed, config.threads, config.instruction_set)
        rows.append(Finding("model", f"multiplies, {config.threads} threads", f"{rate:.0f} GOPS"))
    return rows


def product_rate(packed: PackedModel, num_threads: int, isa: str = "") -> float:
    """Products and sums of the model's head on 64 rows, in 10^9 a second; the best of five. `isa` "" is the best here."""
    import numpy as np

    from radixlm.kernels.cpu.decoder import NativeDecoder
    from radixlm.kernels.cpu.pool import allocate

    decoder = NativeDecoder(packed, allocate(packed.shape, 1, 16, "bfloat16"), num_threads, isa)
    rows = np.random.default_rng(0).standard_normal((_ROWS, packed.shape.hidden_size))
    hidden = rows.astype(np.float32)
    logits = np.zeros((_ROWS, packed.shape.vocab_size), np.float32)
    spent_s: list[float] = []
    for _ in range(5):
        began_s = time.perf_counter()
        decoder.logits(hidden, logits)
        spent_s.append(time.perf_counter() - began_s)
    return 2 * logits.size * packed.shape.hidden_size / min(spent_s) / 1e9


def _folders(config: EngineConfig) -> list[Finding]:
    from radixlm.runtime.socket_folder import SocketFolder

    try:
        folder = SocketFolder(config.socket_dir)
        value, problem = f"can be made ({folder.path.parent})", ""
        folder.remove()
    except (RadixError, OSError) as error:
        value, problem = "cannot be made", str(error)
    cache = Path(config.cache_dir)
    pulled = sorted(path.name for path in (cache / "models").glob("*")) if cache.is_dir() else []
    return [
        Finding("folders", "sockets", value, problem),
        Finding("folders", "cache", str(cache)),
        Finding("folders", "pulled models", ", ".join(pulled) or "none"),
    ]


def _gguf_facts(files: ModelFiles) -> dict[str, Any]:
    from radixlm.runtime.gguf_file import open_gguf

    file = open_gguf(files.path)
    meta = file.metadata
    family = str(meta.get("general.architecture", ""))
    kinds: dict[str, int] = {}
    num_parameters = 0
    for tensor in file.tensors.values():
        size = 1
        for length in tensor.shape:
            size *= length
        num_parameters += size
        kinds[tensor.type_name] = kinds.get(tensor.type_name, 0) + size
    return {
        "name": meta.get("general.name", files.name),
        "family": family,
        "parameters": num_parameters,
        "stored as": max(kinds, key=lambda kind: kinds[kind], default=""),
        "file size": f"{files.path.stat().st_size / 1e6:.0f} MB",
        "layers": meta.get(f"{family}.block_count"),
        "hidden size": meta.get(f"{family}.embedding_length"),
        "heads": f"{meta.get(f'{family}.attention.head_count')} ({meta.get(f'{family}.attention.head_count_kv')} for keys and values)",
        "context": meta.get(f"{family}.context_length"),
        "vocabulary": len(meta.get("tokenizer.ggml.tokens", ())),
        "chat template": "yes" if meta.get("tokenizer.chat_template") else "no",
    }


def _folder_facts(files: ModelFiles) -> dict[str, Any]:
    import json

    config = json.loads((files.path / "config.json").read_text(encoding="utf-8"))
    shards = list(files.path.glob("*.safetensors"))
    num_bytes = sum(shard.stat().st_size for shard in shards)
    bytes_each = {"float32": 4}.get(str(config.get("torch_dtype", config.get("dtype"))), 2)
    return {
        "family": ", ".join(config.get("architectures") or []),
        "parameters": num_bytes // bytes_each,
        "stored as": config.get("torch_dtype", config.get("dtype")),
        "file size": f"{num_bytes / 1e6:.0f} MB in {len(shards)} files",
        "layers": config.get("num_hidden_layers"),
        "hidden size": config.get("hidden_size"),
        "context": config.get("max_position_embeddings"),
        "vocabulary": config.get("vocab_size"),
    }


# ------------------------------------------------------------------------------------------ the machine


def read_rate(num_threads: int) -> float:
    """Memory read by `num_threads` threads at once, in GB/s (10^9 bytes); the best of three."""
    import numpy as np

    parts = [np.ones(_READ_BYTES // 8 // num_threads, dtype=np.float64) for _ in range(num_threads)]
    best = 0.0
    for _ in range(3):
        threads = [
            threading.Thread(target=part.sum) for part in parts
        ]  # numpy sums without the interpreter lock
        began_s = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        best = max(best, sum(part.nbytes for part in parts) / (time.perf_counter() - began_s) / 1e9)
    return best


def _cpuinfo() -> dict[str, str]:
    found: dict[str, str] = {}
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            name, colon, value = line.partition(":")
            if colon:
                found.setdefault(name.strip(), value.strip())
    return found


def _memory_bytes() -> int:
    import os

    with contextlib.suppress(ValueError, OSError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 0


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
