"""A recorded run is played again as it was: texts, deltas, scores, usage, errors; and what was not recorded says what differs."""

from __future__ import annotations

import json
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec
import pytest
from backend_subjects import openai, scripted
from fake_model import FakeModel
from fake_openai import FakeOpenAI

from radixlm import (
    Answer,
    ConfigError,
    EngineDied,
    GrammarError,
    ProgramError,
    RecordingBackend,
    ReplayBackend,
    ScriptedBackend,
    assistant,
    function,
    gen,
    select,
    system,
    user,
)  # fmt: skip


@function
def program(s: Any, name: str = "Ada", max_tokens: int = 8) -> None:
    s += (
        system("Be \u2028 kind.")
        + user(f"Who is {name}?")
        + assistant(gen("a", max_tokens=max_tokens))
    )
    children = s.fork(2)
    children += lambda i: user(f"And {i}?") + assistant(gen("b", max_tokens=4, temperature=0.7))
    children.join()
    s += " so " + select("c", ["yes", "no"]) + gen("d", n=2, max_tokens=3, temperature=1.0)


def everything(state: Any) -> Any:
    names = ("a", "c", "d")
    return dict(state), state.text(), state.usage(), [state.get_meta(name) for name in names]


def record(path: Path, inner: Any, *runs: dict[str, Any]) -> list[Any]:
    with RecordingBackend(inner, path) as backend:
        return [everything(program.run(backend=backend, **run)) for run in runs]


def test_a_replay_is_the_run(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    (expected,) = record(path, scripted(), {})
    replay = ReplayBackend(path)
    assert everything(program.run(backend=replay)) == expected
    assert replay.num_left == 0
    assert not replay.open_branches
    assert replay.facts.model == "scripted"


def test_equal_requests_get_their_answers_in_order(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    expected = record(path, scripted(), {}, {}, {})
    replay = ReplayBackend(path)
    assert [everything(program.run(backend=replay)) for _ in range(3)] == expected
    with pytest.raises(ProgramError, match=r"'a' was asked more often than .* holds answers"):
        program.run(backend=replay)


def test_programs_at_the_same_time_are_told_apart_by_what_they_ask(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    items = [{"name": f"N{i}"} for i in range(20)]
    with RecordingBackend(scripted(), path) as backend:
        expected = [dict(s) for s in program.run_batch(items, backend=backend, progress_bar=False)]
    replay = ReplayBackend(path)
    backwards = program.run_batch(items[::-1], backend=replay, progress_bar=False, num_threads=3)
    assert [dict(state) for state in backwards][::-1] == expected


def test_a_stream_is_played_piece_by_piece(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"

    def pieces(backend: Any) -> list[tuple[str, str]]:
        with program.run(backend=backend, stream=True) as live:
            return [(event.name, event.text) for event in live.event_iter()]

    with RecordingBackend(scripted(), path) as backend:
        expected = pieces(backend)
    assert pieces(ReplayBackend(path)) == expected
    assert everything(program.run(backend=ReplayBackend(path)))  # whole as well


def test_a_run_recorded_whole_can_be_streamed(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    (expected,) = record(path, scripted(), {})
    with program.run(backend=ReplayBackend(path), stream=True) as live:
        assert "".join(live.text_iter("a")) == expected[0]["a"]


@pytest.mark.parametrize(
    "error", [EngineDied("it ended", hint="Again"), GrammarError("no", place="#/x")]
)
def test_an_error_is_played_with_its_place_and_hint(tmp_path: Path, error: Exception) -> None:
    path = tmp_path / "run.jsonl"

    def failure(backend: Any) -> Any:
        with pytest.raises(type(error)) as raised:
            program.run(backend=backend)
        told: Any = raised.value
        return told.message, told.place, told.hint, told.__notes__

    with RecordingBackend(ScriptedBackend({"a": Answer("half", failure=error)}), path) as backend:
        expected = failure(backend)
    assert failure(ReplayBackend(path)) == expected


def test_what_was_not_recorded_tells_the_nearest_prompt_and_where_it_differs(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.jsonl"
    record(path, scripted(), {}, {"name": "Bob"})
    with pytest.raises(ProgramError) as raised:
        program.run("Bab", backend=ReplayBackend(path))
    assert "'a' was not recorded" in raised.value.message
    assert "here" in raised.value.hint
    assert "Bab?" in raised.value.hint
    assert "recorded" in raised.value.hint
    assert "Bob?" in raised.value.hint


def test_the_same_prompt_with_another_argument_names_the_argument(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    record(path, scripted(), {})
    with pytest.raises(ProgramError, match=r"recorded with sampling\.max_tokens=8, here it is 9"):
        program.run(max_tokens=9, backend=ReplayBackend(path))

    @function
    def choices(s: Any, options: list[str]) -> None:
        s += "x" + select("c", options)

    with RecordingBackend(scripted(), path) as backend:
        choices.run(["a", "b"], backend=backend)
    with pytest.raises(ProgramError, match=r"recorded with choices=\['a', 'b'\]"):
        choices.run(["a", "c"], backend=ReplayBackend(path))


def test_an_empty_recording_says_so(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    RecordingBackend(scripted(), path).close()
    with pytest.raises(ProgramError, match="The recording is empty"):
        program.run(backend=ReplayBackend(path))


def test_the_file_is_lines_of_json_that_a_person_can_read(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    record(path, scripted(), {})
    head, *entries = map(json.loads, path.read_text().split("\n")[:-1])
    assert (head["format"], head["version"]) == ("radixlm-recording", 1)
    assert [entry["order"] for entry in sorted(entries, key=lambda e: e["order"])] == [
        1,
        2,
        3,
        4,
        5,
    ]
    first = entries[0]["asked"]
    assert first["prompt"][:3] == [{"role": "system"}, "Be \u2028 kind.", {"end": "system"}]
    assert first["name"] == "a"
    assert first["sampling"]["max_tokens"] == 8


def test_forks_are_recorded_apart(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    record(path, scripted(), {})
    entries = [json.loads(line) for line in path.read_text().split("\n")[1:-1]]
    prompts = [json.dumps(e["asked"]["prompt"]) for e in entries if e["asked"]["name"] == "b"]
    assert ["And 0?" in prompt for prompt in prompts] == [True, False]
    assert ["And 1?" in prompt for prompt in prompts] == [False, True]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is no recording"), ("{}", "is no recording"), ("hello", "is no recording"), ("[1]", "is no recording"),
        ('{"format":"radixlm-recording","version":2}', "version 2, this reads 1"),
        ('{"format":"radixlm-recording","version":1,"facts":{"type":"ready","model":"x","context_length":1,"vocab_size":1,"eos_token_ids":[]}}\nno', "line 2"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_is_a_config_error(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(content)
    with pytest.raises(ConfigError, match=message):
        ReplayBackend(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        ReplayBackend(tmp_path / "nothing")


def _damaged(entry: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    changed = {**entry, name: value}
    if value is None:
        del changed[name]
    return changed


@pytest.mark.parametrize(
    ("number", "name", "value", "why"),
    [
        (0, "facts", None, "facts"), (0, "facts", {}, "type|model"), (0, "facts", 3, "object"),
        (1, "order", "x", "order"), (1, "asked", 3, "asked"), (1, "asked", {}, "kind"), (1, "answer", None, "either"),
        (1, "answer", {}, "type|outputs"), (1, "deltas", 4, "deltas"), (1, "error", "no", "error"),
    ],
)  # fmt: skip
def test_a_damaged_line_is_a_config_error_with_its_number(
    tmp_path: Path, number: int, name: str, value: Any, why: str
) -> None:
    path = tmp_path / "run.jsonl"
    record(path, scripted(), {})
    lines = path.read_text().splitlines()
    lines[number] = json.dumps(_damaged(json.loads(lines[number]), name, value))
    path.write_text("\n".join(lines))
    with pytest.raises(ConfigError, match=f"(?s)is damaged: .*(?:{why})") as caught:
        ReplayBackend(path)
    assert caught.value.place == f"line {number + 1}"


def test_scores_that_do_not_fit_the_choices_are_damage(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    record(path, scripted(), {})
    lines = path.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if '"kind": "select"' in line)
    entry = json.loads(lines[at])
    entry["answer"]["logprobs"].pop()
    lines[at] = json.dumps(entry)
    path.write_text("\n".join(lines))
    with pytest.raises(ConfigError, match="one score for each choice"):
        ReplayBackend(path)


def test_half_a_surrogate_in_an_answer_is_recorded(tmp_path: Path) -> None:
    class Careless(ScriptedBackend):
        def generate(self, *args: Any, **kwargs: Any) -> Any:
            finished = super().generate(*args, **kwargs).result()
            output = msgspec.structs.replace(finished.outputs[0], text="a\ud800")
            future: Future[Any] = Future()
            future.set_result(msgspec.structs.replace(finished, outputs=(output,)))
            return future

    @function
    def f(s: Any) -> None:
        s += "p" + gen("x")

    path = tmp_path / "run.jsonl"
    with RecordingBackend(Careless({"x": "a"}), path) as backend:
        expected = f.run(backend=backend)["x"]
    assert f.run(backend=ReplayBackend(path))["x"] == expected


def test_what_could_not_be_written_is_told_at_the_end(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no device that is always full")
    backend = RecordingBackend(scripted(), full)
    assert program.run(backend=backend)["a"]
    with pytest.raises(ConfigError, match=r"/dev/full is not whole: .*No space left"):
        backend.close()
    backend.close()
    with pytest.raises(KeyError) as caught, RecordingBackend(scripted(), full):
        raise KeyError("of the program")
    assert "is not whole" in caught.value.__notes__[0]
    with pytest.raises(ConfigError, match="cannot be written: No such file"):
        RecordingBackend(scripted(), tmp_path / "nothing" / "run.jsonl")


def test_what_is_answered_after_closing_is_not_recorded_and_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    backend = RecordingBackend(scripted(), path)
    backend.close()
    assert program.run(backend=backend)["a"]
    assert len(path.read_text().splitlines()) == 1


def test_calls_that_wrote_ahead_are_recorded_as_the_gens_they_served(tmp_path: Path) -> None:
    @function(num_api_spec_tokens=40)
    def life(s: Any) -> None:
        s += "Name:" + gen("name", stop="\n") + "\nBorn:" + gen("born", stop="\n")

    fake = FakeOpenAI("vllm", FakeModel("Name: Ada\nBorn: 1815\n"))
    path = tmp_path / "run.jsonl"
    with openai(fake) as inner, RecordingBackend(inner, path) as backend:
        expected = dict(life.run(backend=backend))
    assert len(fake.requests) == 1
    assert (
        dict(life.run(backend=ReplayBackend(path))) == expected == {"name": " Ada", "born": " 1815"}
    )


def test_infinite_scores_survive_the_file(tmp_path: Path) -> None:
    @function
    def choose(s: Any) -> None:
        s += user("?") + assistant(select("c", ["a", "b"]))

    path = tmp_path / "run.jsonl"
    with openai(FakeOpenAI("openai")) as inner, RecordingBackend(inner, path) as backend:
        expected = choose.run(backend=backend).get_meta("c").scores
    assert sorted(expected.values()) == [float("-inf"), 0.0]
    json.loads(path.read_text().split("\n")[1], parse_constant=lambda name: pytest.fail(name))
    assert choose.run(backend=ReplayBackend(path)).get_meta("c").scores == expected
