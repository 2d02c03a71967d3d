"""The gateway without sockets: aborts, leases, an engine that dies, and what is counted and remembered."""

from __future__ import annotations

from gateway_harness import GatewayHarness

from radixlm.grammar.spec import Regex, spec_key
from radixlm.runtime import messages as m


def generate(name: str = "r", branch: str | None = None, text: str = "", **fields) -> m.Generate:
    segments = (m.Text(text),) if text else ()
    return m.Generate(name, branch, segments, **fields)


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


def test_what_cannot_fit_is_refused_also_while_the_engine_is_replaced() -> None:
    h = GatewayHarness()
    h.gateway.on_engine_died("gone")
    h.tell(generate("r", text="b c " * 100_000))
    assert [f.error.name for f in h.answers(m.Failed)] == ["ContextOverflow"]
