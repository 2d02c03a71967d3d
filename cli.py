"""The `radixlm` command line: pull a model, try it, look at what is installed.

Owns the commands' names and their output. Everything heavy is imported inside a command, so `--help` is quick. Engine options are those of
`EngineConfig`: any of them can be given as `--set name=value`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from radixlm.offline import Engine

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: loading rich would take longer than everything else
    help="LLM programs over a radix-tree KV cache with exact grammars.",
)

DEFAULT_MODEL = "smollm2-135m"
Model = Annotated[
    str, typer.Option(help="An alias of `radixlm pull`, a .gguf file or a Hugging Face folder.")
]
Threads = Annotated[int, typer.Option(help="Threads of the engine; 0: one per usable core.")]
MaxTokens = Annotated[int, typer.Option(help="Most tokens of the answer.")]
Temperature = Annotated[float, typer.Option(help="0: the likeliest token each time.")]
SchemaFile = Annotated[
    Path | None, typer.Option(help="A file with a JSON Schema that the answer must satisfy.")
]
Pattern = Annotated[
    str | None, typer.Option(help="A regular expression that the whole answer must match.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="An option of the engine, as name=value. Repeatable."),
]


@app.command()
def pull(
    name: Annotated[str, typer.Argument(help="The model's alias.")] = DEFAULT_MODEL,
    print_path: Annotated[
        bool, typer.Option("--print-path", help="Print the file's path and nothing else.")
    ] = False,
) -> None:
    """Fetch a model into the user's cache folder, with its checksum checked."""
    from radixlm.runtime.config import EngineConfig
    from radixlm.runtime.model_pull import pull as pull_model
    from radixlm.runtime.progress import TransferProgress

    cache_dir = Path(EngineConfig.create().cache_dir)
    with TransferProgress() as bar:
        path = pull_model(name, bar.report, cache_dir=cache_dir)
    print(path if print_path else f"{name} is ready: {path}")


@app.command()
def generate(
    prompt: Annotated[
        str, typer.Argument(help="The text to continue; - reads it from standard input.")
    ],
    model: Model = DEFAULT_MODEL,
    threads: Threads = 0,
    max_tokens: MaxTokens = 128,
    temperature: Temperature = 0.0,
    schema: SchemaFile = None,
    regex: Pattern = None,
    settings: Settings = None,
) -> None:
    """Continue a text, printing as it comes."""
    text = sys.stdin.read() if prompt == "-" else prompt
    with _engine(model, threads, settings or ()) as engine:
        _print_stream(engine, text, _options(max_tokens, temperature, schema, regex))


@app.command()
def chat(
    message: Annotated[str, typer.Argument(help="What to say; - reads it from standard input.")],
    system: Annotated[str | None, typer.Option(help="The system message.")] = None,
    model: Model = DEFAULT_MODEL,
    threads: Threads = 0,
    max_tokens: MaxTokens = 512,
    temperature: Temperature = 0.0,
    schema: SchemaFile = None,
    regex: Pattern = None,
    settings: Settings = None,
) -> None:
    """Ask the model one thing by its chat template, printing the answer as it comes."""
    text = sys.stdin.read() if message == "-" else message
    messages = [{"role": "system", "content": system}] if system is not None else []
    messages.append({"role": "user", "content": text})
    with _engine(model, threads, settings or ()) as engine:
        _print_stream(engine, messages, _options(max_tokens, temperature, schema, regex))


@app.command()
def doctor(model: Model = DEFAULT_MODEL) -> None:
    """Show what is installed, which model file would serve, and what this machine offers."""
    import importlib.metadata
    import platform

    from radixlm.errors import ModelError
    from radixlm.runtime.config import EngineConfig
    from radixlm.runtime.model_files import resolve_model

    config = EngineConfig.create(model=model)
    rows: list[tuple[str, object]] = [
        ("python", platform.python_version()),
        ("machine", platform.platform()),
        ("usable cores", config.threads),
    ]
    for package in ("torch", "transformers", "tokenizers", "pyzmq", "uvloop", "msgspec", "triton"):
        try:
            rows.append((package, importlib.metadata.version(package)))
        except importlib.metadata.PackageNotFoundError:
            rows.append((package, "not installed"))
    try:
        rows.append(("model file", resolve_model(model, Path(config.cache_dir)).path))
    except ModelError as error:
        rows.append(("model file", error))
    for name, value in rows:
        print(f"{name:<14} {value}")


def _engine(model: str, threads: int, settings: Sequence[str]) -> Engine:
    from radixlm.errors import ConfigError
    from radixlm.offline import Engine

    options: dict[str, Any] = {}
    for setting in settings:
        name, is_given, value = setting.partition("=")
        if not is_given:
            raise ConfigError(
                f"--set {setting!r} has no value", place="--set", hint="Write name=value"
            )
        options[name.strip().replace("-", "_")] = value
    return Engine(model, threads=threads, **options)


def _options(
    max_tokens: int, temperature: float, schema: Path | None, regex: str | None
) -> dict[str, Any]:
    options: dict[str, Any] = {"max_tokens": max_tokens, "temperature": temperature, "regex": regex}
    if schema is not None:
        from radixlm.errors import ConfigError

        try:
            options["json_schema"] = schema.read_text()
            json.loads(options["json_schema"])
        except (OSError, ValueError) as error:
            raise ConfigError(f"{schema} holds no JSON Schema: {error}", place="--schema") from None
    return options


def _print_stream(engine: Engine, prompt: Any, options: dict[str, Any]) -> None:
    with engine.stream(prompt, **options) as stream:
        for piece in stream:
            print(piece, end="", flush=True)
        print()
        completion = stream.result()
    if completion.finish_reason == "length":
        print(
            f"(cut after {completion.usage.completion_tokens} tokens; see --max-tokens)",
            file=sys.stderr,
        )


def main() -> None:
    """The console script. Errors of radixlm become one line on stderr and exit status 1 (the user's) or 70 (ours)."""
    from radixlm.errors import RadixError, UserError

    try:
        app()
    except RadixError as error:
        print(f"radixlm: {error}", file=sys.stderr)
        sys.exit(1 if isinstance(error, UserError) else 70)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
