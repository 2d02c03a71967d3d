"""What the doctor finds: facts of this machine and of the model's file, and a problem for what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_llamas import tiny_llama

from radixlm import doctor, reports
from radixlm.doctor import Finding
from radixlm.runtime.config import EngineConfig
from radixlm.runtime.model_files import ModelFiles


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {f"{finding.section}.{finding.name}": finding for finding in findings}


def test_the_machine_is_described_and_its_memory_is_read() -> None:
    facts = doctor.machine_facts()
    assert facts["processor"]
    assert facts["usable_cores"] >= 1
    assert float(facts["memory"].removesuffix(" GiB")) > 0.5
    assert doctor.read_rate(2) > 0.01


def test_what_is_missing_is_a_problem(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    config = EngineConfig.create(
        model="nowhere", kernels="nowhere", socket_dir=str(blocked), threads=1
    )
    problems = {
        name for name, finding in by_name(doctor.examine(config)).items() if finding.problem
    }
    assert problems == {"model.nowhere", "kernels.would serve", "folders.sockets"}


@pytest.mark.parametrize(("asked", "told"), [("auto", "float32"), ("int8", "int8")])
def test_the_type_of_keys_and_values_is_the_asked_one_or_that_of_the_kernels(
    asked: str, told: str
) -> None:
    config = EngineConfig.create(model="nowhere", kernels="reference", kv_dtype=asked, threads=1)
    assert by_name(doctor.examine(config))["kernels.keys and values"].value == told


@pytest.mark.model
def test_the_model_is_described_by_its_file(smollm2_files: ModelFiles) -> None:
    found = by_name(doctor.examine(EngineConfig.create(model="smollm2-135m", threads=1)))
    assert found["model.layers"].value == 30
    assert found["model.parameters"].value == 134_515_008
    assert found["model.context"].value == 8192
    assert found["kernels.reference"].value == "can serve"
    if str(found["kernels.would serve"].value).startswith("cpu"):
        assert (
            found["kernels.keys and values"].value == "int8 beside quantized weights, else bfloat16"
        )
    assert not [finding for finding in found.values() if finding.problem]


def test_the_rate_of_products_is_that_of_the_instruction_set_asked_for(tmp_path: Path) -> None:
    from radixlm.runtime.native_runner import can_serve
    from radixlm.runtime.packed_weights import PackedWeights

    if not can_serve("float32", "auto"):
        pytest.skip("the native kernels were not built")
    files = tiny_llama(tmp_path).files
    (tmp_path / "tokenizer.json").write_text("{}")
    config = EngineConfig.create(
        model=str(files.path), quantization="int8", instruction_set="portable"
    )
    assert PackedWeights(files, "float32", "int8", Path(config.cache_dir), "portable").load()
    found = [row for row in doctor.examine(config) if row.name.startswith("multiplies")]
    assert [row.problem for row in found] == [""]
    assert found[0].value.endswith(" GOPS")


def test_a_folder_of_weights_is_described_too(tmp_path: Path) -> None:
    config = {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2, "torch_dtype": "float32"}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "model.safetensors").write_bytes(b"x" * 400)
    (tmp_path / "tokenizer.json").write_text("{}")
    found = by_name(doctor.examine(EngineConfig.create(model=str(tmp_path), threads=1)))
    assert found["model.layers"].value == 2
    assert found["model.parameters"].value == 100


def test_findings_are_shown_by_section_with_problems_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    findings = [Finding("a", "x", 1), Finding("a", "y", 2, "it broke"), Finding("b", "z", 3)]
    assert not reports.print_examination(findings, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert [lines[0], lines[3]] == ["a", "b"]
    assert lines[-1] == "problem: a, y: it broke"
    assert reports.print_examination(findings[:1], as_json=True)
    assert json.loads(capsys.readouterr().out)[0]["name"] == "x"
