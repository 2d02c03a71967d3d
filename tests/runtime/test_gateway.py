"""The gateway without sockets: order on a branch, answers exactly once, grammars before the engine, streams, aborts, lost peers."""

from __future__ import annotations

from gateway_harness import GatewayHarness, eos_after
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_tokenizer import END, EOS

from radixlm.grammar.spec import Choice, Regex, spec_key
from radixlm.runtime import messages as m
from radixlm.runtime.stop_strings import StopStrings


def generate(name: str = "r", branch: str | None = None, text: str = "", **fields) -> m.Generate:
    segments = (m.Text(text),) if text else ()
    return m.Generate(name, branch, segments, **fields)


def test_an_anonymous_generate_is_tokenized_run_and_answered() -> None:
    h = GatewayHarness()
    h.tell(generate(text="say ban", sampling=m.SamplingParams(max_tokens=4, stop=("x",))))
    assert h.submit.token_ids == h.ids("say ban")
    assert h.submit.stop_bytes == (b"x",)
    h.finish(h.submit, "ana")
    (finished,) = h.answers(m.Finished)
    assert finished.outputs[0].text == "ana"
    assert finished.seed == 7
    assert h.gateway.counters()["gateway_requests"] == 0


def test_what_follows_a_running_generate_waits_for_it() -> None:
    h = GatewayHarness()
    h.tell(
        m.OpenBranch("b"),
        m.Append("b", (m.Text("one"),)),
        generate("r1", "b"),
        m.Append("b", (m.Text(" two"),)),
        m.Fork("b", ("b.0", "b.1")),
        generate("r2", "b"),
        generate("f0", "b.0", " left"),
        generate("f1", "b.1", " right"),
        m.CloseBranch("b"),
    )
    assert [s.request for s in h.sent(m.Submit)] == ["1.1/r1"]
    h.finish(h.submit, eos_after(h.ids("ban")), reason="stop", matched_stop=EOS)
    texts = {s.request: h.prompt_text(s) for s in h.sent(m.Submit)}
    assert texts == {
        "1.1/r1": "one",
        "1.2/r2": "oneban two",
        "1.3/f0": "oneban two left",
        "1.4/f1": "oneban two right",
    }
    assert h.answers(m.Finished)[0].outputs[0].token_ids[-1] == EOS
    assert h.gateway.counters()["gateway_branches"] == 2


def test_the_stop_token_leaves_the_branch_and_the_role_end_is_not_doubled() -> None:
    h = GatewayHarness()
    h.tell(m.OpenBranch("b"), m.Append("b", (m.RoleBegin("assistant"),)), generate("r1", "b"))
    h.finish(h.submit, [*h.ids("ban"), END], reason="stop")
    h.tell(m.Append("b", (m.RoleEnd("assistant"),)), generate("r2", "b"))
    assert list(h.submit.token_ids).count(END) == 1
    assert h.answers(m.Finished)[0].outputs[0].text == "ban"


def test_a_stop_string_cuts_text_and_branch() -> None:
    h = GatewayHarness()
    h.tell(
        m.OpenBranch("b"),
        m.Append("b", (m.Text("go"),)),
        generate("r1", "b", sampling=m.SamplingParams(stop=("yz",))),
    )
    ids = h.ids("an") + h.ids("xyz")
    h.finish(h.submit, ids, reason="stop", matched_stop=b"yz", cut_byte=3)
    (output,) = h.answers(m.Finished)[0].outputs
    assert (output.text, output.token_ids, output.matched_stop) == ("anx", ids, "yz")
    h.tell(generate("r2", "b", "ab"))
    assert h.submit.token_ids == h.ids("go") + h.ids("an") + h.ids("xab")


def test_a_branch_continues_with_the_first_of_n_samples() -> None:
    h = GatewayHarness()
    h.tell(m.OpenBranch("b"), generate("r1", "b", "go", sampling=m.SamplingParams(n=2)))
    h.finish(h.submit, "an", "ing")
    h.tell(generate("r2", "b", " on"))
    assert h.prompt_text(h.submit) == "goan on"
    assert [o.text for o in h.answers(m.Finished)[0].outputs] == ["an", "ing"]


# ------------------------------------------------------------------------------------------ failures


def test_a_failed_request_breaks_its_branch_and_its_forks_but_no_other() -> None:
    h = GatewayHarness()
    h.tell(
        m.OpenBranch("b"),
        m.OpenBranch("c"),
        generate("r1", "b", "x", sampling=m.SamplingParams(top_p=2.0)),
    )
    h.tell(
        m.Fork("b", ("b.0",)),
        generate("r2", "b"),
        generate("r3", "b.0"),
        generate("r4", "c", "fine"),
    )
    failed = {f.request: f.error for f in h.answers(m.Failed)}
    assert set(failed) == {"r1", "r2", "r3"}
    assert failed["r1"].name == "SamplingError"
    assert failed["r1"].place == "top_p"
    assert failed["r2"] == failed["r3"] == failed["r1"]
    assert h.sent(m.Submit)[-1].request == "1.4/r4"


def test_an_append_that_cannot_be_answered_fails_the_next_request() -> None:
    h = GatewayHarness()
    h.tell(m.OpenBranch("b"), m.Append("b", (m.Chat(({"role": "user"},)),)), generate("r1", "b"))
    (failed,) = h.answers(m.Failed)
    assert failed.error.message == "a message has no content"


def test_unknown_and_double_names_are_errors_with_a_reason() -> None:
    h = GatewayHarness()
    h.tell(
        generate("r1", "nowhere"),
        m.Append("nowhere", (m.Text("x"),)),
        m.CloseBranch("nowhere"),
        m.Abort("nothing"),
    )
    h.tell(m.Fork("nowhere", ("n.0",)), generate("r2", "n.0"))
    assert [f.request for f in h.answers(m.Failed)] == ["r1", "r2"]
    h.tell(generate("r3", text="x"), generate("r3", text="y"))
    assert len(h.answers(m.Failed)) == 2  # the second r3 must not end the first
    h.finish(h.submit, "an")
    assert len(h.answers(m.Finished)) == 1
    h.tell(generate("r3", text="z"))
    assert h.prompt_text(h.submit) == "z"


def test_an_empty_prompt_is_answered() -> None:
    h = GatewayHarness()
    h.tell(generate())
    assert h.answers(m.Failed)[0].error.name == "PromptError"


def test_an_engine_error_reaches_the_client_with_the_text_so_far() -> None:
    h = GatewayHarness()
    h.tell(generate(text="x"))
    h.gateway.on_engine(
        m.EngineFailed(h.submit.request, m.WireError("ServiceError", "no page"), h.ids("ban"))
    )
    (failed,) = h.answers(m.Failed)
    assert (failed.error.message, failed.partial) == ("no page", "ban")


def test_a_full_gateway_says_so() -> None:
    h = GatewayHarness(max_live_requests=2)
    h.tell(generate("a", text="x"), generate("b", text="x"), generate("c", text="x"))
    assert [(f.request, f.error.name) for f in h.answers(m.Failed)] == [("c", "Overloaded")]


def test_bytes_that_are_no_message_are_answered_when_they_name_a_request() -> None:
    h = GatewayHarness()
    h.gateway.on_malformed(b"c1", b"\xc1", ValueError("x"))
    h.gateway.on_malformed(b"c1", m.encode(m.Tokenized("q", (1,))), ValueError("not for me"))
    assert h.gateway.num_malformed == 2
    assert [f.request for f in h.answers(m.Failed)] == ["q"]


# ------------------------------------------------------------------------------------------ grammars


def test_equal_grammars_are_compiled_once_and_loaded_once() -> None:
    h = GatewayHarness()
    spec = Regex("a+")
    h.tell(*(generate(f"r{i}", text="x", constraint=spec) for i in range(3)))
    assert len(h.jobs) == 1
    assert not h.sent(m.Submit)
    h.gateway.on_worker(m.Compiled(spec_key(spec), b"program"))
    h.tell(generate("r9", text="x", constraint=spec))
    assert [type(message) for message in h.to_engine] == [m.LoadProgram, *[m.Submit] * 4]
    assert {s.program for s in h.sent(m.Submit)} == {spec_key(spec)}


def test_a_refused_grammar_is_answered_before_the_engine_sees_it_and_remembered() -> None:
    h = GatewayHarness()
    spec = Regex("(")
    error = m.WireError("GrammarError", "unbalanced", "1")
    h.tell(generate("r1", text="x", constraint=spec))
    h.gateway.on_worker(m.Refused(spec_key(spec), error))
    h.tell(generate("r2", text="x", constraint=spec))
    assert [f.error for f in h.answers(m.Failed)] == [error, error]
    assert len(h.jobs) == 1
    assert not h.to_engine


def test_a_service_failure_of_the_worker_is_not_remembered() -> None:
    h = GatewayHarness()
    spec = Regex("a")
    h.tell(generate("r1", text="x", constraint=spec))
    h.gateway.on_worker(m.Refused(spec_key(spec), m.WireError("ServiceError", "worker died")))
    h.tell(generate("r2", text="x", constraint=spec))
    assert len(h.jobs) == 2


def test_a_program_that_the_engine_dropped_is_given_again_even_after_it_left_the_store() -> None:
    h = GatewayHarness(program_cache_bytes=10)
    first, second = Regex("a"), Choice(("b",))
    h.tell(generate("r1", text="x", constraint=first))
    h.gateway.on_worker(m.Compiled(spec_key(first), b"12345678"))
    h.gateway.on_engine(m.NeedProgram(spec_key(first)))
    assert len(h.sent(m.LoadProgram)) == 2
    h.tell(generate("r2", text="x", constraint=second))
    h.gateway.on_worker(m.Compiled(spec_key(second), b"12345678"))
    h.gateway.on_engine(m.NeedProgram(spec_key(first)))
    assert [job.spec for job in h.jobs] == [first, second, first]
    h.gateway.on_worker(m.Compiled(spec_key(first), b"12345678"))
    assert h.sent(m.LoadProgram)[-1].program == spec_key(first)


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


# ------------------------------------------------------------------------------------------ abort, leases, engine death


def test_abort_goes_by_the_exact_name_and_ends_with_the_engines_word() -> None:
    h = GatewayHarness()
    h.tell(generate("1", text="x"), generate("10", text="x"), m.Abort("1"))
    assert h.sent(m.Cancel) == [m.Cancel("1.1/1")]
    h.gateway.on_engine(m.EngineFailed("1.1/1", m.WireError("Aborted", "cancelled"), h.ids("an")))
    assert [(f.request, f.error.name, f.partial) for f in h.answers(m.Failed)] == [
        ("1", "Aborted", "an")
    ]


def test_an_abort_of_what_waits_or_compiles_is_answered_at_once() -> None:
    h = GatewayHarness()
    h.tell(
        m.OpenBranch("b"),
        generate("r1", "b", "x"),
        generate("r2", "b"),
        generate("r3", "b"),
        m.Abort("r2"),
    )
    h.finish(h.submit, "an")
    assert [f.request for f in h.answers(m.Failed)] == ["r2", "r3"]  # r3 stood behind it
    h.tell(generate("g", text="x", constraint=Regex("a")), m.Abort("g"))
    h.gateway.on_worker(m.Compiled(spec_key(Regex("a")), b"p"))
    assert h.answers(m.Failed)[-1].request == "g"
    assert len(h.sent(m.Submit)) == 1


def test_a_silent_client_loses_everything_and_an_active_one_nothing() -> None:
    h = GatewayHarness()
    h.tell(m.Hello("c1"), m.OpenBranch("b"), generate("r1", "b", "x"))
    h.tell(m.Hello("c2"), generate("r1", text="y"), client=b"c2")
    h.now_s += 4
    h.tell(m.Hello("c2"), client=b"c2")
    h.now_s += 2
    assert h.gateway.expire() == [b"c1"]
    assert h.sent(m.Cancel) == [m.Cancel("1.1/r1")]
    assert h.gateway.counters()["gateway_branches"] == 0
    h.finish(h.sent(m.Submit)[0], "late")
    assert h.answers(m.Failed)[0].error.name == "Aborted"
    h.tell(generate("r2", "b"))
    assert "lease" in h.answers(m.Failed)[-1].error.hint
    h.finish(h.sent(m.Submit)[1], "an")
    assert len(h.answers(m.Finished, b"c2")) == 1


def test_a_dead_engine_fails_its_requests_and_the_branches_survive() -> None:
    h = GatewayHarness()
    h.tell(
        m.OpenBranch("b"),
        m.Append("b", (m.Text("one"),)),
        generate("r1", "b"),
        m.OpenBranch("c"),
        m.Append("c", (m.Text("two"),)),
    )
    h.tell(m.StatsRequest("q"))
    h.gateway.on_engine_died("the engine process 5 ended")
    assert [(f.request, f.error.name) for f in h.answers(m.Failed)] == [
        ("r1", "EngineDied"),
        ("q", "EngineDied"),
    ]
    h.tell(generate("r2", "c"), generate("gone", text="x"), m.Abort("gone"))
    assert h.answers(m.Failed)[-1].request == "gone"
    count = len(h.to_engine)
    h.engine_ready(epoch=1)
    assert [s.request for s in h.to_engine[count:]] == ["1.2/r2"]
    h.finish(h.submit, "an")
    assert h.answers(m.Finished)[0].request == "r2"


def test_a_new_engine_gets_the_programs_again() -> None:
    h = GatewayHarness()
    h.tell(generate("r1", text="x", constraint=Regex("a")))
    h.gateway.on_worker(m.Compiled(spec_key(Regex("a")), b"p"))
    h.engine_ready(epoch=1)  # replaced before its death was noticed
    assert h.answers(m.Failed)[0].error.name == "EngineDied"
    h.tell(generate("r2", text="x", constraint=Regex("a")))
    assert [type(message) for message in h.to_engine[-2:]] == [m.LoadProgram, m.Submit]


def test_hello_is_answered_when_the_engine_is_ready_and_says_its_epoch() -> None:
    h = GatewayHarness(is_ready=False)
    h.tell(m.Hello("c1"))
    assert not h.answers(m.Ready)
    h.engine_ready(epoch=3)
    assert [r.engine_epoch for r in h.answers(m.Ready)] == [3]
    h.tell(m.Hello("c1"))
    assert len(h.answers(m.Ready)) == 2


def test_stats_flush_and_tokenize_are_answered() -> None:
    h = GatewayHarness()
    h.tell(
        m.StatsRequest("q1"),
        m.FlushCache("q2"),
        m.FlushCache("q3"),
        m.Tokenize("q4", (m.Text("ban"),)),
    )
    stats, flush, refused = h.sent(m.EngineQuery)
    assert (stats.what, flush.what) == ("stats", "flush")
    h.gateway.on_engine(m.EngineReply(stats.request, {"pages": 4}))
    h.gateway.on_engine(m.EngineReply(flush.request))
    h.gateway.on_engine(m.EngineReply(refused.request, error=m.WireError("ServiceError", "busy")))
    assert h.answers(m.StatsReply)[0].counters["pages"] == 4
    assert h.answers(m.StatsReply)[0].counters["gateway_clients"] == 1
    assert h.answers(m.Flushed)[0].request == "q2"
    assert h.answers(m.Failed)[0].request == "q3"
    assert h.answers(m.Tokenized)[0].token_ids == h.ids("ban")


def test_a_defect_in_one_request_leaves_the_others_alone() -> None:
    h = GatewayHarness()
    h.tell(generate("r1", text="x"), generate("r2", text="y"))
    first, second = h.sent(m.Submit)
    h.gateway.on_engine(m.Done(first.request, (), m.Usage(), 0))  # no sample at all
    h.finish(second, "an")
    assert h.answers(m.Failed)[0].request == "r1"
    assert h.answers(m.Finished)[0].request == "r2"


def test_every_sample_of_n_is_remembered_for_a_history_sent_back() -> None:
    h = GatewayHarness()
    h.tell(generate("r1", text="say ", sampling=m.SamplingParams(n=2)))
    oddly = [h.ids("b") + h.ids("an"), h.ids("t") + h.ids("h") + h.ids("e")]
    h.finish(h.submit, *oddly)
    for number, text in enumerate(("say ban", "say the")):
        h.tell(generate(f"back{number}", text=text + " on"))
        assert h.submit.token_ids == h.ids("say ") + oddly[number] + h.ids(" on")
    assert h.gateway.counters()["text_memory_hits"] == 2
