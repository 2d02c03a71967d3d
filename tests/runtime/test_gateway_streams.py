"""The gateway without sockets: streamed text, and choices scored."""

from __future__ import annotations

from gateway_harness import GatewayHarness
from hypothesis import given, settings
from hypothesis import strategies as st

from radixlm.grammar.spec import Regex
from radixlm.runtime import messages as m
from radixlm.runtime.stop_strings import StopStrings


def generate(name: str = "r", branch: str | None = None, text: str = "", **fields) -> m.Generate:
    segments = (m.Text(text),) if text else ()
    return m.Generate(name, branch, segments, **fields)


# ------------------------------------------------------------------------------------------ streams


@settings(max_examples=100, deadline=None)
@given(
    st.text(alphabet="abné<enxyzd>", min_size=1, max_size=20),
    st.lists(st.integers(1, 4), max_size=10),
)
def test_streamed_text_is_the_text_and_never_shows_what_a_stop_string_takes_back(
    text: str, steps: list[int]
) -> None:
    h = GatewayHarness()
    stops = ("nxy", "<end>")
    h.tell(generate(text="go", stream=True, sampling=m.SamplingParams(stop=stops)))
    search, match = StopStrings([stop.encode() for stop in stops]), None
    streamed: list[
        int
    ] = []  # as the engine does it: the token that completes a stop string comes with the end
    ids: list[int] = []
    for token_id in h.ids(text):
        ids.append(token_id)
        match = search.push(h.tokenizer.token_bytes[token_id] or b"")
        if match is not None:
            break
        streamed.append(token_id)
    at = 0
    for step in [*steps, len(streamed)]:
        h.progress(h.submit, streamed[at : at + step])
        at += step
    ending = (
        {"reason": "stop", "matched_stop": match.stop, "cut_byte": match.start} if match else {}
    )
    h.finish(h.submit, ids, **ending)
    (finished,) = h.answers(m.Finished)
    deltas = h.answers(m.Delta)
    kept = text.encode()[: match.start].decode() if match else text
    assert "".join(delta.text for delta in deltas) == finished.outputs[0].text == kept
    assert [token_id for delta in deltas for token_id in delta.token_ids] == ids


def test_a_beginning_of_a_stop_string_is_withheld_until_it_is_decided() -> None:
    h = GatewayHarness()
    h.tell(generate(text="go", stream=True, sampling=m.SamplingParams(stop=("<end>",))))
    for piece in ("a<e", "n", "d", "x"):
        h.progress(h.submit, h.ids(piece))
    assert [d.text for d in h.answers(m.Delta)] == ["a", "", "", "<endx"]


def test_a_character_over_two_tokens_is_never_split_in_a_stream() -> None:
    h = GatewayHarness()
    h.tell(generate(text="go", stream=True))
    bytewise = [h.tokenizer.token_bytes.index(bytes((b,))) for b in "家".encode()]
    for token_id in bytewise:
        h.progress(h.submit, [token_id])
    assert [d.text for d in h.answers(m.Delta)] == ["", "", "家"]


# ------------------------------------------------------------------------------------------ score


def test_a_score_computes_each_choice_from_the_first_differing_position() -> None:
    h = GatewayHarness()
    h.tell(
        m.OpenBranch("b"),
        m.Append("b", (m.Text("wet? Answer:"),)),
        m.Score("s", "b", (" YES", " NO", "")),
    )
    yes, no = h.sent(m.Submit)
    start = len(h.ids("wet? Answer:"))
    assert h.prompt_text(yes) == "wet? Answer: YES"
    assert (yes.sampling.max_tokens, yes.sampling.prompt_logprobs_start) == (0, start)
    for submit, value in ((no, -2.0), (yes, -1.0)):
        logprobs = (*[None] * start, *(m.TokenLogprob(i, value) for i in submit.token_ids[start:]))
        h.gateway.on_engine(m.Done(submit.request, (), m.Usage(9, 5), 0, logprobs))
    (scored,) = h.answers(m.Scored)
    assert scored.token_ids == (yes.token_ids[start:], no.token_ids[start:], ())
    assert scored.logprobs == (
        (-1.0,) * len(scored.token_ids[0]),
        (-2.0,) * len(scored.token_ids[1]),
        (),
    )
    assert scored.usage.cached_tokens == 10
    h.tell(generate("r", "b", " YES"))
    assert h.submit.token_ids == yes.token_ids


def test_what_choices_have_in_common_is_scored_once() -> None:
    h = GatewayHarness()
    choices = ("xab", "xay", "x", "xab", "z")
    h.tell(m.OpenBranch("b"), m.Append("b", (m.Text("go "),)), m.Score("s", "b", choices))
    ids = [tuple(h.ids(f"go {choice}")) for choice in choices]
    start = len(h.ids("go "))
    parts = h.sent(m.Submit)
    assert [part.token_ids for part in parts] == [ids[0], ids[1], ids[4]], "a beginning needs none"
    assert ids[0][start] == ids[1][start] == ids[2][start]
    starts = [part.sampling.prompt_logprobs_start for part in parts]
    assert starts == [start, start + 1, start]
    for value, part in zip((-1.0, -2.0, -3.0), parts, strict=True):
        first = part.sampling.prompt_logprobs_start
        scores = [m.TokenLogprob(i, value - 0.01 * at) for at, i in enumerate(part.token_ids)]
        logprobs = (*[None] * first, *scores[first:])
        h.gateway.on_engine(m.Done(part.request, (), m.Usage(9, 5), 0, logprobs))
    (scored,) = h.answers(m.Scored)
    assert scored.token_ids == tuple(each[start:] for each in ids)
    first_token = -1.0 - 0.01 * start
    assert scored.logprobs[1][0] == scored.logprobs[2][0] == scored.logprobs[0][0] == first_token
    assert scored.logprobs[1][1:] == (-2.0 - 0.01 * (start + 1), -2.0 - 0.01 * (start + 2))
    assert scored.logprobs[2] == (first_token,)
    assert scored.logprobs[3] == scored.logprobs[0]
    assert scored.logprobs[4] == (-3.0 - 0.01 * start,)


def test_a_score_without_context_or_choices_is_refused() -> None:
    h = GatewayHarness()
    h.tell(m.Score("s1", None, ("a", "b")), m.Score("s2", None, (), (m.Text("x"),)))
    assert [(f.request, f.error.name) for f in h.answers(m.Failed)] == [
        ("s1", "PromptError"),
        ("s2", "ProgramError"),
    ]


def test_one_failed_choice_fails_the_score_once_and_cancels_the_others() -> None:
    h = GatewayHarness()
    h.tell(m.Score("s", None, (" a", " b"), (m.Text("x"),)))
    first, second = h.sent(m.Submit)
    h.gateway.on_engine(m.EngineFailed(first.request, m.WireError("ServiceError", "no")))
    h.gateway.on_engine(m.Done(second.request, (), m.Usage(), 0, ()))
    assert len(h.answers(m.Failed)) == 1
    assert h.sent(m.Cancel) == [m.Cancel(second.request)]
    assert not h.answers(m.Scored)


# ------------------------------------------------------------------------------------------ acceptance


def test_a_stream_is_accepted_once_when_its_constraint_is_compiled_and_before_its_text() -> None:
    h = GatewayHarness()
    h.tell(generate(text="go", stream=True, constraint=Regex("a+")))
    assert h.answers(m.Accepted) == []  # the worker still thinks
    (job,) = h.jobs
    h.gateway.on_worker(m.Refused(job.program, m.WireError("GrammarError", "no")))
    assert h.answers(m.Accepted) == []
    assert len(h.answers(m.Failed)) == 1

    h.tell(generate("s", text="go", stream=True))
    assert h.answers(m.Accepted) == [m.Accepted("s")]
    h.progress(h.submit, h.ids("ab"))
    assert [type(answer) for answer in h.answers(object)][-2:] == [m.Accepted, m.Delta]

    h.tell(generate("w", text="go"))  # nobody waits for the first word of a whole answer
    assert h.answers(m.Accepted) == [m.Accepted("s")]
