"""The model runner's logits against transformers on the same weights, over pages in any order and steps of any shape."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from paged_steps import LogitsProbe, PagedSequence, no_sampling, plan_step
from tiny_llamas import TinyLlama, tiny_llama, write_gguf

from radixlm.errors import ConfigError
from radixlm.kernels.registry import load_backend
from radixlm.runtime.model_runner import SCORED_ROWS_PER_CHUNK, ModelRunner, PendingStep
from radixlm.runtime.native_runner import open_native_runner
from radixlm.runtime.plan import Logprobs, ScoreRows, SharedGroup, StepResult
from radixlm.runtime.runner_protocol import Runner

TOLERANCE = 1e-3
PAGE_SIZE = 4
NUM_PAGES = 96

VARIANTS = {
    "grouped heads, tied": {},
    "one key head, untied": {"num_key_value_heads": 1, "tie_word_embeddings": False},
    "no grouping": {"num_key_value_heads": 4},
    "biases": {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": False},
    "a head size that only the reference takes": {"head_dim": 12},
    "a larger head": {"head_dim": 24},
    "linear rope": {
        "rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}
    },
    "dynamic rope": {
        "rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
    },
    "llama3 rope": {
        "rope_parameters": {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
            "rope_theta": 500.0,
        }
    },
    "yarn rope": {
        "rope_parameters": {
            "rope_type": "yarn",
            "factor": 4.0,
            "original_max_position_embeddings": 128,
            "rope_theta": 10000.0,
        }
    },
}


@pytest.fixture(scope="module", params=VARIANTS.items(), ids=lambda item: item[0])
def variant(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TinyLlama:
    return tiny_llama(tmp_path_factory.mktemp("tiny"), **request.param[1])


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> TinyLlama:
    return tiny_llama(tmp_path_factory.mktemp("plain"))


def runner_of(model: TinyLlama, options: dict, probe: LogitsProbe) -> Runner:
    """The runner that an engine would take; kernels="native" insists on the one without torch, where it takes the model."""
    if options.get("kernels") == "native":
        options = {key: value for key, value in options.items() if key != "kernels"}
        found = open_native_runner(
            model.files,
            cache_dir=model.files.path.parent,
            **{"dtype": "float32", "quantization": "file"} | options,  # type: ignore[arg-type]
            sample=probe,
        )
        if found is not None:
            return found
    return ModelRunner(model.files, sample=probe, **options)  # type: ignore[arg-type]


class Trial:
    """A runner with a logits probe, and pages handed out in random order."""

    def __init__(self, model: TinyLlama, seed: int = 0, **options: object) -> None:
        self.probe = LogitsProbe()
        self.random = np.random.default_rng(seed)
        defaults = {"num_pages": NUM_PAGES, "page_size": PAGE_SIZE, "threads": 1}
        options = defaults | {"kv_dtype": "float32"} | options
        self.runner = runner_of(model, options, self.probe)
        self.free_pages = self.random.permutation(NUM_PAGES).tolist()

    def prompt(self, length: int) -> list[int]:
        return self.random.integers(0, self.runner.facts.vocab_size, length).tolist()

    def sequence(self, token_ids: list[int], shared: list[int] | None = None) -> PagedSequence:
        pages = list(shared or [])
        while len(pages) * PAGE_SIZE < len(token_ids):
            pages.append(self.free_pages.pop())
        return PagedSequence(pages, token_ids)

    def step(self, work: list[tuple[PagedSequence, int]], **options: object) -> np.ndarray:
        plan = plan_step(work, PAGE_SIZE, greedy=True, **options)  # type: ignore[arg-type]
        self.runner.finish(self.runner.launch(plan), None)
        return self.probe.logits


@pytest.mark.parametrize("kernels", ["native", "auto", "reference"])
def test_logits_of_a_whole_prompt_equal_transformers(variant: TinyLlama, kernels: str) -> None:
    trial = Trial(variant, kernels=kernels)
    prompt = trial.prompt(75)
    found = trial.step([(trial.sequence(prompt), 75)], logits="all")
    np.testing.assert_allclose(found, variant.logits(prompt), atol=TOLERANCE)


@pytest.mark.parametrize("kernels", ["native", "auto", "reference"])
def test_logits_of_chunks_and_of_single_tokens_equal_transformers(
    variant: TinyLlama, kernels: str
) -> None:
    trial = Trial(variant, kernels=kernels)
    prompt = trial.prompt(90)
    sequence = trial.sequence(prompt)
    found = [trial.step([(sequence, count)], logits="all") for count in (3, 33, 1, 40, 5, *[1] * 8)]
    np.testing.assert_allclose(np.concatenate(found), variant.logits(prompt), atol=TOLERANCE)


def test_a_step_mixes_long_chunks_short_chunks_and_decodes(plain: TinyLlama) -> None:
    trial = Trial(plain, seed=3)
    prompts = [trial.prompt(length) for length in (60, 9, 17, 16, 40, 2)]
    sequences = [trial.sequence(prompt) for prompt in prompts]
    first = [
        (sequence, count) for sequence, count in zip(sequences, (20, 8, 16, 15, 1, 1), strict=True)
    ]
    trial.step(first, logits="none")
    found = trial.step(
        [(sequence, len(sequence.token_ids) - sequence.num_computed) for sequence in sequences]
    )
    for row, prompt in zip(found, prompts, strict=True):
        np.testing.assert_allclose(row, plain.logits(prompt)[-1], atol=TOLERANCE)


def test_logits_of_a_gguf_file_equal_those_of_the_folder_it_was_made_from(
    variant: TinyLlama, tmp_path
) -> None:
    files = write_gguf(variant, tmp_path / "tiny.gguf")
    trial = Trial(TinyLlama(files, variant.oracle))
    prompt = trial.prompt(40)
    found = trial.step([(trial.sequence(prompt), 40)], logits="all")
    np.testing.assert_allclose(found, variant.logits(prompt), atol=TOLERANCE)


def test_a_shared_prefix_gives_the_logits_of_separate_sequences(plain: TinyLlama) -> None:
    trial = Trial(plain, seed=5)
    prefix = trial.prompt(12 * PAGE_SIZE)
    leader = trial.sequence(prefix)
    trial.step([(leader, len(prefix))], logits="none")
    tails = [trial.prompt(length) for length in (1, 1, 7, 40, 1)]
    # the first three share the prefix and four more pages that the first of them computed: groups nest
    inner_tail = trial.prompt(16 * PAGE_SIZE)
    inner = trial.sequence(prefix + inner_tail, leader.pages)
    inner.num_computed = len(prefix)
    trial.step([(inner, len(inner_tail))], logits="none")
    prompts = [
        prefix + (inner_tail if index < 3 else []) + tail for index, tail in enumerate(tails)
    ]
    sequences = [
        trial.sequence(prompt, inner.pages if index < 3 else leader.pages)
        for index, prompt in enumerate(prompts)
    ]
    for sequence, tail in zip(sequences, tails, strict=True):
        sequence.num_computed = len(sequence.token_ids) - len(tail)
    groups = (
        SharedGroup(np.arange(3, dtype=np.int32), 28),
        SharedGroup(np.arange(5, dtype=np.int32), 12),
    )
    found = trial.step(
        [(s, len(tail)) for s, tail in zip(sequences, tails, strict=True)], groups=groups
    )
    for row, prompt in zip(found, prompts, strict=True):
        np.testing.assert_allclose(row, plain.logits(prompt)[-1], atol=TOLERANCE)


def test_a_copied_page_serves_a_branch_that_diverges_inside_it(plain: TinyLlama) -> None:
    trial = Trial(plain, seed=6)
    prompt = trial.prompt(10)
    parent = trial.sequence(prompt)
    trial.step([(parent, 10)], logits="none")
    branch_ids = [*prompt[:10], *trial.prompt(3)]
    branch = trial.sequence(branch_ids, parent.pages[:2])
    branch.num_computed = 10
    copies = np.array([[parent.pages[2], branch.pages[2], 2]], np.int32)
    found = trial.step([(branch, 3)], page_copies=copies, logits="all")
    np.testing.assert_allclose(found, plain.logits(branch_ids)[10:], atol=TOLERANCE)


def test_scored_rows_go_through_the_head_in_chunks_and_come_back_in_order(plain: TinyLlama) -> None:
    trial = Trial(plain)
    seen: list[int] = []

    def sample(logits, batch, masks, scores) -> StepResult:
        seen.append(len(logits))
        found = logits.log_softmax(-1).numpy()
        chosen = (
            found[scores.rows, scores.token_ids] if len(scores.rows) else np.zeros(0, np.float32)
        )
        width = int(scores.num_logprobs.max(initial=0))
        top = np.argsort(-found[scores.rows], axis=1)[:, :width].astype(np.int32)
        values = np.take_along_axis(found[scores.rows], top, axis=1)
        return StepResult(
            found.argmax(-1)[batch.rows].astype(np.int32), None, Logprobs(chosen, top, values)
        )

    runner = ModelRunner(
        plain.files,
        num_pages=NUM_PAGES,
        page_size=PAGE_SIZE,
        kv_dtype="float32",
        sample=sample,
    )
    length = SCORED_ROWS_PER_CHUNK + 40
    prompt = trial.prompt(length)
    alternatives = np.where(np.arange(length - 1) == 3, 2, 0).astype(np.int32)
    scores = ScoreRows(
        np.arange(length - 1, dtype=np.int32), np.array(prompt[1:], np.int32), alternatives
    )
    plan = plan_step([(trial.sequence(prompt), length)], PAGE_SIZE, logits="all", scores=scores)
    object.__setattr__(
        plan, "sampling", no_sampling(np.array([length - 1, length - 1]))
    )  # n = 2 over one row
    result = runner.finish(runner.launch(plan), None)
    expected = plain.logits(prompt)
    logprobs = expected - np.log(np.exp(expected).sum(-1, keepdims=True))
    assert result.scores is not None
    np.testing.assert_allclose(
        result.scores.chosen, logprobs[np.arange(length - 1), prompt[1:]], atol=TOLERANCE
    )
    assert result.scores.top_ids.shape == (length - 1, 2)
    assert (result.scores.top_ids[SCORED_ROWS_PER_CHUNK:] == -1).all()
    assert result.token_ids.tolist() == [int(expected[-1].argmax())] * 2
    assert max(seen) <= SCORED_ROWS_PER_CHUNK


@pytest.mark.parametrize("kernels", ["auto", "reference"])
def test_masked_rows_sample_what_the_whole_head_gives(plain: TinyLlama, kernels: str) -> None:
    runner = ModelRunner(plain.files, num_pages=NUM_PAGES, page_size=PAGE_SIZE, kernels=kernels)
    random = np.random.default_rng(5)
    sequences = [
        PagedSequence([3 * i, 3 * i + 1, 3 * i + 2], random.integers(0, 97, 9).tolist())
        for i in range(6)
    ]
    plan = plan_step([(each, 9) for each in sequences], PAGE_SIZE, greedy=True)
    hidden = runner.launch(plan).hidden
    whole = runner._model.logits(hidden).numpy()
    masks = np.zeros((4, 4), np.uint32)
    allowed = [[96], [3, 5], [17, 40, 41, 95], list(range(97))]
    for mask, tokens in zip(masks, allowed, strict=True):
        for token in tokens:
            mask[token // 32] |= np.uint32(1 << token % 32)
    rows = np.array([5, 0, 2, 3], np.int32)
    num_logprobs = np.array(
        [-1, -1, 0, 2, -1, -1], np.int32
    )  # rows 2 and 3 go through the whole head
    sampling = replace(plan.sampling, mask_rows=rows, num_logprobs=num_logprobs)
    scores = ScoreRows(np.array([0], np.int32), np.array([7], np.int32), np.array([1], np.int32))
    for scored in (plan.scores, scores):
        step = replace(plan, sampling=sampling, scores=scored)
        result = runner.finish(PendingStep(step, hidden), masks)
        expected = whole.argmax(-1)
        for row, tokens in zip(rows, allowed, strict=True):
            expected[row] = tokens[whole[row, tokens].argmax()]
        assert result.token_ids.tolist() == expected.tolist()
        assert result.logprobs is not None
        total = np.logaddexp.reduce(whole[2].astype(np.float64))
        assert result.logprobs.chosen[2] == pytest.approx(whole[2, expected[2]] - total, abs=1e-4)
        if scored is scores:
            assert result.scores is not None
            total = np.logaddexp.reduce(whole[0].astype(np.float64))
            assert result.scores.chosen[0] == pytest.approx(whole[0, 7] - total, abs=1e-4)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_stays_close_to_float32(plain: TinyLlama, dtype: str) -> None:
    trial = Trial(plain, dtype=dtype)
    prompt = trial.prompt(50)
    sequence = trial.sequence(prompt)
    found = [trial.step([(sequence, count)], logits="all") for count in (40, 9, 1)]
    expected = plain.logits(prompt)
    error = np.abs(np.concatenate(found) - expected).mean() / np.abs(expected).mean()
    assert error < 0.05


@pytest.mark.parametrize("kernels", ["auto", "reference"])
@pytest.mark.parametrize("kv_dtype", ["bfloat16", "int8"])
def test_narrow_keys_and_values_stay_close_to_float32(
    plain: TinyLlama, kv_dtype: str, kernels: str
) -> None:
    trial = Trial(plain, kv_dtype=kv_dtype, kernels=kernels)
    prompts = [trial.prompt(length) for length in (50, 9, 33)]
    sequences = [trial.sequence(prompt) for prompt in prompts]
    found = [trial.step([(each, count) for each, count in zip(sequences, counts, strict=True)], logits="all")[: counts[0]] for counts in ((40, 7, 30), (9, 1, 1), (1, 1, 2))]  # fmt: skip
    expected = plain.logits(prompts[0])
    error = np.abs(np.concatenate(found) - expected).mean() / np.abs(expected).mean()
    assert 0 < error < 0.03


def test_auto_takes_bfloat16_keys_and_values_on_the_native_kernels_beside_torch(
    plain: TinyLlama,
) -> None:
    def stored(**options) -> str:
        return ModelRunner(plain.files, num_pages=1, sample=LogitsProbe(), **options).facts.kv_dtype

    assert stored(kernels="reference") == "float32"
    assert stored(kernels="reference", dtype="bfloat16") == "bfloat16"
    assert stored(kernels="reference", kv_dtype="int8") == "int8"
    if load_backend("cpu").unavailable_reason("cpu") is None:
        assert stored(kernels="cpu") == "bfloat16"


@pytest.mark.parametrize(
    ("kv_dtype", "head_bytes"), [("float32", 64), ("bfloat16", 32), ("int8", 20)]
)
def test_the_pool_holds_as_many_pages_as_the_memory_given(
    plain: TinyLlama, kv_dtype: str, head_bytes: int
) -> None:
    facts = ModelRunner(
        plain.files,
        kv_bytes=1_000_000,
        kernels="reference",
        kv_dtype=kv_dtype,
        sample=LogitsProbe(),
    ).facts
    assert facts.page_bytes == 2 * 2 * 16 * 2 * head_bytes  # K and V, layers, tokens, heads
    assert facts.num_pages == 1_000_000 // facts.page_bytes
    assert (facts.vocab_size, facts.context_length, facts.kernels) == (97, 512, "reference")


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"num_pages": 0, "kv_bytes": 10}, "num_pages"),
        ({"num_pages": 1, "page_size": 24}, "page_size"),
        ({"num_pages": 1, "page_size": 0}, "page_size"),
        ({"num_pages": 1, "dtype": "int8"}, "dtype"),
        ({"num_pages": 1, "kernels": "fastest"}, "kernels"),
        ({"num_pages": 1, "kv_dtype": "float16"}, "kv_dtype"),
    ],
)
def test_an_option_that_cannot_be_met_is_a_config_error_naming_it(
    plain: TinyLlama, options, place: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        ModelRunner(plain.files, sample=LogitsProbe(), **options)
    assert caught.value.place == place
