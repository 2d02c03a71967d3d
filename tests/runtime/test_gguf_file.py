from __future__ import annotations

import random
import struct
import time
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from tiny_vocabularies import write_gguf

from radixlm.errors import ModelError
from radixlm.runtime import gguf_types
from radixlm.runtime.gguf_file import MAX_ARRAY_ITEMS, open_gguf
from radixlm.runtime.model_files import ModelFiles

METADATA: dict[str, Any] = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.rope.freq_base": 0.5,
    "a.flag": True,
    "a.text": "grüße",
    "a.words": ["", "one", "zwei ü"],
    "a.numbers": [1, -2, 3],
    "a.scores": [0.5, -1.0],
    "a.flags": [True, False],
}


@pytest.fixture(scope="module")
def small_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = np.arange(128, dtype=np.float32).reshape(4, 32)
    tensors = {"a": rows, "b": np.ones(7, np.float32), "c": rows.astype(np.float16)}
    return write_gguf(tmp_path_factory.mktemp("gguf") / "small.gguf", METADATA, tensors)


def header(num_tensors: int, num_keys: int, body: bytes = b"", version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, num_tensors, num_keys) + body


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def tensor(name: bytes, dims: tuple[int, ...], kind: int, offset: int) -> bytes:
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


def refusal(path: Path, data: bytes) -> ModelError:
    path.write_bytes(data)
    with pytest.raises(ModelError) as refused:
        open_gguf(path)
    return refused.value


def test_metadata_and_tensors_come_out_as_they_were_written(small_file: Path) -> None:
    file = open_gguf(small_file)
    for key, value in METADATA.items():
        assert file.metadata[key] == value, key
    assert file.tensors["a"].shape == (4, 32)
    assert file.tensors["a"].type_name == "F32"
    assert file.tensors["a"].data.shape == (4, 128)
    assert file.tensors["a"].data.view(np.float32)[3, 31] == 127
    assert file.tensors["c"].data.view(np.float16)[1, 0] == 32
    assert file.tensors["b"].data.view(np.float32).tolist() == [1.0] * 7
    assert not file.tensors["a"].data.flags.writeable


def test_the_library_s_reader_sees_the_same_tensors(small_file: Path) -> None:
    ours = open_gguf(small_file).tensors
    for theirs in gguf.GGUFReader(small_file).tensors:
        assert ours[theirs.name].data.tobytes() == theirs.data.tobytes()
        assert ours[theirs.name].type_name == theirs.tensor_type.name


@pytest.mark.model
def test_the_real_file_opens_in_less_than_a_second(smollm2_files: ModelFiles) -> None:
    began_s = time.thread_time()
    file = open_gguf(smollm2_files.path)
    assert time.thread_time() - began_s < 1.0
    assert len(file.metadata["tokenizer.ggml.tokens"]) == 49_152
    assert file.tensors["token_embd.weight"].shape == (49_152, 576)


def test_a_file_cut_anywhere_is_refused(small_file: Path, tmp_path: Path) -> None:
    whole = small_file.read_bytes()
    last = max(t.data_offset + t.n_bytes for t in gguf.GGUFReader(small_file).tensors)
    for size in [*range(0, 900, 3), *range(900, last, 17), last - 1]:
        refusal(tmp_path / "cut.gguf", whole[:size])


def test_a_file_with_changed_bytes_opens_or_is_refused_and_is_quick(
    small_file: Path, tmp_path: Path
) -> None:
    whole, chance = small_file.read_bytes(), random.Random(0)
    path = tmp_path / "changed.gguf"
    num_refused = 0
    began_s = time.thread_time()
    for _ in range(700):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 1, 1, 4))):
            data[chance.randrange(1100)] = chance.choice(
                (0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256))
            )
        path.write_bytes(data)
        try:
            for found in open_gguf(path).tensors.values():
                assert found.data.nbytes <= len(whole)
        except ModelError:
            num_refused += 1
    assert num_refused > 150
    assert time.thread_time() - began_s < 20


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "0 bytes"),
        (b"PK\x03\x04" + bytes(40), "instead of b'GGUF'"),
        (header(0, 0, version=1) + bytes(8), "version 1"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0) + bytes(8), "big-endian"),
        (header(0, 2**60, bytes(64)), "metadata keys"),
        (header(2**60, 0, bytes(64)), "tensors are announced"),
        (
            header(0, 1, struct.pack("<Q", 2**63) + bytes(64)),
            "a string of 9223372036854775808 bytes",
        ),
        (header(0, 1, text(b"\xff\xfe") + bytes(64)), "not UTF-8"),
        (header(0, 1, text(b"k") + struct.pack("<I", 99) + bytes(64)), "value type 99"),
        (header(0, 1, text(b"k") + struct.pack("<IIQ", 9, 9, 1) + bytes(64)), "arrays of arrays"),
        (
            header(0, 1, text(b"k") + struct.pack("<IIQ", 9, 8, 2**40) + bytes(64)),
            f"at most {MAX_ARRAY_ITEMS}",
        ),
        (header(0, 1, text(b"k") + struct.pack("<IIQ", 9, 8, 1000) + bytes(64)), "does not fit"),
        (
            header(0, 1, text(b"k") + struct.pack("<IIQQ", 9, 8, 1, 2**63) + bytes(64)),
            "reaches beyond",
        ),
        (header(0, 1, text(b"k") + struct.pack("<IIQ", 9, 5, 1000) + bytes(64)), "the file ends"),
        (header(0, 1, text(b"k") + struct.pack("<IB", 7, 2) + bytes(64)), "truth value"),
        (header(0, 2, (text(b"k") + struct.pack("<IB", 0, 2)) * 2 + bytes(64)), "stands twice"),
    ],
)
def test_a_damaged_header_is_refused_with_what_is_wrong(
    data: bytes, says: str, tmp_path: Path
) -> None:
    assert says in str(refusal(tmp_path / "bad.gguf", data))


@pytest.mark.parametrize(
    ("infos", "says", "place"),
    [
        ([tensor(b"w", (32,), 0, 1 << 40)], "beyond the end", "tensor w"),
        ([tensor(b"w", (2**62, 2**62), 0, 0)], "beyond the end", "tensor w"),
        ([tensor(b"w", (2**64 - 1,), 0, 2**64 - 32)], "beyond the end", "tensor w"),
        ([tensor(b"w", (8,), 0, 4)], "multiple of 32", "tensor w"),
        ([tensor(b"w", (8,), 200, 0)], "tensor type 200", "tensor w"),
        ([tensor(b"w", (33,), 3, 0)], "do not divide", "tensor w"),
        ([tensor(b"w", (0,), 0, 0)], "dimension is 0", "tensor w"),
        ([tensor(b"w", (), 0, 0)], "0 dimensions", "tensor w"),
        ([tensor(b"w", (1,) * 9, 0, 0)], "9 dimensions", "tensor w"),
        ([tensor(b"w", (8,), 0, 0)] * 2, "stands twice", "tensor w"),
        (
            [tensor(b"v", (16,), 0, 0), tensor(b"w", (8,), 0, 32)],
            "overlaps the tensor v",
            "tensor w",
        ),
    ],
)
def test_a_tensor_that_does_not_fit_is_refused_by_name(
    infos: list[bytes], says: str, place: str, tmp_path: Path
) -> None:
    body = b"".join(infos)
    error = refusal(tmp_path / "bad.gguf", header(len(infos), 0, body + bytes(512)))
    assert says in error.message
    assert error.place == place


@pytest.mark.parametrize("alignment", [0, 3, 1 << 31])
def test_an_alignment_that_is_no_power_of_two_is_refused(alignment: int, tmp_path: Path) -> None:
    key = text(b"general.alignment") + struct.pack("<II", 4, alignment)
    assert (
        refusal(tmp_path / "bad.gguf", header(0, 1, key + bytes(64))).place == "general.alignment"
    )


def test_a_missing_file_or_a_folder_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "no.gguf", tmp_path):
        with pytest.raises(ModelError):
            open_gguf(path)


def test_the_numbers_of_the_format_are_the_librarys() -> None:
    sizes = {int(kind): (kind.name, *size) for kind, size in gguf.GGML_QUANT_SIZES.items()}
    assert sizes == gguf_types.TENSOR_TYPES
    values = gguf.GGUFValueType
    assert (values.STRING, values.ARRAY) == (gguf_types.STRING, gguf_types.ARRAY)
    assert {int(kind) for kind in values} - {values.STRING, values.ARRAY} == set(gguf_types.SCALARS)
    for kind, (code, size) in gguf_types.SCALARS.items():
        assert np.dtype(values(kind).name.lower()) == np.dtype(code)
        assert struct.calcsize(code) == size
    assert gguf_types.DEFAULT_ALIGNMENT == gguf.GGUF_DEFAULT_ALIGNMENT
