"""The `radixlm` command line.

Owns the commands' names, their flags and exit statuses; what a command does stands in the module it calls. Everything heavy is imported
inside a command, so `--help` is quick. Options of the engine and the server are not written down here: they are the fields of their
configs (`flags.py`).
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from radixlm.cli_grammar import grammar_app
from radixlm.flags import (
    Arguments,
    AsJson,
    Choices,
    GrammarFile,
    MaxTokens,
    MinP,
    PanelCommand,
    Pattern,
    ProgramPlace,
    Schema,
    Seed,
    Stop,
    Temperature,
    Timeout,
    TopK,
    TopP,
    refuse_unless,
    split_fields,
    with_fields,
)
from radixlm.runtime.config import EngineConfig
from radixlm.runtime.http.settings import ServerSettings

if TYPE_CHECKING:
    from radixlm.runtime.http.server import HttpServer

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: loading rich would take longer than everything else
)
app.add_typer(grammar_app, name="grammar")

DEFAULT_MODEL = "smollm2-135m"
SERVE_READY_BYTES = (
    512 * 2**20
)  # of `radixlm serve`, which stays; other commands take what they use
EXIT_SOME_FAILED = 3  # extract: there are rows, and documents without one


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        from radixlm import __version__

        print(f"radixlm {__version__}")
        raise typer.Exit


@app.callback(
    epilog="Exit status: 0 done, 1 something given is wrong, 2 an unknown flag, 3 some documents failed (extract), 70 the service failed, 130 Ctrl-C."
)
def options_of_all(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """LLM programs over a radix-tree KV cache with exact grammars."""


@app.command()
def pull(
    name: Annotated[str, typer.Argument(help="The model's alias.")] = DEFAULT_MODEL,
    print_path: Annotated[
        bool, typer.Option("--print-path", help="Print the file's path and nothing else.")
    ] = False,
) -> None:
    """Fetch a model into the user's cache folder, with its checksum checked, and pack its weights for the CPU kernels."""
    from radixlm.runtime.engine_process import pack_weights
    from radixlm.runtime.model_pull import pull as pull_model
    from radixlm.runtime.progress import TransferProgress

    config = EngineConfig.create(model=name)
    with TransferProgress() as bar:
        path = pull_model(name, bar.report, cache_dir=Path(config.cache_dir))
    pack_weights(config)
    print(path if print_path else f"{name} is ready: {path}")


@app.command(cls=PanelCommand)
@with_fields(EngineConfig)
def generate(
    prompt: Annotated[
        str, typer.Argument(help="The text to continue; - reads it from standard input.")
    ],
    max_tokens: MaxTokens = 128,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    min_p: MinP = None,
    stop: Stop = None,
    schema: Schema = None,
    regex: Pattern = None,
    choices: Choices = None,
    grammar: GrammarFile = None,
    **options: Any,
) -> None:
    """Continue a text, printing as it comes."""
    from radixlm.console import print_stream, read_prompt, request_options
    from radixlm.offline import Engine

    asked = request_options(
        max_tokens=max_tokens, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p,
        stop=stop, json_schema=schema, regex=regex, choices=choices, grammar=grammar,
    )  # fmt: skip
    text = read_prompt(prompt)
    with Engine(**options) as engine:
        print_stream(engine, text, asked)


@app.command(cls=PanelCommand)
@with_fields(EngineConfig)
def chat(
    message: Annotated[
        str | None,
        typer.Argument(help="Say this and end; - reads it from standard input. Else: a dialogue."),
    ] = None,
    system: Annotated[str | None, typer.Option(help="The system message.")] = None,
    max_tokens: MaxTokens = 512,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    min_p: MinP = None,
    stop: Stop = None,
    schema: Schema = None,
    regex: Pattern = None,
    choices: Choices = None,
    grammar: GrammarFile = None,
    **options: Any,
) -> None:
    """Talk with the model, or ask it one thing. /help in a dialogue lists what else it takes."""
    from radixlm.console import Dialogue, print_stream, read_prompt, request_options
    from radixlm.offline import Engine

    asked = request_options(
        max_tokens=max_tokens, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p,
        stop=stop, json_schema=schema, regex=regex, choices=choices, grammar=grammar,
    )  # fmt: skip
    text = None if message is None else read_prompt(message)
    with Engine(**options) as engine:
        dialogue = Dialogue(engine, asked, system)
        if text is None:
            dialogue.run()
        else:
            print_stream(engine, dialogue.with_question(text), asked)


@app.command(cls=PanelCommand)
@with_fields(EngineConfig)
def run(
    program: ProgramPlace,
    arguments: Arguments = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Show the tree of prefixes and what it cost.")
    ] = False,
    html: Annotated[Path | None, typer.Option(help="Draw that tree into an HTML file.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Draw that tree into an SVG file.")] = None,
    max_tokens: MaxTokens = None,
    temperature: Temperature = None,
    seed: Seed = None,
    timeout_s: Timeout = None,
    as_json: AsJson = False,
    **options: Any,
) -> None:
    """Run a program and show its text and variables."""
    from radixlm.console import run_program
    from radixlm.reports import print_state, show_trace

    asked = {"max_tokens": max_tokens, "temperature": temperature, "seed": seed, "timeout_s": timeout_s}  # fmt: skip
    is_traced = trace or html is not None or svg is not None
    with run_program(program, arguments, asked, options, is_traced=is_traced) as (go, tracing):
        try:
            print_state(go(), as_json=as_json)
        finally:
            if tracing is not None:
                show_trace(tracing, as_text=trace, html=html, svg=svg)


@app.command("trace", cls=PanelCommand)
@with_fields(EngineConfig)
def trace_program(
    program: ProgramPlace,
    arguments: Arguments = None,
    html: Annotated[Path | None, typer.Option(help="Draw the tree into an HTML file.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Draw the tree into an SVG file.")] = None,
    max_tokens: MaxTokens = None,
    temperature: Temperature = None,
    seed: Seed = None,
    timeout_s: Timeout = None,
    as_json: AsJson = False,
    **options: Any,
) -> None:
    """Run a program and show the tree of its prefixes, with the tokens hit, computed, generated and forced at each."""
    from radixlm.console import run_program
    from radixlm.reports import show_trace

    asked = {"max_tokens": max_tokens, "temperature": temperature, "seed": seed, "timeout_s": timeout_s}  # fmt: skip
    with run_program(program, arguments, asked, options, is_traced=True) as (go, tracing):
        try:
            go()
        finally:  # of a program that failed, what it did until then
            if tracing is not None:
                show_trace(tracing, as_text=not as_json, as_json=as_json, html=html, svg=svg)


@app.command(cls=PanelCommand)
@with_fields(ServerSettings, EngineConfig)
def serve(**options: Any) -> None:
    """Serve the model over HTTP, as the OpenAI API has it."""
    import logging

    from radixlm.runtime.http.server import serve as serve_http
    from radixlm.runtime.launch import Runtime
    from radixlm.runtime.model_files import resolve_model

    of_server, of_engine = split_fields(ServerSettings, options)
    settings = ServerSettings.create(**of_server)  # refused before anything is loaded
    config = EngineConfig.create_for({"kv_ready_bytes": SERVE_READY_BYTES}, **of_engine)
    resolve_model(config.model, Path(config.cache_dir))
    logging.basicConfig(format="radixlm: %(message)s", stream=sys.stderr)
    print(f"radixlm: loading {config.model}", file=sys.stderr)
    runtime = Runtime(config)

    def on_listening(server: HttpServer) -> None:
        facts = runtime.client.facts
        name = settings.served_name or facts.model
        cache = f"{facts.cache_tokens:,} tokens, keys and values in {facts.kv_dtype}"
        print(f"radixlm: the prefix cache holds {cache}", file=sys.stderr)
        print(f"radixlm: serving {name} on {server.url}", file=sys.stderr)

    sys.exit(serve_http(runtime, settings, on_listening=on_listening))


@app.command(cls=PanelCommand)
@with_fields(EngineConfig)
def extract(
    files: Annotated[list[Path], typer.Argument(help="Text, markdown, JSONL, CSV, or folders.")],
    schema: Annotated[str, typer.Option(help="S.json, or module:Model for a Python type.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A .jsonl, .csv or .parquet file.")
    ],
    field: Annotated[
        str | None, typer.Option(help="What holds the text of a record: key, column, dotted path.")
    ] = None,
    dead_letter: Annotated[
        Path | None, typer.Option(help="Where failures go. [default: OUTPUT with .failed.jsonl]")
    ] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin anew, over the output that is there.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try the documents of the dead letter again.")
    ] = False,
    instructions: Annotated[
        str | None, typer.Option(help="What the model is told before the fields.")
    ] = None,
    max_tokens: MaxTokens = None,
    temperature: Temperature = None,
    seed: Annotated[int | None, typer.Option(help="Of answers at a temperature.")] = None,
    chunk_tokens: Annotated[
        int | None, typer.Option(help="Longest part of a document. [default: what fits]")
    ] = None,
    overlap: Annotated[
        int | None, typer.Option(help="Tokens that a part repeats. [default: a tenth]")
    ] = None,
    merge: Annotated[
        str | None, typer.Option(help="How parts become one row: union or first.")
    ] = None,
    num_under_way: Annotated[int | None, typer.Option(help="Documents in work at once.")] = None,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Rows in the order of the documents.")
    ] = False,
    **options: Any,
) -> None:
    """Turn documents into rows that satisfy a schema. The same command again finishes a job that was stopped."""
    from radixlm.console import print_failures, run_extraction

    asked: dict[str, Any] = {
        "field": field, "instructions": instructions, "max_tokens": max_tokens, "seed": seed,
        "temperature": temperature, "chunk_tokens": chunk_tokens, "overlap": overlap, "merge": merge,
        "num_under_way": num_under_way, "dead_letter": dead_letter,
    }  # fmt: skip
    given = {name: value for name, value in asked.items() if value is not None}
    summary = run_extraction(
        options, files, schema, output,
        resume=not restart, retry_failed=retry_failed, ordered=ordered, **given,
    )  # fmt: skip
    print(summary.line())
    if summary.job.num_failed:
        print_failures(summary)
        sys.exit(EXIT_SOME_FAILED)


@app.command(cls=PanelCommand)
@with_fields(EngineConfig)
def bench(
    what: Annotated[
        Literal["engine", "step", "programs"],
        typer.Argument(help="The whole, decoding steps alone, or programs of ten kinds."),
    ] = "engine",
    quick: Annotated[bool, typer.Option("--quick", help="A fraction of the work.")] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="With step: what each part of it takes.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<str>", help="With programs: those whose name begins so. Repeatable."
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<str>", help="With programs: leave this out; else each in turn. Repeatable."
        ),
    ] = None,
    as_json: AsJson = False,
    **options: Any,
) -> None:
    """Measure this machine: prefix sharing, first tokens, decoding and masks; or single steps; or programs, with one thing left out at a time."""
    from radixlm.bench import QUICK, Sizes, measure, measure_steps
    from radixlm.offline import Engine
    from radixlm.reports import print_bench, print_programs

    refuse_unless(what == "programs", only=only, without=without)
    refuse_unless(what == "step", profile=profile)
    if what == "programs":
        from radixlm.bench_programs import measure_programs, model_engine

        opened = model_engine(EngineConfig.create(**options))
        rows = measure_programs(opened, only=only or (), without=without, warm=not quick, rounds=1 if quick else 3)  # fmt: skip
        print_programs(rows, as_json=as_json)
        return
    if what == "step":
        config = EngineConfig.create(**options)
        report = measure_steps(config, num_steps=20 if quick else 100, in_parts=profile)
    else:
        with Engine(**options) as engine:
            report = measure(engine, QUICK if quick else Sizes())
    print_bench(report, as_json=as_json)


@app.command(cls=PanelCommand)
@with_fields(EngineConfig)
def doctor(as_json: AsJson = False, **options: Any) -> None:
    """Show what is installed, which kernels serve, facts of the model and this machine's ceilings."""
    from radixlm.doctor import examine
    from radixlm.reports import print_examination

    if not print_examination(examine(EngineConfig.create(**options)), as_json=as_json):
        sys.exit(1)


def main() -> None:
    """The console script. Errors of radixlm become lines on stderr and exit status 1 (the user's) or 70 (ours); Ctrl-C is 130."""
    from radixlm.errors import RadixError, UserError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a character it cannot show is no failure
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except RadixError as error:
        notes = "".join(f"\n  {note}" for note in getattr(error, "__notes__", ()))
        print(f"radixlm: {error}{notes}", file=sys.stderr)
        sys.exit(1 if isinstance(error, UserError) else 70)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
