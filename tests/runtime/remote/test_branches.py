"""Branches on this side: order, copies, failures, and requests that outlive their branch."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from radixlm.errors import Aborted, ProgramError
from radixlm.runtime import messages as m
from radixlm.runtime.remote.branches import BranchTable, Job, RemoteBranch
from radixlm.runtime.remote.prompts import Said


class Driver:
    """A table whose requests a test answers by hand."""

    def __init__(self) -> None:
        self.table = BranchTable(self._start, self._fail)
        self.running: dict[str, RemoteBranch] = {}
        self.failed: dict[str, BaseException] = {}

    def _start(self, branch: RemoteBranch, job: Job) -> None:
        self.running[job.message.request] = branch

    def _fail(self, job: Job, error: BaseException) -> None:
        self.failed[job.message.request] = error

    def text(self, *texts: str, branch: str = "b") -> None:
        self.table.send(m.Append(branch, tuple(map(m.Text, texts))))

    def ask(self, request: str, branch: str | None = "b") -> Job:
        job = Job(m.Generate(request, branch, (m.Text("own"),) if branch is None else ()), Future())
        self.table.ask(job)
        return job

    def answer(self, request: str, text: str = "", failure: BaseException | None = None) -> None:
        branch = self.running.pop(request)
        if failure is None:
            branch.pieces.append(Said(text, ()))
        self.table.answered(branch, failure)

    def prompt(self, request: str) -> str:
        return "".join(getattr(piece, "text", "") for piece in self.running[request].pieces)


@pytest.fixture
def driver() -> Driver:
    driver = Driver()
    driver.table.open(m.OpenBranch("b", "ns", True), 0)
    return driver


def test_a_request_holds_what_is_behind_it_on_its_branch(driver: Driver) -> None:
    driver.text("one ")
    driver.ask("x")
    driver.text(" three ")
    driver.ask("y")
    assert driver.prompt("x") == "one "
    assert "y" not in driver.running
    driver.answer("x", "two")
    assert driver.prompt("y") == "one two three "


def test_a_fork_copies_what_is_there_when_its_turn_comes(driver: Driver) -> None:
    driver.ask("x")
    driver.table.send(m.Fork("b", ("c", "d")))
    driver.text(" own", branch="c")
    driver.ask("y", "c")
    driver.ask("z", "d")
    assert set(driver.running) == {"x"}
    driver.answer("x", "shared")
    assert (driver.prompt("y"), driver.prompt("z")) == ("shared own", "shared")
    assert driver.running["y"].namespace == "ns"
    assert driver.running["y"].strict_text
    assert driver.running["y"].has_forks
    driver.text(" more")
    assert driver.prompt("z") == "shared"


def test_a_failure_fails_what_follows_and_the_forks(driver: Driver) -> None:
    driver.ask("x")
    driver.ask("y")
    driver.table.send(m.Fork("b", ("c",)))
    driver.ask("z", "c")
    error = ProgramError("no")
    driver.answer("x", failure=error)
    assert driver.failed == {"y": error, "z": error}
    driver.ask("later")
    assert driver.failed["later"] is error


def test_a_request_that_was_dropped_breaks_what_follows(driver: Driver) -> None:
    driver.ask("x")
    dropped = driver.ask("y")
    driver.ask("z")
    dropped.dropped = Aborted("gone")
    driver.answer("x", "fine")
    assert driver.failed == {"z": dropped.dropped}


def test_a_closed_branch_lives_until_its_requests_are_answered(driver: Driver) -> None:
    driver.ask("x")
    driver.ask("y")
    driver.table.send(m.CloseBranch("b"))
    driver.table.send(m.CloseBranch("b"))
    assert len(driver.table) == 0
    driver.answer("x", "one")
    assert driver.prompt("y") == "one"


def test_a_child_closed_before_its_fork_still_answers(driver: Driver) -> None:
    driver.ask("x")
    driver.table.send(m.Fork("b", ("c",)))
    driver.ask("y", "c")
    driver.table.send(m.CloseBranch("c"))
    driver.answer("x", "one")
    assert driver.prompt("y") == "one"


def test_an_anonymous_branch_holds_its_own_segments(driver: Driver) -> None:
    driver.ask("x", None)
    assert driver.prompt("x") == "own"
    assert len(driver.table) == 1


def test_a_branch_that_is_not_open_fails_its_requests_and_forks(driver: Driver) -> None:
    driver.text("lost", branch="nobody")
    driver.ask("x", "nobody")
    driver.table.send(m.Fork("nobody", ("c",)))
    driver.ask("y", "c")
    assert all("not open" in str(error) for error in driver.failed.values())
    assert set(driver.failed) == {"x", "y"}


def test_a_branch_opened_twice_is_broken(driver: Driver) -> None:
    driver.table.open(m.OpenBranch("b"), 0)
    driver.ask("x")
    assert "opened twice" in str(driver.failed["x"])


def test_many_appends_cost_no_copies(driver: Driver) -> None:
    for number in range(2000):
        driver.text(f"{number} ")
    children: tuple[Any, ...] = tuple(f"c{i}" for i in range(50))
    driver.table.send(m.Fork("b", children))
    driver.ask("x", "c49")
    assert driver.prompt("x").endswith("1999 ")
