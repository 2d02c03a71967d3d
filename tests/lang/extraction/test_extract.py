"""`extract` over an iterable: rows, failures, bounds, faults of the service, and what a wrong option is told."""

from __future__ import annotations

import json
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from extraction_job import SCHEMA, answer, document_of
from pydantic import BaseModel, Field, field_validator

from radixlm.errors import (
    Aborted,
    ConfigError,
    EngineDied,
    GrammarError,
    OutputError,
    PromptError,
    SamplingError,
    ServiceError,
)
from radixlm.lang.extract import Failure, Progress, extract
from radixlm.lang.extraction import pipeline
from radixlm.lang.testing import Answer, Request, ScriptedBackend
from radixlm.runtime.messages import Ready


class Note(BaseModel):
    """What a note says."""

    number: int
    word: str = Field(max_length=10, description="what it is about")

    @field_validator("number")
    @classmethod
    def no_99(cls, value: int) -> int:
        if value == 99:
            raise ValueError("99 is not a number of ours")
        return value


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "_PAUSE_S", 0.0)


def notes(num: int) -> list[str]:
    return [f"note {n} about rain" for n in range(num)]


def test_a_row_for_each_document_with_values_of_the_schemas_type() -> None:
    rows = list(extract(notes(3), schema=Note, backend=ScriptedBackend(default=answer)))
    assert rows == [
        {"source": "input", "index": n, "value": Note(number=n, word="rain")} for n in range(3)
    ]
    rows = list(extract("note 5 about sun", schema=SCHEMA, backend=ScriptedBackend(default=answer)))
    assert rows == [{"source": "input", "index": 0, "value": {"number": 5, "word": "sun"}}]


def test_every_prompt_begins_with_the_same_instructions_which_name_the_fields() -> None:
    backend = ScriptedBackend(default=answer)
    list(extract(notes(20), schema=Note, backend=backend, instructions="Read notes."))
    heads = {request.prompt.partition("note ")[0] for request in backend.requests}
    (head,) = heads
    assert "Read notes.\n" in head
    assert "- word (text)" in head
    ends = {request.prompt.partition(" about rain")[2] for request in backend.requests}
    (end,) = ends
    assert end.startswith("\n\nReport as JSON: number, what it is about (word).<|im_end|>")
    used = [request.message for request in backend.requests]
    assert all(message.branch is None for message in used)


def test_the_shared_instructions_are_computed_once() -> None:
    seen: list[Progress] = []
    backend = ScriptedBackend(default=answer)
    list(extract(notes(50), schema=Note, backend=backend, on_progress=seen.append))
    tally = seen[-1].tally
    num_shared = len(backend.requests[0].prompt.partition("note ")[0].split())
    assert (
        tally.prompt_tokens - tally.cached_tokens < num_shared + 50 * 18
    )  # a document, the reminder, role marks
    assert tally.num_rows == 50


def test_without_a_place_for_failures_the_first_is_raised_when_all_is_done() -> None:
    rows: list[Any] = []
    documents = ["note 0 about rain", " ", "note 99 about sun", "note 3 about sun"]
    backend = ScriptedBackend(default=answer)
    with pytest.raises(PromptError, match="empty") as caught:
        rows.extend(extract(documents, schema=Note, backend=backend, ordered=True))
    assert [row["index"] for row in rows] == [0, 3]
    assert "2 of 4 documents failed" in caught.value.__notes__[0]


def failures_of(answers: Any, num: int = 3, **options: Any) -> tuple[list[int], list[Failure]]:
    failed: list[Failure] = []
    backend = ScriptedBackend(default=answers)
    rows = extract(notes(num), schema=Note, backend=backend, on_failure=failed.append, **options)
    return [row["index"] for row in rows], failed


def at_one(bad: Any) -> Any:
    """A scripted model that does `bad` for document 1."""
    return lambda request: bad if "note 1 " in document_of(request) else answer(request)


@pytest.mark.parametrize(
    ("bad", "error", "reason", "is_invalid"),
    [
        (Answer('{"number": 1', "length"), OutputError, "cut after", False),
        ('{"number": "1", "word": "x"}', OutputError, "/number", True),
        ('{"number": 1, "word": "xxxxxxxxxxx"}', OutputError, "too long", True),
        ('{"number": 1e999, "word": "x"}', OutputError, "no JSON", True),
        ('{"number": 99, "word": "x"}', OutputError, "not a number of ours", False),
        (PromptError("the prompt has 9 tokens"), PromptError, "9 tokens", False),
    ],
)
def test_a_document_that_fails_loses_no_other(
    bad: Any, error: type[Exception], reason: str, is_invalid: bool
) -> None:
    indices, (failure,) = failures_of(at_one(bad))
    assert sorted(indices) == [0, 2]
    assert isinstance(failure.error, error)
    assert reason in str(failure.error)
    assert failure.is_invalid is is_invalid
    line = failure.as_dict()
    assert (line["index"], line["error"], line["excerpt"]) == (
        1,
        error.__name__,
        "note 1 about rain",
    )
    assert json.dumps(line)


@pytest.mark.parametrize(
    "fault", [GrammarError("no such keyword"), SamplingError("top_p"), Aborted("you")]
)
def test_what_is_the_jobs_fault_ends_it(fault: Exception) -> None:
    with pytest.raises(type(fault)):
        failures_of(at_one(fault))


def test_after_a_fault_of_the_service_documents_are_tried_again() -> None:
    indices, failed = failures_of(
        at_one([EngineDied("gone"), EngineDied("gone"), '{"number":1,"word":"x"}']), 20
    )
    assert sorted(indices) == list(range(20))
    assert not failed


def test_a_document_that_always_kills_the_engine_takes_no_other_with_it() -> None:
    indices, (failure,) = failures_of(at_one(EngineDied("gone")), 20)
    assert sorted(indices) == [0, *range(2, 20)]
    assert isinstance(failure.error, EngineDied)


def wait_for(backend: ScriptedBackend, num: int) -> None:
    """Until so many requests wait for their answers."""
    deadline_s = time.monotonic() + 10
    while backend.num_waiting < num and time.monotonic() < deadline_s:
        time.sleep(0.001)
    assert backend.num_waiting >= num


def test_documents_are_tried_again_with_nothing_beside_them() -> None:
    num_faults = 0

    def faulty(request: Request) -> Any:
        nonlocal num_faults
        num_faults += 1
        return EngineDied("gone") if num_faults <= 2 else answer(request)

    backend = ScriptedBackend(default=faulty)
    backend.pause()
    got: list[Any] = []
    rows = extract(notes(3), schema=SCHEMA, backend=backend, num_under_way=2)
    thread = threading.Thread(target=lambda: got.extend(rows))
    thread.start()
    wait_for(backend, 2)
    backend.resume()
    backend.pause()
    for _ in range(2):
        wait_for(backend, 1)
        time.sleep(0.05)  # time enough to do it wrong
        assert backend.num_waiting == 1
        backend.resume()
        backend.pause()
    wait_for(backend, 1)
    backend.resume()
    thread.join(10)
    assert sorted(row["index"] for row in got) == [0, 1, 2]


def test_a_service_that_is_gone_ends_the_job() -> None:
    with pytest.raises(ServiceError):
        failures_of(EngineDied("gone"), 20)


def test_no_more_documents_are_read_than_may_be_under_way() -> None:
    num_read = 0

    def reading() -> Iterator[str]:
        nonlocal num_read
        for text in notes(1000):
            num_read += 1
            yield text

    rows = extract(
        reading(), schema=SCHEMA, backend=ScriptedBackend(default=answer), num_under_way=10
    )
    assert num_read == 0
    for num_taken, _ in enumerate(rows, 1):
        assert num_read <= num_taken + 10
        if num_taken == 100:
            break
    rows.close()  # pyright: ignore[reportAttributeAccessIssue]
    assert num_read <= 110


def test_memory_does_not_grow_with_the_number_of_documents() -> None:
    class Forgetful(ScriptedBackend):
        def generate(self, *args: Any, **kwargs: Any) -> Any:
            self.requests.clear()
            self.sent.clear()
            self._branches._roots.clear()
            return super().generate(*args, **kwargs)

    documents = (f"note {n} about {'x' * 10_000}" for n in range(600))
    short = lambda _: '{"number": 1, "word": "x"}'  # noqa: E731
    tracemalloc.start()
    for _ in extract(documents, schema=SCHEMA, backend=Forgetful(default=short), num_under_way=8):
        pass
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 2 << 20  # the documents have 6 MB


def test_rows_come_in_order_if_asked() -> None:
    backend = ScriptedBackend(default=at_one([EngineDied("gone"), '{"number":1,"word":"x"}']))
    rows = extract(notes(30), schema=SCHEMA, backend=backend, ordered=True, num_under_way=7)
    assert [row["index"] for row in rows] == list(range(30))


def test_leaving_the_loop_aborts_what_is_under_way() -> None:
    backend = ScriptedBackend(default=answer)
    backend.pause()
    rows = extract(notes(5), schema=SCHEMA, backend=backend, num_under_way=3)

    def answer_one() -> None:
        wait_for(backend, 3)
        while len(backend.requests) < 1:
            backend.resume()
        backend.pause()

    def take_one() -> None:
        next(rows)
        backend.pause()
        rows.close()  # pyright: ignore[reportAttributeAccessIssue]

    thread = threading.Thread(target=take_one)
    thread.start()
    answer_one()
    thread.join(10)
    assert not thread.is_alive()
    assert backend.num_waiting == 0


def test_a_long_document_is_read_in_parts_and_merged() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "array", "items": {"type": "integer"}}},
        "required": ["n"],
    }

    def numbers(request: Request) -> str:
        return json.dumps({"n": [int(word) for word in document_of(request).split()]})

    text = " ".join(map(str, range(500)))
    backend = ScriptedBackend(default=numbers)
    (row,) = extract(text, schema=schema, backend=backend, chunk_chars=100, overlap=20)
    assert row["value"]["n"] == list(range(500))
    assert len(backend.requests) > 15
    (row,) = extract(
        text, schema=schema, backend=ScriptedBackend(default=numbers), chunk_chars=100,
        merge=lambda values: {"n": [len(values)]},
    )  # fmt: skip
    assert row["value"]["n"][0] > 15


def test_a_part_that_fails_fails_its_document_once() -> None:
    bad = lambda request: PromptError("no") if "7" in document_of(request) else answer(request)  # noqa: E731
    failed: list[Failure] = []
    texts = ["note 1 about rain " + "x " * 200 + "7 " + "y " * 300, "note 2 about sun"]
    backend = ScriptedBackend(default=lambda request: raise_or(bad, request))
    rows = list(
        extract(texts, schema=SCHEMA, backend=backend, chunk_chars=100, on_failure=failed.append)
    )
    assert [row["index"] for row in rows] == [1]
    assert len(failed) == 1
    assert failed[0].num_parts > 3


def raise_or(script: Any, request: Request) -> Any:
    if "about" not in document_of(request) and "7" not in document_of(request):
        return '{"number": 1, "word": "x"}'
    return script(request)


def test_parts_are_as_long_as_the_context_allows() -> None:
    facts = Ready("scripted", context_length=800, vocab_size=1000, eos_token_ids=(0,))
    backend = ScriptedBackend(default='{"number": 1, "word": "x"}', facts=facts)
    list(extract("word " * 1000, schema=SCHEMA, backend=backend, max_tokens=100))
    assert len(backend.requests) > 2
    with pytest.raises(ConfigError, match="does not fit"):
        extract(["x"], schema=SCHEMA, backend=backend, max_tokens=790)


def test_each_document_has_a_seed_of_its_own_that_the_next_run_repeats() -> None:
    def seeds(seed: int) -> list[int | None]:
        backend = ScriptedBackend(default=answer)
        list(extract(notes(4), schema=SCHEMA, backend=backend, temperature=0.8, seed=seed))
        return [request.sampling.seed for request in backend.requests]

    assert seeds(1) == seeds(1)
    assert len(set(seeds(1) + seeds(2))) == 8


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"instruction": "x"}, ConfigError, "Did you mean instructions"),
        ({"top_k": -1}, SamplingError, "top_k"),
        ({"n": 2}, ConfigError, "n must be 1"),
        ({"merge": "last"}, ConfigError, "union"),
        ({"num_under_way": 0}, ConfigError, "num_under_way"),
        ({"chunk_tokens": 100}, ConfigError, "cannot count tokens"),
        ({"chunk_tokens": 100, "chunk_chars": 100}, ConfigError, "not both"),
        ({"schema": {"type": "nonsense"}}, GrammarError, "no JSON Schema"),
        ({"schema": "nowhere.json"}, ConfigError, "neither a file nor"),
        ({"schema": "no_such_module:Model"}, ConfigError, "no module 'no_such_module'"),
        ({"schema": "json:nothing_here"}, ConfigError, "no nothing_here in json"),
        ({"max_tokens": -1}, SamplingError, "max_tokens"),
        ({"schema": "json:loads"}, Exception, "function"),
    ],
)
def test_a_wrong_option_is_named_before_anything_is_read(
    options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        extract(iter([]), backend=ScriptedBackend(), **{"schema": SCHEMA, **options})


def test_schemas_may_be_named_in_every_usual_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA))
    (tmp_path / "my_models.py").write_text(
        "from __future__ import annotations\nfrom pydantic import BaseModel\n\n\n"
        "class Note(BaseModel):\n    number: int\n    word: str\n"
    )
    monkeypatch.chdir(tmp_path)
    plain: list[Any] = [SCHEMA, json.dumps(SCHEMA), "s.json", tmp_path / "s.json"]
    for schema in (*plain, "my_models:Note", f"{tmp_path}/my_models.py:Note"):
        (row,) = extract(notes(1), schema=schema, backend=ScriptedBackend(default=answer))
        value = row["value"] if isinstance(row["value"], dict) else row["value"].model_dump()
        assert value == {"number": 0, "word": "rain"}
