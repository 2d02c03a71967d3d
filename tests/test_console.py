"""The dialogue: history, commands, Ctrl-C, errors that do not end it. The engine is a stand-in that plays scripted streams."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from radixlm.console import Dialogue, print_stream, read_prompt, read_schema, request_options
from radixlm.errors import ConfigError, PromptError, UserError
from radixlm.runtime import messages as m


class Stream(Iterator[str]):
    def __init__(self, pieces: list[Any], finish_reason: str = "stop") -> None:
        self._pieces = iter(pieces)
        self._finish_reason = finish_reason
        self.is_closed = False

    def __next__(self) -> str:
        piece = next(self._pieces)
        if isinstance(piece, BaseException):
            raise piece
        return piece

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.is_closed = True

    def result(self) -> Any:
        return SimpleNamespace(finish_reason=self._finish_reason, usage=m.Usage(9, 4, 2))


class Engine:
    """Plays one stream after the other and remembers what was asked."""

    facts = SimpleNamespace(model="scripted")

    def __init__(self, *streams: Stream) -> None:
        self._streams = list(streams)
        self.asked: list[tuple[Any, dict[str, Any]]] = []

    def stream(self, prompt: Any, **options: Any) -> Stream:
        self.asked.append((prompt, options))
        return self._streams.pop(0)


def said(*contents: str) -> list[dict[str, str]]:
    roles = ["user", "assistant"] * len(contents)
    return [{"role": r, "content": c} for r, c in zip(roles, contents, strict=False)]


def test_each_turn_is_asked_with_the_whole_history(capsys: pytest.CaptureFixture[str]) -> None:
    engine = Engine(Stream(["Hel", "lo"]), Stream(["Ada."], "length"))
    dialogue = Dialogue(engine, {"max_tokens": 9}, "Be kind.")  # type: ignore[arg-type]
    dialogue.turn("hi")
    dialogue.turn("who are you?")
    system = {"role": "system", "content": "Be kind."}
    assert engine.asked == [
        ([system, *said("hi")], {"max_tokens": 9}),
        ([system, *said("hi", "Hello", "who are you?")], {"max_tokens": 9}),
    ]
    shown = capsys.readouterr()
    assert shown.out == "Hello\nAda.\n"
    assert "4 of 9 prompt tokens cached" in shown.err
    assert "cut by max_tokens" in shown.err
    dialogue.turn("/reset")
    assert dialogue.messages == [system]


def test_ctrl_c_stops_the_answer_and_keeps_what_came(capsys: pytest.CaptureFixture[str]) -> None:
    stream, none = Stream(["So ", "far", KeyboardInterrupt()]), Stream([KeyboardInterrupt()])
    dialogue = Dialogue(Engine(stream, none), {}, None)  # type: ignore[arg-type]
    dialogue.turn("tell me")
    assert stream.is_closed
    assert dialogue.messages == said("tell me", "So far")
    dialogue.turn("again")  # stopped before anything came: as if it was never asked
    assert dialogue.messages == said("tell me", "So far")
    assert "(stopped)" in capsys.readouterr().err


def test_an_error_is_shown_and_the_conversation_stands(capsys: pytest.CaptureFixture[str]) -> None:
    engine = Engine(Stream([PromptError("too long", place="prompt")]), Stream(["yes"]))
    dialogue = Dialogue(engine, {}, None)  # type: ignore[arg-type]
    dialogue.turn("x" * 10)
    dialogue.turn("short")
    assert dialogue.messages == said("short", "yes")
    assert "radixlm: too long (at prompt)" in capsys.readouterr().err


def test_constraints_are_set_and_dropped_by_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "my schema.json"
    path.write_text('{"type": "integer"}')
    engine = Engine(*(Stream(["5"]) for _ in range(4)))
    dialogue = Dialogue(engine, {"choices": ["a"]}, None)  # type: ignore[arg-type]
    for line in (f"/schema {path}", "a", "/regex [0-9]", "b", "/regex", "c", "/schema nofile", "/scheme", "d"):  # fmt: skip
        dialogue.turn(line)
    assert [options for _, options in engine.asked] == [
        {"json_schema": '{"type": "integer"}'},
        {"regex": "[0-9]"},
        {},
        {},
    ]
    shown = capsys.readouterr().err
    assert "nofile" in shown
    assert "there is no command /scheme" in shown


def test_lines_of_a_pipe_are_turns_and_a_backslash_joins_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = Engine(Stream(["one"]), Stream(["two"]))
    dialogue = Dialogue(engine, {}, None)  # type: ignore[arg-type]
    text = "first\\\nsecond\n\n/system Be short.\nthird\n/history\n/help\n/quit\nnever"
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    dialogue.run()
    assert [prompt[-1]["content"] for prompt, _ in engine.asked] == ["first\nsecond", "third"]
    out = capsys.readouterr().out
    assert "system: Be short.\nuser: third\nassistant: two" in out
    assert "/schema FILE" in out
    assert ">" not in out.split("/schema")[0]  # no prompt without a terminal


def test_a_cut_answer_is_noted_once(capsys: pytest.CaptureFixture[str]) -> None:
    print_stream(Engine(Stream(["a", "b"], "length")), "go", {})  # type: ignore[arg-type]
    shown = capsys.readouterr()
    assert shown.out == "ab\n"
    assert "cut after 2 tokens" in shown.err


def test_flags_that_were_not_given_are_no_options(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"const": 1}))
    given = request_options(temperature=0.0, top_k=None, stop=[], json_schema=path, regex=None)
    assert given == {"temperature": 0.0, "json_schema": '{"const": 1}'}
    path.write_text("{")
    with pytest.raises(ConfigError, match="no JSON Schema") as caught:
        read_schema(path)
    assert caught.value.place == str(path)


def test_a_grammar_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "g.gbnf"
    path.write_text('root ::= "é"', encoding="utf-8")
    assert request_options(grammar=path) == {"grammar": 'root ::= "é"'}
    with pytest.raises(ConfigError, match="no grammar") as caught:
        request_options(grammar=tmp_path / "nofile")
    assert caught.value.place == str(tmp_path / "nofile")
    with pytest.raises(UserError, match="regex and grammar"):
        request_options(grammar=path, regex="a")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"top_p": 5.0}, "top_p=5.0"),
        ({"regex": "a", "choices": ["b"]}, "regex and choices"),
        ({"stop": [""]}, "stop"),
    ],
)
def test_wrong_options_are_refused_before_a_model_loads(flags: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        request_options(**flags)


def test_standard_input_that_is_no_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe"), encoding="utf-8"))
    with pytest.raises(PromptError, match="no text"):
        read_prompt("-")
    with pytest.raises(PromptError, match="surrogate"):
        read_prompt("\udcff")
