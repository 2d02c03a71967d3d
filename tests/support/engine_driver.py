"""Drives an Engine over the fake runner: submit, step, collect answers; checks the stores after every step.

The byte vocabulary: 0 is EOS and 1 a special token (both spell nothing), 2 + b is the byte b, then a few longer tokens.
`ChoiceMatcher` is a grammar of a finite set of texts, small enough to be obviously right.
"""

from __future__ import annotations

import msgspec
import numpy as np
from fake_runner import FakeRunner

from radixlm.errors import GrammarError
from radixlm.runtime import messages as m
from radixlm.runtime.engine import Engine
from radixlm.runtime.scheduler_limits import SchedulerLimits
from radixlm.runtime.vocab_facts import VocabFacts

EOS = 0
LONGER = (
    b"xx",
    b"<e",
    b"nd>",
    b"<end>",
    b'{"',
    b'":',
    b"name",
    b"name_",
    b"12",
    b"true",
    "家".encode(),
    b"ab",
    b"abc",
)
TOKEN_BYTES: list[bytes | None] = [None, None, *(bytes((b,)) for b in range(256)), *LONGER]
VOCAB_SIZE = len(TOKEN_BYTES) + 3  # three padding columns, as real models have


def ids_of(text: bytes) -> tuple[int, ...]:
    """Greedy longest-match tokens of `text`."""
    ids, at = [], 0
    while at < len(text):
        width, token = max(
            (len(t), i) for i, t in enumerate(TOKEN_BYTES) if t and text.startswith(t, at)
        )
        ids.append(token)
        at += width
    return tuple(ids)


def text_of(token_ids) -> bytes:
    return b"".join(TOKEN_BYTES[i] or b"" for i in token_ids if i < len(TOKEN_BYTES))


class ChoiceMatcher:
    """The output is one of `options`. Every byte is a token here, so all of it can be spelled."""

    def __init__(self, options: tuple[bytes, ...]) -> None:
        self.options = options
        self.text = b""
        self.error: str | None = None
        self.num_advanced = 0

    def _rest(self, text: bytes) -> list[bytes]:
        return [option[len(text) :] for option in self.options if option.startswith(text)]

    def fill_mask(self, out, budget=None):
        out[:] = 0
        for token, data in enumerate(TOKEN_BYTES):
            if not data:
                continue
            rest = self._rest(self.text + data)
            if rest and (budget is None or min(map(len, rest)) <= budget - 1):
                out[token >> 5] |= np.uint32(1 << (token & 31))
        if self.is_accepting:
            out[EOS >> 5] |= np.uint32(1 << EOS)

    def advance(self, token_id):
        self.num_advanced += 1
        text = self.text + (TOKEN_BYTES[token_id] or b"\xff")
        if not self._rest(text):
            self.error = f"{text!r} begins no option"
            return False
        self.text = text
        return True

    @property
    def is_accepting(self):
        return b"" in self._rest(self.text)

    @property
    def is_complete(self):
        return self._rest(self.text) == [b""]

    def fork(self):
        twin = type(self)(self.options)
        twin.text = self.text
        twin.num_advanced = self.num_advanced
        return twin

    def forced_bytes(self, max_bytes=256):
        rest = self._rest(self.text)
        first, last = min(rest), max(rest)
        common = 0
        while common < min(len(first), len(last)) and first[common] == last[common]:
            common += 1
        data = first[:common]
        while data:
            try:
                data.decode()
            except UnicodeDecodeError:
                data = data[:-1]
            else:
                break
        return data

    def distance(self):
        return min(map(len, self._rest(self.text)))


def load_choices(data: bytes):
    """The program bytes of the fake grammar are its options, joined by NUL."""
    if data.startswith(b"damaged"):
        raise GrammarError("the program is damaged")
    options = tuple(data.split(b"\0"))
    return lambda: ChoiceMatcher(options)


def is_aborted(message: m.EngineOutbound) -> bool:
    """Is it the answer to a Cancel? One that came too late is answered so as well."""
    return isinstance(message, m.EngineFailed) and message.error.name == "Aborted"


class Driver:
    """One engine, its answers by request, and a step counter."""

    def __init__(
        self,
        *,
        num_pages: int = 256,
        page_size: int = 16,
        context_length: int = 4096,
        limits: SchedulerLimits | None = None,
        steer=None,
        load_grammar=load_choices,
        check: bool = True,
        debug: bool = False,
        make_runner=None,
    ) -> None:
        self.facts = VocabFacts(VOCAB_SIZE, context_length, (EOS,), TOKEN_BYTES)
        if make_runner is None:
            self.runner = FakeRunner(VOCAB_SIZE, num_pages, page_size, steer)
        else:
            self.runner = make_runner(num_pages, page_size)
        seeds = iter(range(1000, 10**9))
        self.engine = Engine(
            self.runner,
            self.facts,
            num_pages=num_pages,
            page_size=page_size,
            load_grammar=load_grammar,
            encode_forced=ids_of,
            limits=limits,
            new_seed=lambda: next(seeds),
            debug=debug,
        )
        self.answers: dict[str, m.Done | m.EngineFailed] = {}
        self.streams: dict[tuple[str, int], list[int]] = {}
        self.others: list[m.EngineOutbound] = []
        self.ended_at: dict[str, int] = {}
        self.num_steps = 0
        self._check = check

    def submit(
        self,
        name: str,
        prompt,
        *,
        program: str = "",
        namespace: str = "",
        stream=False,
        hints=None,
        **sampling,
    ):
        stop = tuple(sampling.get("stop", ()))
        self.engine.receive(
            m.Submit(
                request=name,
                token_ids=tuple(prompt),
                sampling=m.SamplingParams(**sampling),
                namespace=namespace,
                program=program,
                stop_bytes=tuple(s.encode() for s in stop),
                hints=hints or m.Hints(),
                stream=stream,
            )
        )

    def cancel(self, name: str) -> None:
        self.engine.receive(m.Cancel(name))

    def load(self, key: str, *options: bytes) -> None:
        self.engine.receive(m.LoadProgram(key, b"\0".join(options)))

    def query(self, what: str) -> m.EngineReply:
        self.engine.receive(m.EngineQuery("q", what))
        self.step()
        replies = [reply for reply in self.others if isinstance(reply, m.EngineReply)]
        return replies[-1]

    def step(self) -> None:
        outbox = self.engine.step()
        self.num_steps += 1
        for message in outbox:
            assert (
                m.engine_frame_decoder.decode(m.encode(message)) == message
            )  # everything crosses the wire
            if isinstance(message, m.Done | m.EngineFailed):
                if message.request in self.answers and is_aborted(message):
                    continue
                assert message.request not in self.answers, f"{message.request} was answered twice"
                self.answers[message.request] = message
                self.ended_at[message.request] = self.num_steps
            elif isinstance(message, m.Progress):
                assert message.request not in self.answers, "progress after the end"
                self.streams.setdefault((message.request, message.index), []).extend(
                    message.token_ids
                )
            else:
                self.others.append(message)
        if self._check:
            self.engine.check()

    def run(self, max_steps: int = 20_000) -> None:
        """Until nothing is left to do."""
        for _ in range(max_steps):
            if not self.engine.has_work:
                break
            self.step()
        else:
            raise AssertionError(
                f"still busy after {max_steps} steps: {self.engine.live_requests()}"
            )
        self.assert_balanced()

    def assert_balanced(self) -> None:
        """Idle: no page is in use, none is lost."""
        self.engine.check()
        cache = self.engine.cache
        assert cache.num_free + cache.num_evictable == cache.num_pages
        assert cache.num_leases == 0

    def done(self, name: str) -> m.Done:
        answer = self.answers[name]
        assert isinstance(answer, m.Done), answer
        return answer

    def failed(self, name: str) -> m.EngineFailed:
        answer = self.answers[name]
        assert isinstance(answer, m.EngineFailed), answer
        return answer

    def tokens(self, name: str, index: int = 0) -> tuple[int, ...]:
        return self.done(name).samples[index].token_ids

    def text(self, name: str, index: int = 0) -> bytes:
        """The kept text of a sample."""
        sample = self.done(name).samples[index]
        text = text_of(sample.token_ids)
        return text if sample.cut_byte < 0 else text[: sample.cut_byte]


def alone(
    prompt, *, options: tuple[bytes, ...] = (), driver=None, **sampling
) -> m.Done | m.EngineFailed:
    """The answer on a fresh idle engine."""
    fresh = Driver(**(driver or {}), check=False)
    if options:
        fresh.load("g", *options)
    fresh.submit("alone", prompt, program="g" if options else "", **sampling)
    fresh.run()
    return fresh.answers["alone"]


def without_seed(done):
    """An answer with the parts that may differ between runs blanked."""
    return msgspec.structs.replace(done, request="", seed=0, usage=m.Usage())
