"""Work on a terminal: one answer as it comes, a dialogue with history, an extraction with its bar.

Owns the dialogue's commands and what Ctrl-C means. Knows nothing of flags; the engine is handed in. Without a terminal on standard input
each line of it is one turn, so a dialogue can be scripted.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radixlm.errors import ConfigError, PromptError, RadixError
from radixlm.lang.plain_text import check_text

if TYPE_CHECKING:
    from radixlm.grammar.spec import JsonSchema
    from radixlm.lang.extract import Progress, Summary
    from radixlm.lang.state import State
    from radixlm.lang.trace import TracingBackend
    from radixlm.offline import Engine
    from radixlm.runtime.completions import Completion

_PROGRESS_LINE_S = 10.0  # between lines where there is no terminal
_HELP = """Type a message; a line that ends in \\ goes on in the next one. Ctrl-C stops an answer, Ctrl-D leaves.
  /schema FILE    the answers satisfy this JSON Schema; /schema alone: free text again
  /regex PATTERN  the answers match this pattern; /regex alone: free text again
  /system TEXT    begin again with this system message
  /reset          forget the conversation, keep the system message
  /history        show the conversation
  /quit           leave"""


def request_options(**flags: Any) -> dict[str, Any]:
    """The options of a request that were given as flags. `json_schema` and `grammar` are files. What is wrong with them is raised before a model loads."""
    from radixlm.lang.constraints import constraint_of
    from radixlm.lang.sampling import OPTION_NAMES, build_params, clean_options

    options = {name: value for name, value in flags.items() if value not in (None, [])}
    if "json_schema" in options:
        options["json_schema"] = read_schema(options["json_schema"])
    if "grammar" in options:
        options["grammar"] = read_grammar(options["grammar"])
    constraint_of(options)
    sampling = {name: value for name, value in options.items() if name in OPTION_NAMES}
    build_params({}, clean_options(sampling), None)
    return options


@contextlib.contextmanager
def run_program(
    place: str,
    arguments: Sequence[str] | None,
    asked: Mapping[str, Any],
    engine_options: Mapping[str, Any],
    *,
    is_traced: bool,
) -> Generator[tuple[Callable[[], State], TracingBackend | None]]:
    """What runs the program at `place` on an engine, and its trace. Arguments and options are refused before a model loads."""
    from radixlm.lang.program_file import load_program, read_arguments
    from radixlm.lang.trace import TracingBackend
    from radixlm.offline import Engine

    program = load_program(place)
    given = {name: value for name, value in asked.items() if value is not None}
    bound = program.bind(**{**given, **read_arguments(program, arguments or [])})
    with Engine(**engine_options) as engine:
        tracing = TracingBackend(engine.backend) if is_traced else None
        yield lambda: bound.run(stream=False, backend=tracing or engine), tracing


def read_prompt(given: str) -> str:
    """The text of an argument: itself, or standard input for "-". PromptError for bytes that are no UTF-8."""
    if given != "-":
        check_text(given, "prompt")
        return given
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise PromptError(
            f"standard input is no text: {error}", place="-", hint="Convert it to UTF-8 first"
        ) from None


def read_schema(path: Path) -> str:
    """The text of a JSON Schema file. ConfigError when it cannot be read or is no JSON."""
    try:
        text = path.read_text(encoding="utf-8")
        json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"this is no JSON Schema: {error}", place=str(path)) from None
    return text


def read_grammar(path: Path) -> str:
    """The text of a grammar file. ConfigError when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"this is no grammar: {error}", place=str(path)) from None


def print_stream(
    engine: Engine, prompt: str | Sequence[Mapping[str, Any]], options: Mapping[str, Any]
) -> Completion:
    """Print the answer as it comes; a note on stderr if max_tokens cut it."""
    with engine.stream(prompt, **options) as stream:
        for piece in stream:
            print(piece, end="", flush=True)
        print(flush=True)
        completion = stream.result()
    if completion.finish_reason == "length":
        num_tokens = completion.usage.completion_tokens
        _note(f"(cut after {num_tokens} tokens; see --max-tokens)")
    return completion


def run_extraction(
    engine_options: Mapping[str, Any],
    files: Sequence[Path],
    schema: str,
    output: Path,
    **options: Any,
) -> Summary:
    """Start an engine and extract, with progress on stderr. What can be refused is refused before the engine starts, and a finished job
    starts none.
    """
    from radixlm.lang.extract import check_job, extract_files
    from radixlm.offline import Engine
    from radixlm.runtime.config import EngineConfig

    model = EngineConfig.create(**engine_options).model
    try:
        target, standing = check_job(files, schema, output, model=model, **options)
        _check_schema(target.spec)
        done = standing.summary.job
        if standing.is_finished:
            return standing.summary
        if done.num_documents:
            _note(f"radixlm: going on from {done.num_rows} rows, {done.num_failed} failed")
        with Engine(**engine_options) as engine, _ExtractionProgress() as progress:
            return extract_files(
                files, schema, output, backend=engine, on_progress=progress.show, **options
            )
    except KeyboardInterrupt:
        _note("(stopped; the same command goes on from here)")
        raise
    except RadixError as error:
        error.hint = error.hint.replace("resume=False", "--restart")
        raise


def print_failures(summary: Summary) -> None:
    """What most documents without a row failed of, and where the others' reasons are."""
    from radixlm.lang.extraction.outputs import commonest_reason

    reason, num = commonest_reason(Path(summary.dead_letter))
    of_them = "" if num == summary.job.num_failed else f", {num} of them"
    told = f"{of_them}: {reason}" if num else ""
    print(f"radixlm: {summary.job.num_failed} failed{told}", file=sys.stderr)
    print(f"radixlm: failures and their reasons are in {summary.dead_letter}", file=sys.stderr)


def _check_schema(spec: JsonSchema) -> None:
    """GrammarError for a schema that no engine would take; a line on stderr for one that lets rows be empty, or anything."""
    from radixlm.grammar.explain import loose_objects
    from radixlm.grammar.expr import Limits
    from radixlm.grammar.frontends import build

    build(spec, Limits())
    for number, loose in enumerate(found := loose_objects(spec)):
        if number == 0:  # one line; `grammar explain` lists them all
            more = f" (and {len(found) - 1} more such objects)" if len(found) > 1 else ""
            _note(f"radixlm: schema: {loose.advice()}{more}")


class _ExtractionProgress:
    """A bar on a terminal; elsewhere a line now and then."""

    def __init__(self) -> None:
        from radixlm.runtime.progress import DocumentProgress

        self._bar = DocumentProgress() if sys.stderr.isatty() else None
        self._shown_s = time.monotonic()

    def __enter__(self) -> _ExtractionProgress:
        if self._bar is not None:
            self._bar.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)

    def show(self, progress: Progress) -> None:
        """After each document."""
        tally = progress.tally
        num_documents = progress.num_skipped + tally.num_documents
        rates = (
            f"{progress.documents_per_s:.2f} documents/s,"
            f" {100 * tally.cached_tokens / max(tally.prompt_tokens, 1):.0f} % of prompts cached"
        )
        if self._bar is not None:
            self._bar.report(progress.fraction, num_documents, tally.num_failed, rates)
        elif time.monotonic() - self._shown_s >= _PROGRESS_LINE_S:
            self._shown_s = time.monotonic()
            share = "" if progress.fraction is None else f" ({100 * progress.fraction:.0f} %)"
            failed = f", {tally.num_failed} failed" if tally.num_failed else ""
            _note(f"radixlm: {num_documents} documents{share}{failed}, {rates}")


class Dialogue:
    """A conversation: questions in, answers out, the history sent along each time (the prefix cache has it)."""

    def __init__(self, engine: Engine, options: Mapping[str, Any], system: str | None) -> None:
        self.messages: list[dict[str, str]] = []
        self._engine = engine
        self._options = dict(options)
        self._commands: dict[str, Callable[[str], None]] = {
            "/help": lambda _: print(_HELP),
            "/schema": self._set_schema,
            "/regex": self._set_regex,
            "/system": self._set_system,
            "/reset": lambda _: self._reset(),
            "/history": lambda _: self._print_history(),
        }
        self._system = system
        self._reset()

    def with_question(self, text: str) -> list[dict[str, str]]:
        """The conversation so far and `text` as the next question."""
        return [*self.messages, {"role": "user", "content": text}]

    def run(self) -> None:
        """Turns until /quit or the end of the input."""
        is_terminal = sys.stdin.isatty()
        if is_terminal:
            with contextlib.suppress(ImportError):
                importlib.import_module("readline")  # editing and recall of lines, by being there
            _note(f"{self._engine.facts.model}. /help lists commands.")
        while True:
            try:
                line = _read_turn("> " if is_terminal else "")
            except EOFError:
                return
            except UnicodeDecodeError as error:
                raise PromptError(f"standard input is no text: {error}") from None
            except KeyboardInterrupt:
                print(file=sys.stderr)
                continue
            if line.strip() in ("/quit", "/exit"):
                return
            self.turn(line)

    def turn(self, line: str) -> None:
        """One line of the user: a command or a question. Errors are shown, and the conversation goes on as before."""
        if not line.strip():
            return
        try:
            if line.startswith("/"):
                self._command(line)
            else:
                self._answer(line)
        except RadixError as error:
            _note(f"radixlm: {error}")

    def _command(self, line: str) -> None:
        name, _, rest = line.strip().partition(" ")
        command = self._commands.get(name)
        if command is None:
            names = ", ".join([*self._commands, "/quit"])
            raise ConfigError(f"there is no command {name}", hint=f"There are {names}")
        command(rest.strip())

    def _answer(self, question: str) -> None:
        messages = self.with_question(question)
        pieces: list[str] = []
        began_s = time.monotonic()
        with self._engine.stream(messages, **self._options) as stream:
            try:
                for piece in stream:
                    pieces.append(piece)
                    print(piece, end="", flush=True)
                print(flush=True)
                _note(_summary(stream.result(), time.monotonic() - began_s))
            except KeyboardInterrupt:
                print(flush=True)
                _note("(stopped)")
        if pieces:  # a stopped answer stays as far as it came
            self.messages = [*messages, {"role": "assistant", "content": "".join(pieces)}]

    def _set_schema(self, path: str) -> None:
        schema = read_schema(Path(path).expanduser()) if path else None
        self._constrain("json_schema", schema)

    def _set_regex(self, pattern: str) -> None:
        self._constrain("regex", pattern or None)

    def _constrain(self, name: str, value: str | None) -> None:
        for other in ("json_schema", "regex", "choices", "grammar"):
            self._options.pop(other, None)
        if value is not None:
            self._options[name] = value

    def _set_system(self, text: str) -> None:
        self._system = text or None
        self._reset()

    def _reset(self) -> None:
        given = self._system is not None
        self.messages = [{"role": "system", "content": self._system or ""}] if given else []

    def _print_history(self) -> None:
        for message in self.messages:
            print(f"{message['role']}: {message['content']}")


def _read_turn(prompt: str) -> str:
    lines = [input(prompt)]
    while lines[-1].endswith("\\"):
        lines[-1] = lines[-1][:-1]
        lines.append(input("  " if prompt else ""))
    return "\n".join(lines)


def _summary(completion: Completion, elapsed_s: float) -> str:
    usage = completion.usage
    rate = usage.completion_tokens / max(elapsed_s, 1e-6)
    cut = "; cut by max_tokens" if completion.finish_reason == "length" else ""
    return (
        f"({usage.completion_tokens} tokens, {rate:.0f} a second;"
        f" {usage.cached_tokens} of {usage.prompt_tokens} prompt tokens cached{cut})"
    )


def _note(text: str) -> None:
    """Beside the answers: on stderr, dim where that is a terminal."""
    is_terminal = sys.stderr.isatty()
    print(f"\x1b[2m{text}\x1b[0m" if is_terminal else text, file=sys.stderr, flush=True)
