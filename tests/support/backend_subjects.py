"""Every backend there is, for tests that must hold on all of them: how it is made, and what it refuses by name.

with subject.running() as backend: ...                subject.check(lambda backend: ...)  # twice where a recording is replayed
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from asgi_thread import asgi_served, connections_to
from fake_anthropic import KEY, NEW, OLD, FakeAnthropic
from fake_model import FakeModel
from fake_openai import FakeOpenAI
from http_server import served

from radixlm import (
    Anthropic,
    OpenAI,
    RecordingBackend,
    ReplayBackend,
    RuntimeEndpoint,
    ScriptedBackend,
)
from radixlm.lang.testing import Answer
from radixlm.runtime.launch import Runtime
from radixlm.runtime.local import LocalBackend

Result = TypeVar("Result")
DIALECTS = ("vllm", "vllm-guided", "sglang", "llama.cpp", "openai")
NAMES = (
    "scripted", "in-process", "local", "http", "openai over http", *DIALECTS, "anthropic", "anthropic old", "recording", "replay",
)  # fmt: skip

ON_THE_MODEL = ("engine", "http engine")  # on the real model

_NO_LOGPROBS = {"logprobs", "prompt_logprobs"}
CANNOT: dict[str, set[str]] = {
    "scripted": set(),
    "in-process": set(),
    "local": set(),
    "http": set(),
    "openai over http": {*_NO_LOGPROBS, "prefix"},
    "vllm": {"prompt_logprobs"},
    "vllm-guided": {"prompt_logprobs"},
    "sglang": {*_NO_LOGPROBS, "lark"},
    "llama.cpp": {*_NO_LOGPROBS, "lark", "include_stop"},
    "openai": {*_NO_LOGPROBS, "lark", "gbnf", "include_stop", "prefix"},
    "anthropic": {*_NO_LOGPROBS, "lark", "gbnf", "seed", "prefix"},
    "anthropic old": {*_NO_LOGPROBS, "lark", "gbnf", "seed"},
    "recording": set(),
    "replay": set(),
    "engine": set(),
    "http engine": set(),
}
REMOTE = frozenset(NAMES[3:12])


@dataclass
class Subject:
    """One backend. `cannot` names what it refuses; `slow` is a context in which a prompt with SLOW is not answered for long."""

    name: str
    make: Callable[[], AbstractContextManager[Any]]
    slow: Callable[[Any], AbstractContextManager[Any]] = field(
        default=lambda backend: nullcontext()
    )
    folder: Path | None = None  # of recordings
    _num: int = 0

    @property
    def cannot(self) -> set[str]:
        return CANNOT[self.name]

    @property
    def is_remote(self) -> bool:
        return self.name in REMOTE

    def running(self) -> AbstractContextManager[Any]:
        return self.make()

    def check(self, work: Callable[[Any], Result]) -> Result:
        """What `work` makes of the backend. Of a replay: the same as of the run that was recorded."""
        with self.make() as backend:
            if self.name != "replay":
                return work(backend)
            assert self.folder is not None
            self._num += 1
            path = self.folder / f"{self._num}.jsonl"
            with RecordingBackend(backend, path) as recording:
                expected = work(recording)
            replay = ReplayBackend(path)
            assert work(replay) == expected
            assert replay.num_left == 0
            return expected


def subject_of(name: str, runtime: Runtime, folder: Path) -> Subject:
    """The backend called `name`; local ones run on `runtime`."""
    if name == "scripted":
        return Subject(name, lambda: nullcontext(scripted()), lambda backend: backend.paused())
    if name == "in-process":
        return Subject(name, in_process)
    if name in ("local", "replay"):
        return Subject(name, lambda: nullcontext(LocalBackend(runtime.client)), folder=folder)
    if name == "recording":
        return Subject(name, lambda: recording(runtime, folder / "recording.jsonl"))
    if name == "engine":
        return Subject(name, lambda: nullcontext(LocalBackend(runtime.client)))
    if name in ("http", "http engine"):
        return Subject(name, lambda: endpoint(runtime))
    if name == "openai over http":
        return Subject(name, lambda: openai_over_http(runtime))
    if name.startswith("anthropic"):
        return Subject(
            name, lambda: anthropic(FakeAnthropic(), NEW if name == "anthropic" else OLD)
        )
    return Subject(name, lambda: openai(FakeOpenAI(name)))


def scripted(model: FakeModel | None = None) -> ScriptedBackend:
    """ScriptedBackend with a FakeModel's answers."""
    writer = model or FakeModel()

    def answer(request: Any) -> Any:
        if request.choices:
            return max(request.choices, key=lambda c: sum(writer.score(request.prompt, c)))
        sampling = request.sampling
        outputs = [
            writer.write(
                request.prompt, constraint=request.message.constraint, max_tokens=sampling.max_tokens, stop=sampling.stop,
                temperature=sampling.temperature, seed=sampling.seed, index=index, include_stop=sampling.include_stop,
            )
            for index in range(sampling.n)
        ]  # fmt: skip
        answers = tuple(Answer(one.text, one.reason) for one in outputs)
        return answers if sampling.n > 1 else answers[0]

    return ScriptedBackend(default=answer)


@contextmanager
def in_process() -> Iterator[Any]:
    from toy_engine import InProcess, toy_core
    from toy_tokenizer import ToyTokenizer

    with InProcess(toy_core(), ToyTokenizer()) as backend:
        yield backend
    assert backend.num_open() == 0


@contextmanager
def recording(runtime: Runtime, path: Path) -> Iterator[Any]:
    with RecordingBackend(LocalBackend(runtime.client), path) as backend:
        yield backend


@contextmanager
def endpoint(runtime: Runtime, **options: Any) -> Iterator[RuntimeEndpoint]:
    with (
        served(runtime, **options) as server,
        watched(server.url, lambda: RuntimeEndpoint(server.url)) as backend,
    ):
        yield backend


@contextmanager
def openai_over_http(runtime: Runtime) -> Iterator[OpenAI]:
    with served(runtime) as server:
        url = server.url + "/v1"
        with watched(url, lambda: OpenAI("toy", base_url=url)) as backend:
            yield backend


@contextmanager
def openai(fake: FakeOpenAI, **options: Any) -> Iterator[OpenAI]:
    """The backend over a fake server. vLLM of old cannot be told from the new one by its models."""
    given = {"dialect": fake.dialect if fake.dialect == "vllm-guided" else "auto", **options}
    with asgi_served(fake.app) as url:
        own = f"{url}/v1"
        with watched(own, lambda: OpenAI("fake", base_url=own, **given)) as backend:
            yield backend


@contextmanager
def anthropic(fake: FakeAnthropic, model: str = NEW, **options: Any) -> Iterator[Anthropic]:
    with asgi_served(fake.app) as url:
        given = {"api_key": KEY, **options}
        with watched(url, lambda: Anthropic(model, base_url=url, **given)) as backend:
            yield backend


@contextmanager
def watched(url: str, make: Callable[[], Any]) -> Iterator[Any]:
    """A remote backend that must leave nothing: no branch, no thread, no connection."""
    backend = make()
    try:
        yield backend
        backend.wait_for(_nothing)  # what was sent before has been taken in
        assert backend.num_open_branches == 0
    finally:
        backend.close()
    assert backend._thread is None or not backend._thread.is_alive()
    assert connections_to(url) == 0


async def _nothing() -> None:
    return None
