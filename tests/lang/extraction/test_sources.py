"""Documents from files, folders and iterables: what is read, how it is numbered, and what is said of what cannot be read."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from radixlm.errors import ConfigError
from radixlm.lang.extraction.documents import Document, Failure
from radixlm.lang.extraction.records import read_csv
from radixlm.lang.extraction.sources import Source, find_sources, read_items


def read(path: Path, content: str | bytes, field: str | None = None, **options: Any) -> list[Any]:
    """The texts of a file's documents; for one that cannot be read, its (line, reason)."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    documents = list(Source(path.name, path).read(field, **options))
    places = [d.document if isinstance(d, Failure) else d for d in documents]
    assert [place.index for place in places] == list(range(len(places)))
    return [
        d.text if isinstance(d, Document) else (d.document.line, str(d.error)) for d in documents
    ]


def test_a_text_file_is_one_document_without_its_byte_order_mark(tmp_path: Path) -> None:
    assert read(tmp_path / "a.md", b"\xef\xbb\xbf# Head\r\nline\n") == ["# Head\nline\n"]


def test_bytes_that_are_no_utf8_are_named(tmp_path: Path) -> None:
    ((line, reason),) = read(tmp_path / "a.txt", b"caf\xe9")
    assert line == 0
    assert "character 3" in reason
    assert "0xE9" in reason


@pytest.mark.parametrize(
    ("content", "reason"), [(b"", "empty"), (b" \n", "empty"), (b"a\0b", "NUL")]
)
def test_files_without_text_fail(tmp_path: Path, content: bytes, reason: str) -> None:
    ((_, said),) = read(tmp_path / "a.txt", content)
    assert reason in said


def test_json_lines_are_numbered_without_blank_lines_and_go_on_after_a_bad_one(
    tmp_path: Path,
) -> None:
    lines = b'{"text": "one"}\n\n{bad\n"two"\n[1]\n{"text": "\\ud800"}\n{"text": "thr\xc3\xa9e"}'
    texts = read(tmp_path / "a.jsonl", lines)
    assert [text for text in texts if isinstance(text, str)] == ["one", "two", "thrée"]
    assert [text[0] for text in texts if isinstance(text, tuple)] == [3, 5, 6]


@pytest.mark.parametrize(
    ("record", "field", "text"),
    [
        ('{"body": "x", "n": 1}', "body", "x"),
        ('{"a": {"b": "x"}}', "a.b", "x"),
        ('{"a.b": "x"}', "a.b", "x"),
        ('{"n": [1, "é"]}', "n", '[1, "é"]'),
        ('{"text": "x", "n": 1}', None, "x"),
        ('{"title": "x", "n": 1}', None, "title: x\nn: 1"),
    ],
)
def test_the_field_names_the_text_of_a_record(
    tmp_path: Path, record: str, field: str | None, text: str
) -> None:
    assert read(tmp_path / "a.jsonl", record, field) == [text]


@pytest.mark.parametrize("record", ['{"n": 1}', '{"body": null}', '{"body": ""}'])
def test_a_record_without_the_field_fails_alone(tmp_path: Path, record: str) -> None:
    (first, second) = read(tmp_path / "a.jsonl", f'{record}\n{{"body": "x"}}', "body")
    assert isinstance(first, tuple)
    assert second == "x"


def test_a_table_is_read_by_its_columns_with_any_usual_delimiter(tmp_path: Path) -> None:
    content = 'id,body\n1,"two\nlines, quoted"\n2,plain\n'
    assert read(tmp_path / "a.csv", content, "body") == ["two\nlines, quoted", "plain"]
    assert read(tmp_path / "b.csv", "id;body\n1;x, y\n", "body") == ["x, y"]
    assert read(tmp_path / "c.tsv", "id\tbody\n1\tx, y\n", "body") == ["x, y"]
    assert read(tmp_path / "d.csv", "id,body\n1,x\n") == ["id: 1\nbody: x"]


def test_records_of_a_table_that_cannot_be_read_fail_alone(tmp_path: Path) -> None:
    first, second, third = read(tmp_path / "a.csv", b"id,body\n1,a,b\n2,\xff\n3,x\n", "body")
    assert first == (2, "the record has 3 values for 2 columns")
    assert second[0] == 3
    assert third == "x"


def test_a_table_without_the_column_is_refused_with_its_columns(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'id', 'body'"):
        read(tmp_path / "a.csv", "id,body\n1,x\n", "text")


def test_a_field_longer_than_the_standard_librarys_bound_is_read(tmp_path: Path) -> None:
    assert read(tmp_path / "a.csv", f"body\n{'x' * 200_000}\n", "body") == ["x" * 200_000]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", f'"{"x" * 100}"\n"ok"'),
        ("a.csv", f"text\n{'x' * 100}\nok\n"),
        ("a.txt", "x" * 100),
    ],
)
def test_a_document_beyond_the_bound_fails_and_is_not_held(
    tmp_path: Path, name: str, content: str
) -> None:
    first, *others = read(tmp_path / name, content, max_bytes=50)
    assert "50" in first[1]
    assert others == ([] if name == "a.txt" else ["ok"])


def test_a_folder_stands_for_its_documents_in_order_without_those_the_job_writes(
    tmp_path: Path,
) -> None:
    for name in ("b.txt", "a.md", "sub/c.csv", "out.jsonl", ".hidden/d.txt", "image.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = find_sources(tmp_path, [tmp_path / "out.jsonl"])
    assert [source.path.name for source in found] == ["a.md", "b.txt", "c.csv"]


def test_paths_that_cannot_be_meant_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    (tmp_path / "empty").mkdir()
    cases: list[tuple[list[Path], str]] = [
        ([tmp_path / "none.txt"], "does not exist"),
        ([tmp_path / "empty"], "holds no documents"),
        ([tmp_path / "a.txt", tmp_path], "given twice"),
        ([], "no documents"),
    ]
    for paths, reason in cases:
        with pytest.raises(ConfigError, match=reason):
            find_sources(paths)


def test_an_iterable_may_hold_texts_paths_records_and_documents(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('"one"\n"two"\n')
    items = [
        "text",
        tmp_path / "a.jsonl",
        {"body": "record"},
        Document("mine", 7, "own"),
        {"no": 1},
    ]
    documents = list(read_items(items, "body"))
    read_ones = [(d.source, d.index, d.text) for d in documents if isinstance(d, Document)]
    assert read_ones == [
        ("input", 0, "text"),
        (str(tmp_path / "a.jsonl"), 0, "one"),
        (str(tmp_path / "a.jsonl"), 1, "two"),
        ("input", 2, "record"),
        ("mine", 7, "own"),
    ]
    assert isinstance(documents[-1], Failure)
    with pytest.raises(ConfigError, match="item 0"):
        list(read_items([3]))


def test_reading_a_table_leaves_the_limit_of_other_readers_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("text\na\nb\n")
    before = csv.field_size_limit()
    records = iter(read_csv(path, "t.csv", "text", 50))
    next(records)
    assert csv.field_size_limit() == before
    assert len(list(records)) == 1
    assert csv.field_size_limit() == before
