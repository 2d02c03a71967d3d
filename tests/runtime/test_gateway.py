"""The gateway without sockets: order on a branch, answers exactly once, grammars before the engine, streams, aborts, lost peers."""

from __future__ import annotations

from gateway_harness import GatewayHarness, eos_after
from toy_tokenizer import END, EOS

from radixlm.grammar.spec import Choice, Regex, spec_key
from radixlm.runtime import messages as m


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


def test_the_vocabulary_is_told_with_its_special_tokens_apart() -> None:
    h = GatewayHarness()
    h.tell(m.VocabularyRequest("v"))
    (vocabulary,) = h.answers(m.Vocabulary)
    assert vocabulary.token_bytes == tuple(data or b"" for data in h.tokenizer.token_bytes)
    assert vocabulary.special_tokens[EOS] == "<eos>"


def test_the_wait_in_the_engine_s_queue_reaches_the_client() -> None:
    h = GatewayHarness()
    h.tell(generate(text="say ban"))
    sample = m.Sample(h.ids("ana"), "length")
    h.gateway.on_engine(m.Done(h.submit.request, (sample,), m.Usage(), 7, queue_s=0.25))
    assert h.answers(m.Finished)[0].queue_s == 0.25
