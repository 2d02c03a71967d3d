"""Extraction with the real model: rows that satisfy the schema, instructions computed once, parts measured in tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, Field

import radixlm
from radixlm.errors import ConfigError, GrammarError
from radixlm.lang.extract import Progress, extract, extract_files
from radixlm.lang.extraction.outline import reminder
from radixlm.lang.extraction.target import Target

pytestmark = pytest.mark.model

REVIEWS = [
    "We stayed two nights at the Hotel Bellevue in Lyon. The room was clean. But the wifi was slow.",
    "Seaview Inn, Brighton: terrible. The heating was broken. We left after one night.",
    "Lovely week at the Grand Plaza in Madrid! Staff were kind, the pool was warm.",
    "The Alpine Lodge in Zermatt has the best view of the Matterhorn. Food was cold though.",
]


class Review(BaseModel):
    """A hotel review."""

    hotel: str = Field(max_length=30, description="name of the hotel")
    city: str = Field(max_length=20)
    mood: Literal["positive", "negative", "mixed"]


def test_files_become_valid_rows_and_the_instructions_are_computed_once(
    engine: radixlm.Engine, tmp_path: Path
) -> None:
    for number, review in enumerate(REVIEWS):
        (tmp_path / f"{number}.txt").write_text(review)
    (tmp_path / "5.txt").write_text("")
    engine.flush()
    seen: list[Progress] = []
    summary = extract_files(
        tmp_path,
        Review,
        tmp_path / "out.jsonl",
        backend=engine,
        max_tokens=60,
        on_progress=seen.append,
    )
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert {row["source"] for row in rows} == {str(tmp_path / f"{n}.txt") for n in range(4)}
    for row in rows:
        assert list(row) == ["source", "index", "value"]
        Review.model_validate(row["value"])
    cities = {Path(row["source"]).stem: row["value"]["city"] for row in rows}
    assert cities["0"] == "Lyon"
    run = summary.run
    assert (run.num_rows, run.num_failed, run.num_invalid) == (4, 1, 0)
    assert run.forced_tokens > 0
    after = reminder(Target.of(Review).schema)
    num_own = sum(len(engine.tokenize(f"{review}\n\n{after}")) + 8 for review in REVIEWS)
    num_shared = run.prompt_tokens // 4 - num_own // 4
    assert run.prompt_tokens - run.cached_tokens <= num_own + num_shared + 16
    assert len(seen) == 5
    assert "invalid = 0" in summary.line()


def test_a_long_document_is_cut_by_the_models_own_tokens(engine: radixlm.Engine) -> None:
    people = ["Anna from Oslo", "Ben from Rome", "Cara from Lima", "Dan from Bonn"]
    text = "\n\n".join(f"{who} came by and talked about the weather for an hour." for who in people)

    class People(BaseModel):
        names: list[str] = Field(max_length=6, description="first names of people")

    seen: list[Progress] = []
    (row,) = extract(
        text,
        schema=People,
        backend=engine,
        chunk_tokens=20,
        overlap=0,
        max_tokens=40,
        on_progress=seen.append,
    )
    assert isinstance(row["value"], People)
    assert seen[-1].tally.num_split == 1
    assert len(row["value"].names) == len(set(row["value"].names))
    with pytest.raises(ConfigError, match="does not fit"):
        extract(text, schema=People, backend=engine, chunk_tokens=engine.facts.context_length)


def test_a_schema_that_no_grammar_enforces_ends_the_job_at_once(
    engine: radixlm.Engine, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("text")
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": r"(x)\1"}},
    }
    with pytest.raises(GrammarError):
        extract_files(tmp_path / "a.txt", schema, tmp_path / "out.jsonl", backend=engine)
    assert (
        not (tmp_path / "out.failed.jsonl").exists()
        or not (tmp_path / "out.failed.jsonl").read_text()
    )
