"""Processes live and die as promised, around a toy model: readiness, restarts, clear errors, nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from process_checks import descendants, has_mapped, is_running, wait_until
from toy_processes import toy_command

from radixlm.errors import EngineDied, ModelError, ProgramError, RadixError, ServiceError
from radixlm.runtime import messages as m
from radixlm.runtime.config import EngineConfig
from radixlm.runtime.launch import Runtime
from radixlm.runtime.transport import Addresses, Transport

WAIT_S = 60.0
SUPPORT = str(Path(__file__).resolve().parent.parent / "support")


def start(model: str = "toy-slow", **options) -> Runtime:
    return Runtime(EngineConfig.create(model=model, threads=1, **options), toy_command)


def ask(runtime: Runtime, text: str = "say the thing", max_tokens: int = 4, **fields) -> m.Finished:
    message = m.Generate(
        runtime.client.new_id("r"),
        None,
        (m.Text(text),),
        m.SamplingParams(max_tokens=max_tokens),
        **fields,
    )
    return runtime.client.request(message).result(WAIT_S)


def stats(runtime: Runtime) -> dict[str, float]:
    return (
        runtime.client.request(m.StatsRequest(runtime.client.new_id("s"))).result(WAIT_S).counters
    )


def stream_long(runtime: Runtime, max_tokens: int = 3000):
    """A running stream: its future, its deltas, after the first delta."""
    deltas: list[m.Delta] = []
    first = threading.Event()

    def on_delta(delta: m.Delta) -> None:
        deltas.append(delta)
        first.set()

    sampling = m.SamplingParams(max_tokens=max_tokens)
    message = m.Generate(
        runtime.client.new_id("r"), None, (m.Text("tell the long tale"),), sampling, stream=True
    )
    future = runtime.client.request(message, on_delta)
    assert first.wait(WAIT_S)
    return future, deltas


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    runtime = start(lease_s=1.0, heartbeat_s=0.2)
    yield runtime
    runtime.close()


# ------------------------------------------------------------------------------------------ serving


def test_requests_run_through_all_processes_and_hit_the_cache(runtime: Runtime) -> None:
    first = ask(runtime, "one two three four five six seven")
    again = ask(runtime, "one two three four five six seven")
    assert again.outputs == first.outputs
    assert again.usage.cached_tokens >= again.usage.prompt_tokens - 1
    assert stats(runtime)["gateway_clients"] == 1


def test_streamed_text_is_the_text(runtime: Runtime) -> None:
    deltas: list[m.Delta] = []
    message = m.Generate(
        "stream", None, (m.Text("go"),), m.SamplingParams(max_tokens=12), stream=True
    )
    finished = runtime.client.request(message, deltas.append).result(WAIT_S)
    assert "".join(delta.text for delta in deltas) == finished.outputs[0].text
    assert len(deltas) > 3


def test_a_cancelled_future_frees_the_request(runtime: Runtime) -> None:
    future, _ = stream_long(runtime)
    future.cancel()
    wait_until(lambda: stats(runtime)["running"] == 0, what="an engine without work")
    assert stats(runtime)["gateway_requests"] == 0


def test_an_error_in_a_stream_callback_is_the_answer_of_its_own_request(runtime: Runtime) -> None:
    def refuse(delta: m.Delta) -> None:
        raise KeyError("mine")

    message = m.Generate(
        "bad-callback", None, (m.Text("go"),), m.SamplingParams(max_tokens=500), stream=True
    )
    with pytest.raises(KeyError, match="mine"):
        runtime.client.request(message, refuse).result(WAIT_S)
    assert ask(runtime).outputs


def test_malformed_bytes_on_every_socket_change_nothing(runtime: Runtime) -> None:
    addresses = Addresses.within(runtime._folder)
    transport = Transport(1 << 20)
    intruder = transport.dealer(addresses.clients, b"intruder")
    for data in (
        b"",
        b"\xc1",
        b"\x81\xa4type\xa3foo",
        os.urandom(1000),
        m.encode(m.Tokenized("q", ())),
    ):
        intruder.send(data)
    intruder.send_multipart([b"a", b"b", b"c"])
    assert intruder.poll(int(WAIT_S * 1000))
    assert isinstance(m.gateway_frame_decoder.decode(intruder.recv()), m.Failed)
    liar = transport.push(addresses.from_engine, bind=False)
    liar.send(b"\xc1")
    liar.send(m.encode(m.Done("nobody", (), m.Usage(), 0)))
    assert ask(runtime).outputs
    assert stats(runtime)["gateway_malformed_messages"] >= 6
    transport.close()


def test_a_silent_client_loses_its_branches_when_its_lease_is_over(runtime: Runtime) -> None:
    transport = Transport(1 << 20)
    silent = transport.dealer(Addresses.within(runtime._folder).clients, b"silent")
    sampling = m.SamplingParams(max_tokens=3000)
    for message in (
        m.Hello("silent"),
        m.OpenBranch("b"),
        m.Generate("long", "b", (m.Text("x"),), sampling, stream=True),
    ):
        silent.send(m.encode(message))
    wait_until(lambda: stats(runtime)["running"] == 1, what="the silent client's request")
    wait_until(lambda: stats(runtime)["running"] == 0, what="the end of the lease")
    assert stats(runtime)["gateway_branches"] == 0
    transport.close()


def test_a_killed_client_is_noticed_long_before_its_lease() -> None:
    runtime = start(lease_s=600.0)
    script = """
        import os, sys, time
        from radixlm.runtime import messages as m
        from radixlm.runtime.transport import Addresses, Transport
        socket = Transport(1 << 20).dealer(Addresses.within(sys.argv[1]).clients, b"mortal")
        long = m.Generate("long", "b", (m.Text("x"),), m.SamplingParams(max_tokens=3000), stream=True)
        for message in (m.Hello("mortal", os.getpid()), m.OpenBranch("b"), long):
            socket.send(m.encode(message))
        time.sleep(600)
    """
    mortal = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script), str(runtime._folder)])
    try:
        wait_until(lambda: stats(runtime)["running"] == 1, WAIT_S, "the client's request")
        mortal.kill()
        wait_until(lambda: stats(runtime)["running"] == 0, 20, "the end of a dead client's request")
        counters = stats(runtime)
        assert counters["gateway_branches"] == 0
        assert counters["gateway_clients"] == 1
        assert counters["locked_pages"] == 0
    finally:
        mortal.kill()
        mortal.wait()
        runtime.close()


# ------------------------------------------------------------------------------------------ deaths


def test_a_killed_engine_fails_its_requests_and_is_restarted() -> None:
    runtime = start()
    client = runtime.client
    client.send(m.OpenBranch("kept"))
    client.send(m.Append("kept", (m.Text("one two"),)))
    future, _ = stream_long(runtime)
    old = runtime.pids()
    os.kill(old["engine"], signal.SIGKILL)
    with pytest.raises(
        EngineDied, match=f"engine process {old['engine']} ended while the request was pending"
    ):
        future.result(WAIT_S)
    kept = m.Generate("kept-on", "kept", sampling=m.SamplingParams(max_tokens=3))
    assert (
        client.request(kept).result(WAIT_S).usage.prompt_tokens > 0
    )  # the gateway holds the branch
    new = runtime.pids()
    assert new["engine"] != old["engine"]
    assert new["gateway"] == old["gateway"]
    wait_until(lambda: client.facts.engine_epoch == 1, what="the new epoch")
    runtime.close()


def test_a_killed_gateway_fails_its_requests_and_both_are_restarted() -> None:
    runtime = start()
    runtime.client.send(m.OpenBranch("lost"))
    future, _ = stream_long(runtime)
    os.kill(runtime.pids()["gateway"], signal.SIGKILL)
    with pytest.raises(EngineDied, match=r"gateway process .* was killed by signal 9"):
        future.result(WAIT_S)
    assert ask(runtime).outputs
    with pytest.raises(ProgramError, match="no branch 'lost'"):
        runtime.client.request(m.Generate("r", "lost", (m.Text("x"),))).result(WAIT_S)
    runtime.close()


def test_an_engine_that_keeps_dying_is_given_up() -> None:
    runtime = start(max_restarts=1)
    for _ in range(2):
        future, _ = stream_long(runtime)
        os.kill(runtime.pids()["engine"], signal.SIGKILL)
        with pytest.raises(EngineDied):
            future.result(WAIT_S)
    wait_until(lambda: not runtime.pids(), what="the end of all children")
    with pytest.raises(EngineDied, match="not restarted any more"):
        ask(runtime)
    with pytest.raises(EngineDied):
        runtime.client.send(m.OpenBranch("b"))
    runtime.close()


def test_without_restarts_every_later_call_says_why() -> None:
    runtime = start(on_engine_death="fail")
    os.kill(runtime.pids()["engine"], signal.SIGKILL)
    wait_until(lambda: not runtime.pids(), what="the end of all children")
    with pytest.raises(
        EngineDied, match=r"engine process \(pid \d+\) was killed by signal 9 \(SIGKILL\)"
    ):
        ask(runtime)
    runtime.close()


PARENT = """
    import sys, time
    sys.path.insert(0, sys.argv[1])
    from toy_processes import toy_command
    from radixlm.runtime.config import EngineConfig
    from radixlm.runtime.launch import Runtime
    runtime = Runtime(EngineConfig.create(model="toy", threads=1, on_engine_death=sys.argv[2]), toy_command)
    print(*runtime.pids().values(), flush=True)
    time.sleep(600)
"""


def start_parent(policy: str) -> tuple[subprocess.Popen[str], list[int]]:
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PARENT), SUPPORT, policy],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(pids) == 2, parent.communicate()
    wait_until(
        lambda: len(descendants(parent.pid)) == 3, WAIT_S, "gateway, engine and compile worker"
    )
    return parent, descendants(parent.pid)


def test_children_end_within_five_seconds_of_their_parents_kill() -> None:
    parent, pids = start_parent("restart")
    parent.kill()
    wait_until(lambda: not any(map(is_running, pids)), 5.0, "the end of all children")
    parent.communicate()


def test_the_parent_exits_with_status_70_when_configured() -> None:
    parent, pids = start_parent("exit")
    engine = next(
        pid for pid in pids if "engine" in Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    )
    os.kill(engine, signal.SIGKILL)
    _, stderr = parent.communicate(timeout=WAIT_S)
    assert parent.returncode == 70
    assert "was killed by signal 9" in stderr
    wait_until(lambda: not any(map(is_running, pids)), 5.0, "the end of all children")


@pytest.mark.parametrize(
    ("model", "kind", "words"),
    [
        ("toy-broken", EngineDied, "the toy broke at its start"),
        ("toy-refused", ModelError, "Get another toy"),
    ],
)
def test_a_child_that_cannot_start_says_why_in_the_error(
    model: str, kind: type[RadixError], words: str
) -> None:
    before = descendants(os.getpid())
    with pytest.raises(kind, match=words):
        start(model)
    assert set(descendants(os.getpid())) <= set(before)


# ------------------------------------------------------------------------------------------ closing


def test_close_fails_what_is_pending_and_leaves_no_process_and_no_file() -> None:
    before = set(descendants(os.getpid()))
    runtime = start()
    assert stat.S_IMODE(runtime._folder.stat().st_mode) == 0o700
    future, _ = stream_long(runtime)
    wait_until(lambda: len(set(descendants(os.getpid())) - before) == 3, 10.0, "the compile worker")
    mine = set(descendants(os.getpid())) - before
    runtime.close()
    runtime.close()
    with pytest.raises(ServiceError, match="closed"):
        future.result(1)
    with pytest.raises(ServiceError, match="closed"):
        ask(runtime)
    assert not any(map(is_running, mine))
    assert not runtime._folder.exists()
    assert not runtime._thread.is_alive()


def test_gateway_and_compile_worker_never_load_torch(runtime: Runtime) -> None:
    gateway = runtime.pids()["gateway"]
    wait_until(lambda: bool(descendants(gateway)), 10.0, "the compile worker")
    (worker,) = descendants(gateway)
    for pid in (runtime.pids()["gateway"], worker):
        assert has_mapped(pid, "zmq")
        assert not has_mapped(pid, "torch")


def test_two_threads_may_close_at_once() -> None:
    runtime = start()
    threads = [threading.Thread(target=runtime.close, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert not any(thread.is_alive() for thread in threads)


def test_what_still_runs_on_the_loop_is_cancelled_at_the_end() -> None:
    runtime = Runtime(EngineConfig.create(model="toy", threads=1), toy_command)
    begun, ended = threading.Event(), threading.Event()

    async def endless() -> None:
        begun.set()
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()

    running = runtime.on_loop(endless())
    assert begun.wait(30)
    runtime.close()
    assert ended.is_set()
    assert running.cancelled()
