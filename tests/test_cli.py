"""The command line: quick help, errors as one line with a hint, and the commands that need no engine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import run
from toy_engine import open_toy

import radixlm
from radixlm import bench_programs as programs
from radixlm import cli, console, offline
from radixlm.lang.testing import Request
from radixlm.runtime import engine_process, model_pull

COMMANDS = (
    "pull",
    "generate",
    "chat",
    "run",
    "trace",
    "serve",
    "extract",
    "bench",
    "doctor",
    "grammar",
)


def test_help_names_the_commands_and_loads_nothing_heavy() -> None:
    script = """
import sys
sys.argv = ["radixlm", "--help"]
from radixlm.cli import main
try:
    main()
except SystemExit as end:
    assert end.code == 0
heavy = {"torch", "numpy", "zmq", "transformers", "tokenizers", "pydantic", "rich", "starlette", "uvicorn", "msgspec"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    for command in COMMANDS:
        assert f"\n  {command} " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("pull", "no-such-model"), "smollm2-135m"),
        (("generate", "hi", "--threads", "two"), "threads='two' is not a whole number"),
        (("generate", "hi", "--model", "nowhere.gguf"), "nowhere.gguf"),
        (("generate", "hi", "--schema", "nofile.json"), "nofile.json"),
        (("generate", "hi", "--grammar", "nofile.lark"), "nofile.lark"),
        (("serve", "--port", "70000"), "port=70000"),
        (("serve", "--host", "0.0.0.0"), "api_key"),
        (("run", "nofile.py"), "nofile.py"),
        (("trace", "nofile.py"), "nofile.py"),
        (("extract", "x.txt", "--schema", "nofile.json", "-o", "o.jsonl"), "nofile.json"),
        (("grammar", "explain"), "--regex"),
        (("grammar", "explain", "x.json", "--regex", "a"), "a file or --regex"),
        (("grammar", "explain", "nofile.json"), "nofile.json"),
    ],
)
def test_a_users_mistake_is_one_line_and_status_1(
    arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("radixlm: ")
    assert words in line


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("generate", "hi", "--temprature", "1"), "--temperature"),
        (("serve", "--prot", "1"), "--port"),
        (("generat", "hi"), "generate"),
        (("bench", "--only", "judge"), "--only says nothing of this measurement"),
        (("bench", "programs", "--profile"), "--profile says nothing"),
    ],
)
def test_an_unknown_flag_or_command_is_refused_with_a_hint(
    arguments: tuple[str, ...], hint: str
) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert hint in done.stderr


def test_pull_prints_the_path_alone_when_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        model_pull, "pull", lambda name, report, *, cache_dir: Path(cache_dir) / name
    )
    packed: list[str] = []
    monkeypatch.setattr(engine_process, "pack_weights", lambda config: packed.append(config.model))
    monkeypatch.setenv("RADIXLM_CACHE_DIR", "/somewhere")
    cli.pull("m", print_path=True)
    assert capsys.readouterr().out == "/somewhere/m\n"
    cli.pull("m", print_path=False)
    assert capsys.readouterr().out == "m is ready: /somewhere/m\n"
    assert packed == ["m", "m"]


PROGRAM = """
from radixlm import assistant, function, gen, user

@function
def greet(s, name: str, times: int = 1):
    s += user("Greet " + name) + assistant(gen("greeting"))
    return times
"""


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """`offline.Engine` without a model; what it was made with is found here."""
    made: dict[str, Any] = {}

    class Engine:
        def __init__(self, **options: Any) -> None:
            made.update(options)
            self.backend = radixlm.ScriptedBackend({"greeting": "Hello!"})

        def __enter__(self) -> Engine:
            return self

        def __exit__(self, *_: object) -> None:
            made["is_closed"] = True

    monkeypatch.setattr(offline, "Engine", Engine)
    return made


def command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The exit status of the command, run in this process."""
    monkeypatch.setattr(sys, "argv", ["radixlm", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


def test_run_shows_messages_variables_and_the_trace(
    scripted: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "greet_program.py"
    path.write_text(PROGRAM)
    arguments = ("--arg", "name=Ada", "--arg", "times=2", "--trace", "--num-pages", "9")
    assert command(monkeypatch, "run", f"{path}:greet", *arguments) == 0
    out = capsys.readouterr().out
    assert "[user] Greet Ada\n[assistant] Hello!" in out
    assert 'greeting = "Hello!"\nreturned 2' in out
    assert 'user "Greet Ada"\nassistant gen greeting = "Hello!"' in out
    assert scripted == {"num_pages": "9", "is_closed": True}

    assert command(monkeypatch, "run", str(path), "--arg", "name=Ada", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["variables"], report["returned"]) == ({"greeting": "Hello!"}, 1)

    html, svg = tmp_path / "t.html", tmp_path / "t.svg"
    drawn = ("--html", str(html), "--svg", str(svg))
    assert command(monkeypatch, "run", str(path), "--arg", "name=Ada", *drawn) == 0
    assert svg.read_text() in html.read_text()
    assert "assistant gen greeting" in svg.read_text()
    assert "assistant gen" not in capsys.readouterr().out


def test_a_failing_program_names_its_line_and_still_shows_its_trace(
    scripted: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "failing_program.py"
    path.write_text(PROGRAM.replace('"greeting"', '"unscripted"'))
    assert command(monkeypatch, "run", str(path), "--arg", "name=Ada", "--trace") == 1
    shown = capsys.readouterr()
    assert f"{path}:6" in shown.err
    assert "gen unscripted failed" in shown.out


def test_trace_shows_the_tree_with_its_counts_and_draws_it(
    scripted: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "traced_program.py"
    path.write_text(PROGRAM)
    html, svg = tmp_path / "t.html", tmp_path / "t.svg"
    given = ("--arg", "name=Ada", "--html", str(html), "--svg", str(svg))
    assert command(monkeypatch, "trace", str(path), *given) == 0
    out = capsys.readouterr().out
    assert re.search(
        r'assistant gen greeting = "Hello!"  \[prompt \d+: 0 hit, \d+ computed; 1 gen', out
    )
    assert "[assistant] Hello!" not in out, "the tree, not the text"
    assert svg.read_text() in html.read_text()
    assert "assistant gen greeting" in svg.read_text()

    assert command(monkeypatch, "trace", str(path), "--arg", "name=Ada", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert [line["kind"] for line in report["lines"]] == ["role", "gen"]
    assert report["usage"]["completion_tokens"] == 1

    path.write_text(PROGRAM.replace('"greeting"', '"unscripted"'))
    assert command(monkeypatch, "trace", str(path), "--arg", "name=Ada") == 1
    shown = capsys.readouterr()
    assert f"{path}:6" in shown.err
    assert "gen unscripted failed" in shown.out


def test_bench_programs_measures_what_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(programs, "model_engine", lambda config: open_toy)
    asked = ("bench", "programs", "--only", "judge", "--without", "no hints", "--quick")
    assert command(monkeypatch, *asked, "--json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["without"] for row in rows] == ["", "no hints"]
    assert command(monkeypatch, *asked) == 0
    assert "judge, fork 6" in capsys.readouterr().out
    assert command(monkeypatch, "bench", "programs", "--only", "chess") == 1
    assert "radixlm: " in capsys.readouterr().err


def test_doctor_says_what_is_there_and_what_is_wrong() -> None:
    done = run("doctor", "--model", "nowhere.gguf", "--threads", "1")
    assert done.returncode == 1
    assert "torch" in done.stdout
    assert "GB/s" in done.stdout
    assert "problem: model, nowhere.gguf" in done.stdout


def test_extract_writes_rows_and_says_when_some_failed(
    scripted: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    backend = radixlm.ScriptedBackend(
        by_prompt={"Ada": '{"who":"Ada"}', "Bob": radixlm.TimedOut("no")}
    )
    monkeypatch.setattr(offline.Engine, "backend", backend, raising=False)
    monkeypatch.setattr(
        offline.Engine, "__init__", lambda self, **options: scripted.update(options)
    )
    (tmp_path / "schema.json").write_text('{"properties": {"who": {"type": "string"}}}')
    for name in ("Ada", "Bob"):
        (tmp_path / f"{name}.txt").write_text(f"This is {name}.")
    arguments = ["--schema", str(tmp_path / "schema.json"), "--threads", "1", "--ordered"]
    good = [str(tmp_path / "Ada.txt"), *arguments, "-o", str(tmp_path / "good.jsonl")]
    assert command(monkeypatch, "extract", *good) == 0
    assert json.loads((tmp_path / "good.jsonl").read_text())["value"] == {"who": "Ada"}
    assert "1 rows, 0 failed, invalid = 0" in capsys.readouterr().out
    assert scripted["threads"] == "1"
    both = [str(tmp_path / "Bob.txt"), *good[:1], *arguments, "-o", str(tmp_path / "both.jsonl")]
    assert command(monkeypatch, "extract", *both) == cli.EXIT_SOME_FAILED
    shown = capsys.readouterr()
    assert "1 rows, 1 failed" in shown.out
    assert "both.failed.jsonl" in shown.err
    assert "radixlm: 1 failed: no\n" in shown.err
    assert "no property is required and others are allowed at #" in shown.err


def test_a_finished_extraction_and_what_it_refuses_start_no_engine(
    scripted: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    backend = radixlm.ScriptedBackend(default='{"who":"Ada"}')
    monkeypatch.setattr(offline.Engine, "backend", backend, raising=False)
    monkeypatch.setattr(
        offline.Engine, "__init__", lambda self, **options: scripted.update(options)
    )
    schema = {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]}
    closed = {**schema, "additionalProperties": False}
    Path("schema.json").write_text(json.dumps(closed))
    Path("other.json").write_text(json.dumps({**closed, "maxProperties": 1}))
    Path("typo.json").write_text(json.dumps({**closed, "requird": ["who"]}))
    Path("a.txt").write_text("This is Ada.")
    good = ["a.txt", "--schema", "schema.json", "-o", "o.jsonl", "--model", "scripted"]
    assert command(monkeypatch, "extract", *good) == 0
    assert scripted.pop("model") == "scripted"
    assert not capsys.readouterr().err
    assert command(monkeypatch, "extract", *good) == 0
    assert "(1 more were done before); 1 rows" in capsys.readouterr().out
    for changed, words in (
        (
            {1: "--schema", 2: "other.json"},
            "another schema (at schema). Continue with what the job began with, or begin anew (--restart)",
        ),
        ({2: "typo.json", 4: "new.jsonl"}, "misspelt required"),
        ({4: "o.xls"}, "unknown suffix"),
        ({0: "b.txt"}, "b.txt does not exist"),
        ({5: "--temperature", 6: "-1"}, "temperature=-1.0"),
    ):
        arguments = [changed.get(number, word) for number, word in enumerate(good)]
        assert command(monkeypatch, "extract", *arguments) == 1
        assert words in capsys.readouterr().err
    assert "model" not in scripted
    assert not Path("new.jsonl.journal").exists()


def test_an_extraction_that_goes_on_says_from_where_and_shows_lines_without_a_terminal(
    scripted: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(console, "_PROGRESS_LINE_S", 0.0)
    monkeypatch.setattr(
        offline.Engine, "__init__", lambda self, **options: scripted.update(options)
    )
    Path("schema.json").write_text('{"enum": [1]}')
    Path("notes.jsonl").write_text('"one"\n"two"\n"three"\n')

    def interrupted(request: Request) -> str:
        if "three" in request.prompt:
            raise KeyboardInterrupt
        return "1"

    arguments = ["notes.jsonl", "--schema", "schema.json", "-o", "o.jsonl", "--model", "scripted"]
    for answers, status in ((interrupted, 130), ("1", 0)):
        backend = radixlm.ScriptedBackend(default=answers)
        monkeypatch.setattr(offline.Engine, "backend", backend, raising=False)
        assert command(monkeypatch, "extract", *arguments, "--num-under-way", "1") == status
    shown = capsys.readouterr().err
    assert "the same command goes on from here" in shown
    assert "radixlm: going on from 2 rows" in shown
    assert "radixlm: 2 documents (" in shown
    assert "radixlm: 3 documents (100 %), " in shown


def test_the_version_is_told() -> None:
    assert run("--version").stdout == f"radixlm {radixlm.__version__}\n"
