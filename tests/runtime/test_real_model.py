"""The default model's logits against transformers' reading of the same GGUF file: whole, in chunks, token by token, greedy text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from paged_steps import LogitsProbe, PagedSequence, plan_step
from transformers_oracle import load_oracle

from radixlm.runtime.model_files import ModelFiles
from radixlm.runtime.model_runner import ModelRunner
from radixlm.runtime.native_runner import open_native_runner
from radixlm.runtime.plan import SharedGroup
from radixlm.runtime.runner_protocol import Runner

# transformers parses the vocabulary twice to read a GGUF file: seconds alone, minutes beside other work
pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(600)]

TOLERANCE = 1e-3
PAGE_SIZE = 16
NUM_PAGES = 64
NUM_COMPARED = 48  # tokens whose logits are compared, three ways


@pytest.fixture(scope="module", params=["reference", "native"])
def runner(
    smollm2_files: ModelFiles,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Runner:
    """The model with float weights, on each runner that serves a CPU; the second time from its packed file."""
    # one thread: beside other work, two threads wait for each other at every barrier
    options = {
        "num_pages": NUM_PAGES,
        "page_size": PAGE_SIZE,
        "threads": 1,
        "quantization": "none",
        "kv_dtype": "float32",
    }
    probe = LogitsProbe()
    if request.param == "reference":
        return ModelRunner(smollm2_files, kernels="reference", sample=probe, **options)
    # the packed floats are large and wanted by nobody else: not beside the model
    path = tmp_path_factory.mktemp("model") / smollm2_files.path.name
    path.symlink_to(smollm2_files.path)
    files = replace(smollm2_files, path=path)
    native = open_native_runner(
        files, cache_dir=path.parent, dtype="float32", sample=probe, **options
    )
    if native is None:
        pytest.skip("the native kernels were not built")
    return native


@pytest.fixture(scope="module")
def oracle(smollm2_files: ModelFiles) -> torch.nn.Module:
    return load_oracle(smollm2_files)


@pytest.fixture(scope="module")
def prompt(runner: Runner) -> list[int]:
    return np.random.default_rng(0).integers(0, runner.facts.vocab_size, 90).tolist()


@pytest.fixture(scope="module")
def expected(oracle: torch.nn.Module, prompt: list[int]) -> np.ndarray:
    with torch.inference_mode():
        return oracle(torch.tensor([prompt[:NUM_COMPARED]])).logits[0].numpy()


def step(runner: Runner, work: list[tuple[PagedSequence, int]], **options) -> np.ndarray:
    runner.finish(runner.launch(plan_step(work, PAGE_SIZE, greedy=True, **options)), None)
    return runner._sample.logits  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "counts", [[48], [4, 34, 10], [1] * 48], ids=["whole", "chunks", "token by token"]
)
def test_logits_equal_transformers(runner: Runner, prompt, expected, counts: list[int]) -> None:
    pages = np.random.default_rng(len(counts)).permutation(NUM_PAGES)[:3].tolist()
    sequence = PagedSequence(pages, prompt[:NUM_COMPARED])
    found = np.concatenate([step(runner, [(sequence, count)], logits="all") for count in counts])
    np.testing.assert_allclose(found, expected, atol=TOLERANCE)


def test_logits_of_branches_over_a_shared_prefix_equal_transformers(
    runner: Runner, oracle, prompt
) -> None:
    prefix = prompt[:80]
    leader = PagedSequence([9, 3, 7, 1, 5], prefix)
    step(runner, [(leader, 80)], logits="none")
    prompts = [
        prefix + prompt[index : index + length] for index, length in enumerate((1, 1, 5, 33))
    ]
    branches = [
        PagedSequence([*leader.pages, 20 + 3 * i, 21 + 3 * i, 22 + 3 * i], ids, 80)
        for i, ids in enumerate(prompts)
    ]
    groups = (SharedGroup(np.arange(4, dtype=np.int32), 5),)
    found = step(
        runner, [(branch, len(branch.token_ids) - 80) for branch in branches], groups=groups
    )
    for row, ids in zip(found, prompts, strict=True):
        with torch.inference_mode():
            np.testing.assert_allclose(
                row, oracle(torch.tensor([ids])).logits[0, -1].numpy(), atol=TOLERANCE
            )


def test_a_greedy_continuation_equals_transformers(runner: Runner, oracle, prompt) -> None:
    ids = torch.tensor([prompt[:20]])
    with torch.inference_mode():
        text = oracle.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            min_new_tokens=16,
            max_new_tokens=16,
            pad_token_id=0,
            eos_token_id=None,
        )[0, 20:].tolist()
    sequence = PagedSequence([30, 31, 32], prompt[:20])
    logits = step(runner, [(sequence, 20)])
    for token_id in text:
        best = int(logits[0].argmax())
        if best != token_id:  # only where the two best are equal up to the tolerance
            assert logits[0, best] - logits[0, token_id] <= TOLERANCE
            break
        sequence.token_ids.append(token_id)
        logits = step(runner, [(sequence, 1)])
