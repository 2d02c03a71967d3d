"""`radixlm.Engine`: a model in processes of its own, called like a function.

    with radixlm.Engine(model="smollm2-135m", threads=2) as e:
        print(e.generate("The capital of France is", max_tokens=8).text)

A facade: it turns Python values into messages and answers into Python values. The processes are `runtime.launch`'s, the typed values
`lang.schema`'s. Must not know sockets, tokens or scheduling.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import TimeoutError as WaitTimeout
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, cast, overload

from radixlm.errors import OutputError, ProgramError, PromptError, RadixError, TimedOut
from radixlm.grammar.spec import Choice, JsonSchema, Regex, Spec
from radixlm.lang.plain_text import check_text
from radixlm.lang.primitives.gen import check_choices, check_regex
from radixlm.lang.sampling import SamplingOptions, build_params, clean_options
from radixlm.runtime import messages as m
from radixlm.runtime.batches import carry_out
from radixlm.runtime.completions import Completion, Decode
from radixlm.runtime.config import EngineConfig
from radixlm.runtime.launch import Runtime
from radixlm.runtime.local import LocalBackend
from radixlm.runtime.model_files import resolve_model
from radixlm.runtime.text_stream import TextStream

if TYPE_CHECKING:
    from concurrent.futures import Future

    from radixlm.runtime.progress import ItemProgress

Prompt: TypeAlias = str | Sequence[int]
Message: TypeAlias = Mapping[str, Any]
_SEPARATE = frozenset({"schema", "regex", "choices", "json_schema", "namespace", "strict_text"})


class GenerateOptions(SamplingOptions, total=False):
    """How to continue: the sampling arguments (see `runtime.messages.SamplingParams`), at most one constraint, and where it runs.

    Under a constraint, `.value` of the result is the instance, parsed JSON, matching text or choice.
    """

    max_tokens: int | None  # None: to the end of the context
    schema: Any  # a pydantic model, dataclass, Literal ... or a JSON Schema as dict or text
    json_schema: str | Mapping[str, Any] | None  # a JSON Schema as dict or text
    regex: str | None  # the whole output matches (Python syntax)
    choices: Sequence[str] | None  # the output is one of these
    namespace: str  # salts the prefix cache: nothing is shared with other namespaces
    strict_text: (
        bool  # refuse characters that no token spells, instead of replacing and reporting them
    )


class Engine:
    """A running model. Close it, or use it in a `with` block; no process outlives it.

    `options` are the fields of `EngineConfig` (`radixlm.runtime.config`): threads, kernels, num_pages, page_size, on_engine_death ...
    Raises ConfigError for a wrong option, ModelError for a model that is not there, ServiceError when a process does not start.
    """

    def __init__(self, model: str = "smollm2-135m", **options: Any) -> None:
        self.config = EngineConfig.create(model=model, **options)
        resolve_model(
            self.config.model, Path(self.config.cache_dir)
        )  # refused here, before any process starts
        self._runtime = Runtime(self.config)
        self._client = self._runtime.client

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def backend(self) -> LocalBackend:
        """The engine as a backend of the language: `program.run(backend=engine)` uses it."""
        return LocalBackend(self._client)

    @property
    def facts(self) -> m.Ready:
        """Facts of the model: name, context length, vocabulary size, stop tokens."""
        return self._client.facts

    def pids(self) -> dict[str, int]:
        """Process ids of the children, by role."""
        return self._runtime.pids()

    # ------------------------------------------------------------------------------------------ asking

    @overload
    def generate(  # pyright: ignore[reportOverlappingOverload]  a text is a sequence of texts, but is meant as one
        self,
        prompt: Prompt,
        *,
        return_exceptions: bool = ...,
        progress: bool | None = ...,
        timeout_s: float | None = ...,
        **options: Unpack[GenerateOptions],
    ) -> Completion: ...
    @overload
    def generate(
        self,
        prompt: Sequence[Prompt],
        *,
        return_exceptions: Literal[False] = ...,
        progress: bool | None = ...,
        timeout_s: float | None = ...,
        **options: Unpack[GenerateOptions],
    ) -> list[Completion]: ...
    @overload
    def generate(
        self,
        prompt: Sequence[Prompt],
        *,
        return_exceptions: bool,
        progress: bool | None = ...,
        timeout_s: float | None = ...,
        **options: Unpack[GenerateOptions],
    ) -> list[Completion | RadixError]: ...
    def generate(
        self,
        prompt: Prompt | Sequence[Prompt],
        *,
        return_exceptions: bool = False,
        progress: bool | None = None,
        timeout_s: float | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Completion | list[Completion] | list[Completion | RadixError]:
        """Continue a prompt, or each of a list of prompts; a prompt is a text or a sequence of token ids.

        Returns a `Completion`, or a list of them in the order of the prompts. In a list all requests are carried out whatever happens
        to one; then the first error is raised, or, with `return_exceptions`, stands in its place. `progress` shows a bar for lists
        (None: when stderr is a terminal). `timeout_s` bounds the whole call: what still runs then is aborted and TimedOut raised.
        """
        segments, is_list = _prompt_segments(prompt)
        return self._answers(segments, is_list, return_exceptions, progress, timeout_s, options)

    def chat(
        self,
        messages: Sequence[Message] | Sequence[Sequence[Message]],
        *,
        return_exceptions: bool = False,
        progress: bool | None = None,
        timeout_s: float | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Any:
        """Answer a conversation, or each of a list of conversations, by the model's chat template. Otherwise as `generate`.

        A message is {"role": "system" | "user" | "assistant", "content": text}.
        """
        segments, is_list = _chat_segments(messages)
        return self._answers(segments, is_list, return_exceptions, progress, timeout_s, options)

    def stream(
        self, prompt: Prompt | Sequence[Message], **options: Unpack[GenerateOptions]
    ) -> TextStream:
        """Continue a text, token ids or a conversation, and iterate over the new text as it comes. `.result()` has the rest."""
        if not isinstance(prompt, str) and prompt and isinstance(prompt[0], Mapping):
            segments, is_list = _chat_segments(cast("Sequence[Message]", prompt))
        else:
            segments, is_list = _prompt_segments(cast("Prompt", prompt))
        if is_list:
            raise PromptError("a stream takes one prompt, not a list", place="prompt")
        requests, decode = self._requests(segments, options, stream=True)
        return TextStream(self._client, requests[0], decode)

    def _requests(
        self, segments: Sequence[m.Segment], options: GenerateOptions, *, stream: bool = False
    ) -> tuple[list[m.Generate], Decode]:
        spec, decode = _constraint_of(options)
        sampling = build_params(
            {}, clean_options({k: v for k, v in options.items() if k not in _SEPARATE}), None
        )
        requests = [
            m.Generate(
                self._client.new_id("generate"),
                segments=(segment,),
                sampling=sampling,
                constraint=spec,
                stream=stream,
                namespace=options.get("namespace", ""),
                strict_text=options.get("strict_text", False),
            )
            for segment in segments
        ]
        return requests, decode

    def _answers(
        self,
        segments: Sequence[m.Segment],
        is_list: bool,
        return_exceptions: bool,
        progress: bool | None,
        timeout_s: float | None,
        options: GenerateOptions,
    ) -> Any:
        requests, decode = self._requests(segments, options)
        with _bar(len(requests) if is_list else 0, progress) as bar:
            answers = carry_out(self._client, requests, timeout_s=timeout_s, bar=bar)
        first_error = next((answer for answer in answers if isinstance(answer, RadixError)), None)
        if first_error is not None and not (return_exceptions and is_list):
            raise first_error
        results = [a if isinstance(a, RadixError) else Completion(a, decode) for a in answers]
        return results if is_list else results[0]

    # ------------------------------------------------------------------------------------------ the engine itself

    def tokenize(self, prompt: str | Sequence[Message]) -> tuple[int, ...]:
        """The token ids that a prompt, or a conversation, would have if it were sent now."""
        segments, _ = (
            _prompt_segments(prompt) if isinstance(prompt, str) else _chat_segments(prompt)
        )
        request = m.Tokenize(self._client.new_id("tokenize"), tuple(segments))
        return self._wait(self._client.request(request)).token_ids

    def stats(self) -> dict[str, float]:
        """Counters of engine and gateway by name: tokens, cache hits, pages, requests."""
        return self._wait(
            self._client.request(m.StatsRequest(self._client.new_id("stats")))
        ).counters

    def flush(self) -> None:
        """Empty the prefix cache and the text memory. ServiceError while requests run."""
        self._wait(self._client.request(m.FlushCache(self._client.new_id("flush"))))

    def abort(self) -> None:
        """Abort every pending request of this object; each fails with Aborted."""
        self._client.abort_all()

    def close(self) -> None:
        """End the processes; what is pending fails. Safe to call twice."""
        self._runtime.close()

    def _wait(self, future: Future[Any], timeout_s: float = 60.0) -> Any:
        try:
            return future.result(timeout_s)
        except WaitTimeout:
            future.cancel()
            raise TimedOut(f"no answer within {timeout_s:g} s") from None


# ---------------------------------------------------------------------------------------------- values in, values out


def _prompt_segments(prompt: Prompt | Sequence[Prompt]) -> tuple[list[m.Segment], bool]:
    """The prompts as segments, and whether a list of them was given."""
    if isinstance(prompt, str):
        check_text(prompt, "prompt")
        return [m.Text(prompt)], False
    items = list(prompt)
    if items and all(_is_token_id(item) for item in items):
        return [m.Ids(tuple(int(cast("int", item)) for item in items))], False
    segments: list[m.Segment] = []
    for number, item in enumerate(items):
        if isinstance(item, str):
            check_text(item, f"prompt[{number}]")
            segments.append(m.Text(item))
        elif isinstance(item, Sequence) and all(_is_token_id(part) for part in item):
            segments.append(m.Ids(tuple(int(part) for part in item)))
        else:
            raise PromptError(
                f"prompt {number} is {item!r}",
                place=f"prompt[{number}]",
                hint="A prompt is a text or a list of token ids",
            )
    return segments, True


def _is_token_id(item: object) -> bool:
    return hasattr(item, "__index__") and not isinstance(item, bool)


def _chat_segments(
    messages: Sequence[Message] | Sequence[Sequence[Message]],
) -> tuple[list[m.Segment], bool]:
    is_list = not messages or not isinstance(messages[0], Mapping)
    conversations = cast("Sequence[Sequence[Message]]", messages if is_list else [messages])
    segments: list[m.Segment] = []
    for conversation in conversations:
        for number, message in enumerate(conversation):
            if not isinstance(message, Mapping) or "role" not in message:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise PromptError(
                    f"message {number} is {message!r}",
                    place=f"messages[{number}]",
                    hint='A message is {"role": ..., "content": ...}',
                )
            for key, value in message.items():
                if isinstance(value, str):
                    check_text(value, f"messages[{number}].{key}")
        segments.append(m.Chat(tuple(dict(message) for message in conversation)))
    return segments, is_list


def _constraint_of(options: GenerateOptions) -> tuple[Spec | None, Decode]:
    """The constraint among the options, and how an output becomes a value."""
    schema, json_schema = options.get("schema"), options.get("json_schema")
    regex, choices = options.get("regex"), options.get("choices")
    names = [
        name
        for name in ("schema", "json_schema", "regex", "choices")
        if options.get(name) is not None
    ]
    if len(names) > 1:
        raise ProgramError(
            f"a request takes one constraint, not {' and '.join(names)}", place=names[1]
        )
    if regex is not None:
        return Regex(check_regex(regex)), _complete_text
    if choices is not None:
        return Choice(check_choices(choices)), _complete_text
    if json_schema is None and isinstance(schema, (str, Mapping)):
        json_schema = cast("str | Mapping[str, Any]", schema)
    if json_schema is not None:
        text = json_schema if isinstance(json_schema, str) else _as_json(json_schema)
        return JsonSchema(text), lambda output: json.loads(_complete_text(output))
    if schema is None:
        return None, lambda output: output.text
    from radixlm.lang.schema import typed_schema

    typed = typed_schema(schema)
    return typed.spec, typed.decode


def _as_json(schema: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(schema), ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise ProgramError(
            f"the schema cannot be written as JSON: {error}", place="json_schema"
        ) from None


def _complete_text(output: m.Output) -> str:
    if output.grammar_complete is False:
        raise OutputError(
            f"the output was cut before it was complete: {output.text[-80:]!r}",
            hint="Allow more tokens (max_tokens), or bound the constraint",
        )
    return output.text


def _bar(
    num_items: int, progress: bool | None
) -> contextlib.AbstractContextManager[ItemProgress | None]:
    wanted = progress if progress is not None else num_items > 1 and sys.stderr.isatty()
    if not wanted or not num_items:
        return contextlib.nullcontext()
    from radixlm.runtime.progress import ItemProgress

    return ItemProgress(num_items)
