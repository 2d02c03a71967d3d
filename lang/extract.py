"""Extraction: any number of documents in, a validated row for each out.

    for row in extract(["Maria, 34, lives in Madrid."], schema=Person, backend=engine):
        print(row["index"], row["value"])
    print(extract_files(["letters/"], "schema.json", "out.jsonl", backend=engine).line())

Owns the two ways in. The parts are `lang.extraction`'s, the model is any `Backend`; nothing here knows sockets, tokens or progress bars.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from .extraction.documents import Document, Failure, Row
from .extraction.job import Job, JobFiles, OnProgress, Standing
from .extraction.pipeline import Pipeline
from .extraction.recipe import FutureBackend, Recipe
from .extraction.sources import find_sources, read_items
from .extraction.tally import Progress, Summary, Tally
from .extraction.target import Target
from .sampling import SamplingOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .backend import Backend, HasBackend

__all__ = ["Document", "Failure", "Progress", "Row", "Summary", "Tally", "extract", "extract_files"]


class ExtractOptions(SamplingOptions, total=False):
    """How documents are read. The sampling arguments are those of `gen`; at a temperature, `seed` makes a job repeatable (0 if not given)."""

    max_tokens: int  # of an answer; 512 if not given. The output is always closed within them
    field: str | None  # what holds the text of a record: a key, a column, a dotted path
    instructions: (
        str | None
    )  # what the model is told first; the fields of the schema follow by themselves
    chunk_tokens: int | None  # the longest part of a document; what the context holds if not given
    chunk_chars: int | None  # the same in characters, for backends that cannot count tokens
    overlap: (
        int | None
    )  # what a part repeats of the one before, in the same unit; a tenth if not given
    merge: (
        str | Callable[[Sequence[Any]], Any]
    )  # "union" (see `extraction/merging.py`), "first", or a function
    num_under_way: int  # documents held and requests under way at once; 128 if not given
    ordered: bool  # rows in the order of the documents, instead of as they finish


def extract(
    sources: Iterable[Any] | str | Path,
    *,
    schema: Any,
    backend: Backend | HasBackend | None = None,
    on_failure: Callable[[Failure], None] | None = None,
    on_progress: OnProgress | None = None,
    **options: Unpack[ExtractOptions],
) -> Iterator[Row]:
    """Yield {"source", "index", "value"} for each document, as it finishes (`ordered=True`: in order).

    `sources` is any iterable, read as rows are taken: a str is a document, a `pathlib.Path` a file or a folder, a dict a record whose
    text is in `field`. `schema` is a JSON Schema (dict, JSON text, path), "module:Model", or a Python type as for `gen(schema=)`: then
    values are instances of it.

    A document without a row goes to `on_failure`, with the reason. Without that, its error is raised when all others are done. Options
    are those of `ExtractOptions`; a wrong one, or a wrong schema, is raised here, before anything is read.
    """
    recipe = Recipe.of(schema, backend=backend, **options)
    is_one = isinstance(sources, str | Path | Mapping)
    items = cast("Iterable[Any]", [sources] if is_one else sources)
    return _rows(Pipeline(recipe), read_items(items, recipe.field), on_failure, on_progress)


def extract_files(
    paths: Iterable[str | Path] | str | Path,
    schema: Any,
    output: str | Path,
    *,
    backend: Backend | HasBackend | None = None,
    dead_letter: str | Path | None = None,
    resume: bool = True,
    retry_failed: bool = False,
    on_progress: OnProgress | None = None,
    **options: Unpack[ExtractOptions],
) -> Summary:
    """Extract from files and folders into `output` (.jsonl, .csv or .parquet), a row appended for each document as it finishes.

    Documents without a row go to `dead_letter` (`out.failed.jsonl` if not given) with the reason. `out.jsonl.journal` remembers what is
    done: the same call after an interrupt or a kill finishes the job, with no row lost or twice. If schema, model, options or sources
    are others by then, it is a ConfigError. `resume=False` begins anew, over what is there. `retry_failed` tries the documents of the
    dead-letter file again. Otherwise as `extract`.
    """
    files = JobFiles.beside(output, dead_letter)
    found = find_sources(paths, files.all())
    recipe = Recipe.of(schema, backend=backend, **options)
    return Job(found, files, recipe, on_progress).run(resume=resume, retry_failed=retry_failed)


def check_job(
    paths: Iterable[str | Path] | str | Path,
    schema: Any,
    output: str | Path,
    *,
    model: str,
    dead_letter: str | Path | None = None,
    resume: bool = True,
    retry_failed: bool = False,
    **options: Unpack[ExtractOptions],
) -> tuple[Target, Standing]:
    """Raise what `extract_files` would refuse with any backend of this model's name, for callers that have yet to start one.

    Returns the schema, and how far the job came: one that is finished needs no backend.
    """
    files = JobFiles.beside(output, dead_letter)
    recipe = Recipe.of(schema, backend=cast("Any", FutureBackend(model)), **options)
    found = find_sources(paths, files.all())
    standing = Job(found, files, recipe).look(resume=resume, retry_failed=retry_failed)
    return recipe.target, standing


def _rows(
    pipeline: Pipeline,
    documents: Iterator[Document | Failure],
    on_failure: Callable[[Failure], None] | None,
    on_progress: OnProgress | None,
) -> Iterator[Row]:
    began_s = time.monotonic()
    tally = Tally()
    first_failure: Failure | None = None
    with closing(pipeline.run(zip(count(), documents))) as outcomes:
        for _, outcome in outcomes:
            tally = tally.plus(outcome)
            if on_progress is not None:
                elapsed_s = time.monotonic() - began_s
                on_progress(Progress(tally, 0, pipeline.num_under_way, None, elapsed_s))
            if not isinstance(outcome, Failure):
                document = outcome.document
                yield Row(source=document.source, index=document.index, value=outcome.typed)
            elif on_failure is not None:
                on_failure(outcome)
            else:
                first_failure = first_failure or outcome
    if first_failure is not None:
        error = first_failure.error
        document = first_failure.document
        error.add_note(
            f"reading document {document.index} of {document.source}; {tally.num_failed} of {tally.num_documents} documents failed"
        )
        raise error
