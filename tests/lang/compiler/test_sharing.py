"""A compiled batch asks equal requests once and sends its common beginning once; nothing stays open, failures stay with their item."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from lagging_backend import lagging

from radixlm import Aborted, EngineDied, ScriptedBackend, State, function, gen, select
from radixlm.lang.compiler.sharing import SharingBackend
from radixlm.lang.compiler.stems import without_prefix
from radixlm.runtime import messages as m

LONG = "These are the rules that all answers keep to, whatever is asked of you. "


@function
def answer(s: State, question: str, document: str = "") -> None:
    s += LONG + gen("plan")
    s += document + gen("summary")
    s += question + gen("answer") + select("good", ["yes", "no"])


def names(backend: ScriptedBackend) -> list[str]:
    return sorted(request.name for request in backend.requests)


def echo(request: Any) -> str:
    return request.choices[0] if request.choices else f"<{request.prompt[-3:]}>"


def run_batch(items: list[dict[str, str]], backend: ScriptedBackend, **options: Any) -> list[State]:
    compiled = answer.compile("q", document="d")
    return compiled.run_batch(items, backend=backend, progress_bar=False, **options)


def test_equal_requests_of_a_batch_are_asked_once() -> None:
    items = [{"question": q, "document": d} for q in "abc" for d in "xy"]
    for num_live in (1, 2, 9):
        backend = ScriptedBackend(default=echo)
        states = run_batch(items, backend, num_threads=num_live)
        assert names(backend).count("plan") == 1
        assert names(backend).count("summary") == 2
        assert names(backend).count("answer") == 6
        plain = answer.run_batch(items, backend=ScriptedBackend(default=echo))
        assert [s.text() for s in states] == [s.text() for s in plain]
        assert not backend.open_branches


def test_a_result_that_was_taken_over_counts_as_cached() -> None:
    backend = ScriptedBackend(default=echo)
    first, second = run_batch([{"question": "a"}, {"question": "a"}], backend)
    assert first.get_meta("plan").usage.completion_tokens > 0
    usage = second.get_meta("plan").usage
    assert usage == m.Usage(usage.prompt_tokens, usage.prompt_tokens, 0, 0)
    assert second.get_meta("plan").token_ids == first.get_meta("plan").token_ids


def test_drawn_results_are_never_taken_over() -> None:
    backend = ScriptedBackend(default=echo)
    run_batch([{"question": "a"}] * 3, backend, temperature=1.0)
    assert names(backend).count("plan") == 3
    run_batch([{"question": "a"}] * 3, backend, temperature=1.0, seed=1)
    assert names(backend).count("plan") == 6, "each item has a seed of its own"


def test_a_failed_leader_fails_alone() -> None:
    number = iter(range(99))

    def sometimes(request: Any) -> Any:
        if request.name == "plan" and next(number) == 0:
            return EngineDied("it ended")
        return echo(request)

    with lagging(default=sometimes) as backend:
        states = run_batch([{"question": "a"}] * 3, backend)
        assert not backend.open_branches
    errors = [state.error() for state in states]
    assert [type(error) for error in errors] == [EngineDied, type(None), type(None)]
    assert names(backend).count("plan") == 2, "one asks again, the third takes that over"


def test_a_leader_that_runs_out_of_time_does_not_take_its_followers_along() -> None:
    @function
    def f(s: State, index: int) -> str:
        s += "Count. " + gen("n")
        return s["n"]

    backend = ScriptedBackend({"n": "1"})
    items: list[dict[str, Any]] = [
        {"index": i, "timeout_s": 0.05 if i == 0 else 60} for i in range(3)
    ]
    backend.pause()
    states = []
    batch = f.compile(0).run_batch(items, backend=backend, generator_style=True, progress_bar=False)
    states.append(next(batch))
    assert "TimedOut" in repr(states[0].error())
    backend.resume()
    states += list(batch)
    assert sorted(str(s.ret_value) for s in states) == ["1", "1", "None"]
    assert not backend.open_branches


def test_the_common_beginning_is_sent_once_and_only_to_items_that_begin_so() -> None:
    @function
    def f(s: State, question: str, start: str = LONG) -> None:
        s += start + question + gen("a")

    backend = ScriptedBackend(default=echo)
    items = [{"question": q} for q in "abc"] + [{"question": "d", "start": "Other. "}]
    f.compile("q").run_batch(items, backend=backend, progress_bar=False)
    appended = [each.segments for each in backend.sent if isinstance(each, m.Append)]
    assert appended[:4] == [(m.Text(LONG),), *[(m.Text(q),) for q in "abc"]]
    assert [type(each) for each in backend.sent].count(m.OpenBranch) == 2
    assert [r.prompt for r in backend.requests] == [LONG + q for q in "abc"] + ["Other. d"]
    assert not backend.open_branches


def test_segments_are_compared_whatever_their_cuts() -> None:
    prefix = (m.RoleBegin("user"), m.Text("abc"), m.RoleEnd("user"))
    cut = (m.RoleBegin("user"), m.Text("a"), m.Text("bc"), m.RoleEnd("user"), m.Text("d"))
    assert without_prefix(cut, prefix) == (m.Text("d"),)
    assert without_prefix((m.Text("abcd"),), (m.Text("ab"),)) == (m.Text("cd"),)
    assert without_prefix((m.Text("abc"),), prefix) is None
    assert without_prefix(cut[:2], prefix) is None
    assert without_prefix((m.Text("ab"), m.RoleEnd("user")), (m.Text("abc"),)) is None


def test_what_is_kept_is_bounded_and_closed_at_the_end() -> None:
    backend = ScriptedBackend(default=echo)
    sharing = SharingBackend(backend, (), frozenset({"a"}))
    for number in range(400):
        branch = sharing.new_id("branch")
        sharing.send(m.OpenBranch(branch))
        sharing.send(m.Append(branch, (m.Text(f"{number} "),)))
        sharing.generate(m.Generate(sharing.new_id("a"), branch)).result()
        sharing.send(m.CloseBranch(branch))
    assert len(backend.open_branches) <= 256
    sharing.complete()
    assert not backend.open_branches


class Withheld(ScriptedBackend):
    """The first request is the test's to answer; all others are answered at once."""

    def __init__(self) -> None:
        super().__init__(default=echo)
        self.first: Future[Any] | None = None

    def _submit(self, job: Any) -> Future[Any]:
        if self.first is None:
            self.first = Future()
            return self.first
        return super()._submit(job)


def opened(sharing: SharingBackend, num: int) -> list[str]:
    branches = [sharing.new_id("branch") for _ in range(num)]
    for branch in branches:
        sharing.send(m.OpenBranch(branch))
        sharing.send(m.Append(branch, (m.Text("Is it? "),)))
    return branches


def test_a_follower_whose_branch_was_closed_does_not_ask_again() -> None:
    backend = Withheld()
    sharing = SharingBackend(backend, (), frozenset())
    branches = opened(sharing, 2)
    scores = [
        sharing.score(m.Score(sharing.new_id("good"), branch, choices=("yes", "no")))
        for branch in branches
    ]
    for branch in branches:
        sharing.send(m.CloseBranch(branch))
    sharing.complete()
    assert not scores[1].done()
    assert backend.first is not None
    backend.first.set_exception(EngineDied("it ended"))
    assert isinstance(scores[0].exception(0), EngineDied)
    assert isinstance(scores[1].exception(0), Aborted)
    assert not backend.open_branches


def test_followers_of_a_failed_leader_take_over_what_one_of_them_got_at_once() -> None:
    backend = Withheld()
    sharing = SharingBackend(backend, (), frozenset({"a"}))
    branches = opened(sharing, 4)
    answers = [sharing.generate(m.Generate(sharing.new_id("a"), branch)) for branch in branches]
    assert backend.first is not None
    backend.first.set_exception(EngineDied("it ended"))
    assert isinstance(answers[0].exception(0), EngineDied)
    assert len({each.result(0).outputs for each in answers[1:]}) == 1
    assert names(backend) == ["a"], "one asks again, the others take that over"
    for branch in branches:
        sharing.send(m.CloseBranch(branch))
    sharing.complete()
    assert not backend.open_branches
