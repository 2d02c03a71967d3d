"""Names of requests at the gateway: one word on a request never reaches another."""

from __future__ import annotations

from gateway_harness import GatewayHarness

from radixlm.runtime import messages as m


def test_names_with_slashes_and_names_used_again_never_meet() -> None:
    h = GatewayHarness()
    h.tell(m.Generate("a/0", None, (m.Text("x"),)))
    h.tell(m.Score("a", None, ("ban", "x"), (m.Text("go "),)))
    names = [submit.request for submit in h.sent(m.Submit)]
    assert len(names) == len(set(names)) == 3
    h.finish(h.sent(m.Submit)[0], "an")
    h.tell(m.Generate("a/0", None, (m.Text("y"),)))
    h.gateway.on_engine(m.EngineFailed(names[0], m.WireError("Aborted", "too late")))
    assert not h.answers(m.Failed)
    h.finish(h.submit, "an")
    assert [finished.request for finished in h.answers(m.Finished)] == ["a/0", "a/0"]


def test_a_second_request_of_a_live_name_does_not_end_the_first() -> None:
    h = GatewayHarness()
    h.tell(m.Generate("r", None, (m.Text("x"),)), m.Generate("r", None, (m.Text("y"),)))
    h.finish(h.submit, "an")
    assert [type(answer) for _, answer in h.to_client] == [m.Finished]
