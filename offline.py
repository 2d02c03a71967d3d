"""`radixlm.Engine`: a model in processes of its own, called like a function.

    with radixlm.Engine(model="smollm2-135m", threads=2) as e:
        print(e.generate("The capital of France is", max_tokens=8).text)

A facade: it turns Python values into messages and answers into Python values. The processes are `runtime.launch`'s, the typed values
`lang.schema`'s. Must not know sockets, tokens or scheduling.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from concurrent.futures import TimeoutError as WaitTimeout
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, cast, overload

from radixlm.errors import OutputError, ProgramError, PromptError, RadixError, TimedOut
from radixlm.grammar.spec import Choice, JsonSchema, Regex, Spec
from radixlm.lang.sampling import SamplingOptions, build_params, clean_options
from radixlm.runtime import messages as m
from radixlm.runtime.completions import Completion, Decode
from radixlm.runtime.config import EngineConfig
from radixlm.runtime.launch import Runtime
from radixlm.runtime.local import LocalBackend
from radixlm.runtime.model_files import resolve_model

if TYPE_CHECKING:
    from radixlm.runtime.progress import ItemProgress

Prompt: TypeAlias = str | Sequence[int]
Message: TypeAlias = Mapping[str, Any]
MAX_UNDER_WAY = 8192  # requests of one list that are handed over before the first ones are answered


class Engine:
    """A running model. Close it, or use it in a `with` block; no process outlives it.

    `options` are the fields of `EngineConfig` (`radixlm.runtime.config`): threads, kernels, num_pages, page_size, on_engine_death ...
    Raises ConfigError for a wrong option, ModelError for a model that is not there, ServiceError when a process does not start.
    """

    def __init__(self, model: str = "smollm2-135m", **options: Any) -> None:
        self.config = EngineConfig.create(model=model, **options)
        resolve_model(self.config.model, Path(self.config.cache_dir))  # refuse here, before any process starts
        self._runtime = Runtime(self.config)
        self._client = self._runtime.client

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
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

    def generate(
        self,
        prompt: Prompt | Sequence[Prompt],
        *,
        max_tokens: int | None = None,
        schema: Any = None,
        regex: str | None = None,
        choices: Sequence[str] | None = None,
        json_schema: str | Mapping[str, Any] | None = None,
        namespace: str = "",
        strict_text: bool = False,
        return_exceptions: bool = False,
        progress: bool | None = None,
        timeout_s: float | None = None,
        **options: Unpack[SamplingOptions],
    ) -> Any:
        """Continue a prompt, or each of a list of prompts: a `Completion`, or a list of them in the order of the prompts.

        A prompt is a text or a sequence of token ids. At most one constraint: `schema` (a pydantic model or other Python type, a dict or
        the JSON text of a schema), `json_schema` (a dict or JSON text), `regex` (the whole output), `choices` (one of them); `.value` of
        the result is then of that type. max_tokens=None goes on to the end of the context.

        `namespace` salts the prefix cache; `strict_text` refuses characters that no token spells. In a list all requests are carried out
        whatever happens to one; then the first error is raised, or, with `return_exceptions`, stands in its place. `progress` shows a bar
        for lists (None: when stderr is a terminal). `timeout_s` bounds the whole call: what is still running is aborted, TimedOut raised.
        """
        spec, decode = constraint_of(schema, regex, choices, json_schema)
        own = {**options, "max_tokens": max_tokens}
        sampling = build_params({}, clean_options(own), None)
        prompts, is_list = _as_prompts(prompt)
        requests = [
            m.Generate(
                self._client.new_id("generate"),
                segments=(segment,),
                sampling=sampling,
                constraint=spec,
                namespace=namespace,
                strict_text=strict_text,
            )
            for segment in prompts
        ]
        return self._answers(requests, decode, is_list, return_exceptions, progress, timeout_s)

    def chat(
        self,
        messages: Sequence[Message] | Sequence[Sequence[Message]],
        *,
        max_tokens: int | None = None,
        schema: Any = None,
        regex: str | None = None,
        choices: Sequence[str] | None = None,
        json_schema: str | Mapping[str, Any] | None = None,
        namespace: str = "",
        strict_text: bool = False,
        return_exceptions: bool = False,
        progress: bool | None = None,
        timeout_s: float | None = None,
        **options: Unpack[SamplingOptions],
    ) -> Any:
        """Answer a conversation, or each of a list of conversations, by the model's chat template. Otherwise as `generate`.

        A message is {"role": "system" | "user" | "assistant", "content": text}.
        """
        spec, decode = constraint_of(schema, regex, choices, json_schema)
        sampling = build_params({}, clean_options({**options, "max_tokens": max_tokens}), None)
        conversations, is_list = _as_conversations(messages)
        requests = [
            m.Generate(
                self._client.new_id("chat"),
                segments=(segment,),
                sampling=sampling,
                constraint=spec,
                namespace=namespace,
                strict_text=strict_text,
            )
            for segment in conversations
        ]
        return self._answers(requests, decode, is_list, return_exceptions, progress, timeout_s)
