"""`radixlm.Engine`: a model in processes of its own, called like a function.

    with radixlm.Engine(model="smollm2-135m", threads=2) as e:
        print(e.generate("The capital of France is", max_tokens=8).text)
        result = await e.agenerate("The capital of Spain is", max_tokens=8)   # the same on an asyncio loop

A facade: it turns Python values into messages and answers into Python values. The processes are `runtime.launch`'s, prompts and
constraints `lang`'s. Must not know sockets, tokens or scheduling.
"""

from __future__ import annotations

import contextlib
import difflib
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import TimeoutError as WaitTimeout
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from radixlm.errors import RadixError, SamplingError, TimedOut
from radixlm.lang.constraints import CONSTRAINT_NAMES, Decode, constraint_of
from radixlm.lang.prompts import Message, Prompt, chat_segments, prompt_segments, single_segment
from radixlm.lang.sampling import OPTION_NAMES, SamplingOptions, build_params, clean_options
from radixlm.runtime import messages as m
from radixlm.runtime.batches import carry_out, carry_out_async
from radixlm.runtime.completions import Completion
from radixlm.runtime.config import EngineConfig
from radixlm.runtime.launch import Runtime
from radixlm.runtime.local import LocalBackend
from radixlm.runtime.model_files import resolve_model
from radixlm.runtime.text_stream import AsyncTextStream, TextStream

if TYPE_CHECKING:
    from concurrent.futures import Future

    from radixlm.grammar.spec import AfterReasoning, Gbnf, JsonSchema, Lark
    from radixlm.runtime.progress import ItemProgress

_OF_REQUEST = frozenset({"namespace", "strict_text"})
_OF_CALL = frozenset({"return_exceptions", "progress", "timeout_s"})


class GenerateOptions(SamplingOptions, total=False):
    """How to continue: the sampling arguments (each described at `runtime.messages.SamplingParams`: temperature=0.0 is greedy, top_k,
    top_p, min_p, stop, seed, n, logprobs, penalties ...), at most one constraint, and where it runs.

    Under a constraint, `.value` of the result is the instance, parsed JSON, matching text or choice.
    """

    max_tokens: int | None  # None: to the end of the context
    schema: Any  # a pydantic model, dataclass, Literal ... or a JSON Schema as dict or text
    json_schema: str | Mapping[str, Any] | JsonSchema | None  # a JSON Schema as dict, text or spec
    regex: str | None  # the whole output matches (Python syntax)
    choices: Sequence[str] | None  # the output is one of these
    grammar: str | Lark | Gbnf | AfterReasoning | None  # text: Lark, or GBNF by its `name ::= ...`
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
        segments, is_list = prompt_segments(prompt)
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
        segments, is_list = chat_segments(messages)
        return self._answers(segments, is_list, return_exceptions, progress, timeout_s, options)

    def stream(
        self, prompt: Prompt | Sequence[Message], **options: Unpack[GenerateOptions]
    ) -> TextStream:
        """Continue a text, token ids or a conversation, and iterate over the new text as it comes. `.result()` has the rest."""
        requests, decode = self._requests([single_segment(prompt)], options, stream=True)
        return TextStream(self._client, requests[0], decode)

    def _requests(
        self, segments: Sequence[m.Segment], options: GenerateOptions, *, stream: bool = False
    ) -> tuple[list[m.Generate], Decode]:
        _check_names(options)
        spec, decode = constraint_of(options)
        own = {name: value for name, value in options.items() if name in OPTION_NAMES}
        sampling = build_params({}, clean_options(own), None)
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
        return _results(answers, decode, is_list, return_exceptions)

    # ------------------------------------------------------------------------------------------ on an asyncio loop

    async def agenerate(
        self,
        prompt: Prompt | Sequence[Prompt],
        *,
        return_exceptions: bool = False,
        timeout_s: float | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Any:
        """As `generate`, awaited: other tasks of the running loop go on meanwhile. Cancelling the task aborts the requests."""
        segments, is_list = prompt_segments(prompt)
        return await self._aanswers(segments, is_list, return_exceptions, timeout_s, options)

    async def achat(
        self,
        messages: Sequence[Message] | Sequence[Sequence[Message]],
        *,
        return_exceptions: bool = False,
        timeout_s: float | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Any:
        """As `chat`, awaited; see `agenerate`."""
        segments, is_list = chat_segments(messages)
        return await self._aanswers(segments, is_list, return_exceptions, timeout_s, options)

    def astream(
        self, prompt: Prompt | Sequence[Message], **options: Unpack[GenerateOptions]
    ) -> AsyncTextStream:
        """As `stream`, for `async for`; called on the loop that reads it. `await .result()` has the rest."""
        requests, decode = self._requests([single_segment(prompt)], options, stream=True)
        return AsyncTextStream(self._client, requests[0], decode)

    async def _aanswers(
        self,
        segments: Sequence[m.Segment],
        is_list: bool,
        return_exceptions: bool,
        timeout_s: float | None,
        options: GenerateOptions,
    ) -> Any:
        requests, decode = self._requests(segments, options)
        answers = await carry_out_async(self._client, requests, timeout_s=timeout_s)
        return _results(answers, decode, is_list, return_exceptions)

    # ------------------------------------------------------------------------------------------ the engine itself

    def tokenize(self, prompt: str | Sequence[Message]) -> tuple[int, ...]:
        """The token ids that a prompt, or a conversation, would have if it were sent now."""
        segments, _ = prompt_segments(prompt) if isinstance(prompt, str) else chat_segments(prompt)
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


def _results(
    answers: Sequence[m.Finished | RadixError],
    decode: Decode,
    is_list: bool,
    return_exceptions: bool,
) -> Any:
    """The first error is raised, unless a list was asked for with its errors in place."""
    first_error = next((answer for answer in answers if isinstance(answer, RadixError)), None)
    if first_error is not None and not (return_exceptions and is_list):
        raise first_error
    results = [a if isinstance(a, RadixError) else Completion(a, decode) for a in answers]
    return results if is_list else results[0]


def _check_names(options: GenerateOptions) -> None:
    known = (*sorted(OPTION_NAMES), *CONSTRAINT_NAMES, *_OF_REQUEST)
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, [*known, *_OF_CALL], n=1)
            hint = f"Did you mean {near[0]}?" if near else f"The options are {', '.join(known)}"
            raise SamplingError(f"unknown option {name!r}", place=name, hint=hint)


def _bar(
    num_items: int, progress: bool | None
) -> contextlib.AbstractContextManager[ItemProgress | None]:
    wanted = progress if progress is not None else num_items > 1 and sys.stderr.isatty()
    if not wanted or not num_items:
        return contextlib.nullcontext()
    from radixlm.runtime.progress import ItemProgress

    return ItemProgress(num_items)
