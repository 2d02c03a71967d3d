"""Packed weights as a file: the same bits back, and anything that differs is no file."""

from __future__ import annotations

import json
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from native_models import PAGE, ModelKind, Row, make_weights, next_step, packed_for

from radixlm.kernels.cpu import packed_file
from radixlm.kernels.cpu.backend import BACKEND
from radixlm.kernels.cpu.decoder import NativeDecoder
from radixlm.kernels.cpu.packed import PackedModel
from radixlm.kernels.cpu.pool import allocate

REASON = BACKEND.unavailable_reason("cpu")
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))
KEY = {"files": [["model.gguf", 12, 34]], "dtype": "float32"}


def logits_of(packed: PackedModel) -> bytes:
    decoder = NativeDecoder(packed, allocate(packed.shape, 8, PAGE, "float32"), 1)
    row = Row([3, 1], list(range(20)))
    return decoder.logits(decoder.forward(next_step([(row, 20)], wanted="all"))).tobytes()


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    path = tmp_path / "weights.packed"
    packed_file.write(path, KEY, packed_for(make_weights(ModelKind("q4", has_bias=True))))
    return path


@pytest.mark.parametrize("kind", ["f32", "bf16", "f16", "q4", "q8"])
def test_a_mapped_model_gives_the_bits_of_the_one_that_was_packed(
    kind: str, tmp_path: Path
) -> None:
    packed = packed_for(make_weights(ModelKind(kind, has_bias=True)))
    path = tmp_path / "weights.packed"
    packed_file.write(path, KEY, packed)
    mapped = packed_file.read(path, KEY)
    assert mapped is not None
    assert packed_file.verify(path)
    assert all(block.ctypes.data % 64 == 0 for block in mapped.blocks)
    assert logits_of(mapped) == logits_of(packed)
    assert [path.name for path in tmp_path.iterdir()] == ["weights.packed"]


def test_embedding_and_head_that_are_one_matrix_are_stored_once(stored: Path) -> None:
    mapped = packed_file.read(stored, KEY)
    assert mapped is not None
    assert mapped.weights["embedding"] == mapped.weights["head"]


def test_another_key_or_version_or_no_file_is_no_model(stored: Path, monkeypatch) -> None:
    assert packed_file.read(stored, KEY | {"dtype": "bfloat16"}) is None
    assert packed_file.read(stored.with_name("other"), KEY) is None
    monkeypatch.setattr(packed_file, "ABI_VERSION", packed_file.ABI_VERSION + 1)
    assert packed_file.read(stored, KEY) is None


def test_a_file_cut_anywhere_or_grown_is_no_model(stored: Path) -> None:
    whole = stored.read_bytes()
    for length in (0, 1, 8, 15, 16, 100, len(whole) // 2, len(whole) - 1):
        stored.write_bytes(whole[:length])
        assert packed_file.read(stored, KEY) is None
        assert not packed_file.verify(stored)
    stored.write_bytes(whole + b"x")
    assert packed_file.read(stored, KEY) is None


def test_a_changed_header_is_no_model_and_a_changed_weight_is_found_by_verifying(
    stored: Path,
) -> None:
    whole = stored.read_bytes()
    for place in (0, 9, 13, 20, 60):
        stored.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        assert packed_file.read(stored, KEY) is None
    place = len(whole) - 50
    stored.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
    assert not packed_file.verify(stored)


@pytest.mark.parametrize(
    "change",
    [{"blocks": [[0, -5]]}, {"blocks": "none"}, {"layers": 7}, {"shape": {}}, {"weights": None}],
)
def test_a_header_of_another_layout_is_no_model(stored: Path, change: dict) -> None:
    whole = stored.read_bytes()
    length = struct.unpack_from("<8sII", whole)[1]
    text = json.dumps(json.loads(whole[16 : 16 + length]) | change).encode()
    prefix = struct.pack("<8sII", b"RADIXPAK", len(text), zlib.crc32(text))
    stored.write_bytes(prefix + text + bytes(64) + whole[16 + length :])
    found = packed_file.read(stored, KEY)
    assert found is None


def test_numbers_that_lead_outside_the_blocks_are_no_model(tmp_path: Path) -> None:
    path = tmp_path / "weights.packed"
    for change in ("layers", "vocabulary", "block", "number", "kind", "minimums"):
        packed = packed_for(make_weights(ModelKind("q4", has_bias=True)))
        layers, weights, blocks = list(packed.layers), dict(packed.weights), list(packed.blocks)
        if change == "layers":
            layers.pop()
        elif change == "vocabulary":
            weights["head"] = {**weights["head"], "num_out": 10**6}
        elif change == "block":
            blocks[weights["head"]["codes"]] = blocks[weights["head"]["codes"]][:1]
        elif change == "number":
            weights["final_norm"] = 999
        elif change == "kind":
            weights["head"] = {**weights["head"], "kind": 0}
        else:
            layers[0]["qkv"].pop("minimums")
        packed_file.write(path, KEY, PackedModel(packed.shape, weights, layers, blocks))
        assert packed_file.read(path, KEY) is None, change


def test_a_writer_removes_only_its_own_and_what_was_left_long_ago(tmp_path: Path) -> None:
    path = tmp_path / "weights.packed"
    running, stale = tmp_path / ".weights.packed.aa.part", tmp_path / ".weights.packed.bb.part"
    for part in (running, stale):
        part.write_bytes(b"x")
    os.utime(stale, (0, 0))
    packed_file.write(path, KEY, packed_for(make_weights(ModelKind("q4", has_bias=True))))
    assert sorted(each.name for each in tmp_path.iterdir()) == [running.name, path.name]


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path, monkeypatch) -> None:
    packed = packed_for(make_weights(ModelKind()))
    with pytest.raises(OSError, match="No such file"):
        packed_file.write(tmp_path / "missing" / "weights.packed", KEY, packed)

    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(packed_file.os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        packed_file.write(tmp_path / "weights.packed", KEY, packed)
    assert list(tmp_path.iterdir()) == []


def test_pages_are_copied_in_all_layers_before_anything_overwrites_them() -> None:
    shape = make_weights(ModelKind()).shape
    pool = allocate(shape, 6, PAGE, "bfloat16")
    slots = np.arange(6 * PAGE).reshape(6, 1, 1, PAGE, 1, 1)
    pool.storage[:] = slots
    before = pool.storage.copy()
    pool.copy_pages(np.array([[1, 4, 3], [1, 5, 16]], np.int32))
    assert (pool.storage[4, :, :, :3] == before[1, :, :, :3]).all()
    assert (pool.storage[4, :, :, 3:] == before[4, :, :, 3:]).all()
    assert (pool.storage[5] == before[1]).all()
