"""Fields of a config as flags of a command: every option is declared once, in its config.

    @app.command(cls=PanelCommand)
    @with_fields(EngineConfig)
    def bench(quick: bool = False, **options: Any) -> None: ...     # --model, --threads, --num-pages ...

Flags that several commands have, such as `MaxTokens`, stand here too.

Owns the translation of a field (name, type, default, text) into a flag. Values are passed on as the texts that were given, and only
those that were given, so that the config checks them, and environment and defaults count where no flag stands. Knows no command.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

MaxTokens = Annotated[int | None, typer.Option(help="Most tokens of an answer.")]
Temperature = Annotated[float | None, typer.Option(help="0: the likeliest token each time.")]
TopK = Annotated[int | None, typer.Option(help="Sample from the k likeliest tokens.")]
TopP = Annotated[float | None, typer.Option(help="Sample from the likeliest tokens of this share.")]
MinP = Annotated[float | None, typer.Option(help="Drop tokens below this share of the likeliest.")]
Stop = Annotated[
    list[str] | None, typer.Option(metavar="<str>", help="End before this text. Repeatable.")
]
Schema = Annotated[
    Path | None, typer.Option(help="A file with a JSON Schema that the answer satisfies.")
]
Pattern = Annotated[str | None, typer.Option(help="A regex that the whole answer matches.")]
Choices = Annotated[
    list[str] | None,
    typer.Option("--choices", metavar="<str>", help="An answer to choose from. Repeatable."),
]
GrammarFile = Annotated[
    Path | None,
    typer.Option("--grammar", help="A file with a grammar, Lark or GBNF, of the answer."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ProgramPlace = Annotated[
    str, typer.Argument(metavar="PROGRAM.py[:NAME]", help="A file with a @function program.")
]
Arguments = Annotated[
    list[str] | None,
    typer.Option(
        "--arg", metavar="<name=value>", help="An argument; name=@FILE reads it. Repeatable."
    ),
]
Seed = Annotated[int | None, typer.Option(help="Makes the run repeatable.")]
Timeout = Annotated[float | None, typer.Option(help="Seconds for the whole run.")]
_SHORT = {"model": ("--model", "-m"), "threads": ("--threads", "-t")}


class PanelCommand(TyperCommand):
    """A command whose plain help shows its own flags first, and those of each config under a heading of their own."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Called by the help."""
        sections: dict[str, list[Any]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
            panel = getattr(parameter, "rich_help_panel", None) or kind
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections.setdefault(panel, []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def with_fields(*configs: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace `**options` of a command by a flag for each field of `configs`; its `options` hold the fields that were given."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [
            parameter.replace(annotation=kind)
            for parameter, kind in _own_parameters(command)
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        taken = {parameter.name for parameter in own}
        generated: list[inspect.Parameter] = []
        for config in configs:
            for parameter in _flags(config):
                if parameter.name not in taken:
                    taken.add(parameter.name)
                    generated.append(parameter)
        names = frozenset(parameter.name for parameter in generated)

        @wraps(command)
        def run(**values: Any) -> None:
            command(**{k: v for k, v in values.items() if k not in names or v is not None})

        parameters = [*own, *generated]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        del run.__wrapped__  # type: ignore[attr-defined]  its signature is the one without the flags
        return run

    return decorate


def refuse_unless(is_fitting: bool, **given: Any) -> None:
    """typer.BadParameter (status 2) for a flag that was given and does nothing here."""
    for name, value in given.items():
        if value and not is_fitting:
            flag = f"--{name.replace('_', '-')}"
            raise typer.BadParameter(f"{flag} says nothing of this measurement", param_hint=flag)


def split_fields(config: type, options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options that are fields of `config`, and the others."""
    names = {spec.name for spec in dataclasses.fields(config)}
    own = {name: value for name, value in options.items() if name in names}
    return own, {name: value for name, value in options.items() if name not in names}


def _own_parameters(command: Callable[..., None]) -> list[tuple[inspect.Parameter, Any]]:
    hints = get_type_hints(command, include_extras=True)
    parameters = inspect.signature(command).parameters.values()
    return [(parameter, hints.get(parameter.name, Any)) for parameter in parameters]


@cache  # commands share their engine's flags, and --help should be quick
def _flags(config: type) -> tuple[inspect.Parameter, ...]:
    name = config.__name__.removesuffix("Config").removesuffix("Settings").removesuffix("Options")
    panel = f"{name} options"
    return tuple(_flag(spec, panel) for spec in dataclasses.fields(config))


def _flag(spec: dataclasses.Field[Any], panel: str) -> inspect.Parameter:
    """A flag whose absence is None. Only switches have a type of their own; the config reads the texts of all others."""
    is_switch = spec.type in ("bool", bool, "bool | None")
    is_plain = spec.default in ("", None, dataclasses.MISSING)
    shown = "" if is_plain else f" [default: {_shown(spec.default)}]"
    option = typer.Option(
        *_SHORT.get(spec.name, ()),
        help=spec.metadata.get("text", "") + shown,
        metavar=None if is_switch else _metavar(spec.type),
        show_default=False,
        rich_help_panel=panel,
    )
    kind = Annotated[(bool if is_switch else str) | None, option]
    return inspect.Parameter(
        spec.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind
    )


def _shown(value: object) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def _metavar(kind: object) -> str:
    return {"int": "<int>", "float": "<float>"}.get(str(kind), "<str>")  # as typer writes others
