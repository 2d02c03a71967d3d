"""The grammar commands of the command line: explain and check."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_line import run

FRUIT = {
    "title": "Pick",
    "properties": {"fruit": {"enum": ["apple", "plum"]}, "note": {"type": "string"}},
    "required": ["fruit"],
    "type": "object",
    "additionalProperties": False,
}


def test_grammar_explain_says_what_a_schema_forces_and_ignores_or_why_it_is_refused(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps(FRUIT))
    done = run("grammar", "explain", str(path))
    assert done.returncode == 0, done.stderr
    assert """always begins with   {"fruit":\"""" in done.stdout
    assert re.search(r"  #/title +\"Pick\" +annotation\n", done.stdout)
    done = run("grammar", "explain", str(path), "--json", "--any-order")
    found = json.loads(done.stdout)
    assert (found["shortest"], found["refused"]) == ('{"fruit":"plum"}', None)
    assert {
        "place": "#/type",
        "keyword": "type",
        "value": '"object"',
        "how": "enforced",
        "reason": "",
    } in found["keywords"]
    path.write_text(json.dumps({**FRUIT, "maxProperties": "x"}))
    done = run("grammar", "explain", str(path))
    assert done.returncode == 1
    assert "(at #/maxProperties)" in done.stdout
    done = run("grammar", "explain", str(path), "--json")
    assert (done.returncode, json.loads(done.stdout)["refused"]["line"]) == (1, 1)


def test_grammar_check_says_where_a_text_leaves_its_constraint(tmp_path: Path) -> None:
    schema, text = tmp_path / "s.json", tmp_path / "t.json"
    schema.write_text(json.dumps(FRUIT))
    text.write_text('{"note": "x",\n "fruit": "pear"}\n')
    done = run("grammar", "check", str(schema), "--text", str(text))
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines() == [
        "2:13: not an output, in the value at #/fruit",
        '     "fruit": "pear"}',
        "                ^",
        'found `"pear"`, expected `"plum"`',
        'shortest way to an output from here: `lum"}`',
    ]
    text.write_text('{"note": "x",\n "fruit": "plum"}\n')
    done = run("grammar", "check", str(schema), "--text", str(text), "--json")
    assert (done.returncode, json.loads(done.stdout)["outcome"]) == (0, "accepted")
    strict = ("--whitespace", "single_space", "--no-any-order")
    done = run("grammar", "check", str(schema), "--text", str(text), *strict)
    assert done.returncode == 1
    assert "With other white space and order of properties allowed" in done.stdout


def test_grammar_check_of_an_unusable_file_is_status_2(tmp_path: Path) -> None:
    text = tmp_path / "t.txt"
    text.write_text("a")
    missing = run("grammar", "check", str(tmp_path / "none.json"), "--text", str(text))
    assert (missing.returncode, "none.json" in missing.stderr) == (2, True)
    refused = run("grammar", "check", "--regex", r"(a)\1", "--text", str(text))
    assert (refused.returncode, "column 4" in refused.stdout) == (2, True)


@pytest.mark.model
def test_grammar_counts_in_a_models_tokens_when_asked(
    smollm2_files: object, tmp_path: Path
) -> None:
    (tmp_path / "t.txt").write_text("hello world")
    arguments = ("--regex", "hello [a-z]+", "--model", "smollm2-135m")
    done = run("grammar", "check", *arguments, "--text", str(tmp_path / "t.txt"))
    assert done.stdout == "accepted, 2 tokens\n"
    assert "first tokens" in run("grammar", "explain", *arguments).stdout
