"""Flags made of config fields: all of them, as texts, only those given; and every flag of the command line is an option somewhere."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from radixlm import cli
from radixlm.flags import PanelCommand, split_fields, with_fields
from radixlm.lang.extract import ExtractOptions, extract_files
from radixlm.lang.function import Program
from radixlm.offline import GenerateOptions
from radixlm.runtime.config import EngineConfig
from radixlm.runtime.http.settings import ServerSettings

OF_ENGINE = {spec.name for spec in dataclasses.fields(EngineConfig)}
OF_SERVER = {spec.name for spec in dataclasses.fields(ServerSettings)}


@dataclasses.dataclass
class Small:
    num_pages: int = dataclasses.field(default=3, metadata={"text": "pages to keep"})
    is_fast: bool = dataclasses.field(default=True, metadata={"text": "be fast"})


def parameters(command: Any) -> set[str]:
    return set(inspect.signature(command).parameters)


def test_the_engine_and_the_server_have_no_option_of_the_same_name() -> None:
    assert not OF_ENGINE & OF_SERVER


@pytest.mark.parametrize("name", ["generate", "chat", "run", "serve", "extract", "bench", "doctor"])
def test_every_option_of_the_engine_is_a_flag(name: str) -> None:
    assert parameters(getattr(cli, name)) >= OF_ENGINE
    assert parameters(cli.serve) >= OF_SERVER


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("generate", {*GenerateOptions.__annotations__, "prompt"}),
        ("chat", {*GenerateOptions.__annotations__, "message", "system"}),
        ("serve", OF_SERVER),
        ("run", {*inspect.signature(Program.run).parameters, "max_tokens", "temperature", "program", "arguments", "trace", "html", "svg", "as_json"}),
        ("extract", {*inspect.signature(extract_files).parameters, *ExtractOptions.__annotations__, "files", "restart"}),
    ],
)  # fmt: skip
def test_every_other_flag_is_an_option_of_what_the_command_calls(
    name: str, known: set[str]
) -> None:
    assert parameters(getattr(cli, name)) - OF_ENGINE <= known


def test_only_the_fields_that_were_given_arrive_and_as_texts() -> None:
    seen: list[dict[str, Any]] = []
    app = typer.Typer(rich_markup_mode=None)

    @app.command()
    @with_fields(Small)
    def work(times: int = 1, **options: Any) -> None:
        seen.append({"times": times, **options})

    runner = CliRunner()
    for arguments in ([], ["--num-pages", "7", "--times", "2"], ["--no-is-fast"]):
        assert runner.invoke(app, arguments).exit_code == 0
    assert seen == [{"times": 1}, {"times": 2, "num_pages": "7"}, {"times": 1, "is_fast": False}]
    shown = runner.invoke(app, ["--help"]).output
    assert "pages to keep" in shown
    assert "default: 3" in shown
    assert split_fields(Small, {"num_pages": "7", "other": 1}) == ({"num_pages": "7"}, {"other": 1})


def test_the_help_shows_the_flags_of_a_config_after_the_commands_own() -> None:
    app = typer.Typer(rich_markup_mode=None)

    @app.command(cls=PanelCommand)
    @with_fields(Small)
    def work(times: int = 1, **options: Any) -> None: ...

    shown = CliRunner().invoke(app, ["--help"]).output
    order = ["Options:", "--times", "--help", "Small options:", "--num-pages", "--is-fast"]
    places = [shown.index(word) for word in order]
    assert places == sorted(places)
