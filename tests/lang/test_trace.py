"""Traces: branches share what they share as text, answers stand with their counts, failures are shown, nothing is kept of closed branches."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from radixlm import ScriptedBackend, State, assistant, function, gen, select, system, user
from radixlm.errors import ProgramError
from radixlm.lang.backend import Backend
from radixlm.lang.trace import TracingBackend
from radixlm.runtime import messages as m


def traced(answers: dict[str, object]) -> TracingBackend:
    return TracingBackend(ScriptedBackend(answers))  # type: ignore[arg-type]


@function
def ask(s: State, what: str) -> None:
    s += system("Be brief.") + user("Tell me of " + what) + assistant(gen("answer"))


def test_branches_that_begin_alike_share_nodes_and_part_where_their_text_parts() -> None:
    trace = traced({"answer": ["red", "green", "blue"]})
    ask.run_batch([{"what": "apples"}, {"what": "apricots"}, {"what": "plums"}], backend=trace)
    tree = trace.render()
    assert tree.splitlines()[:9] == [
        'system "Be brief."',
        'user "Tell me of "',
        '|-- "ap"',
        '|   |-- "ples"',
        tree.splitlines()[4],
        '|   `-- "ricots"',
        tree.splitlines()[6],
        '`-- "plums"',
        tree.splitlines()[8],
    ]
    for number, answer in ((4, "red"), (6, "green"), (8, "blue")):
        assert f'assistant gen answer = "{answer}"  [prompt ' in tree.splitlines()[number]


def test_a_node_is_cut_under_a_branch_that_stands_at_its_end() -> None:
    trace = traced({"a": "1", "b": "2"})
    for branch, text in (("one", "abcdef"), ("two", "abcxyz")):
        trace.send(m.OpenBranch(branch))
        trace.send(m.Append(branch, (m.Text(text),)))
    trace.generate(m.Generate("a#1", "one"))
    trace.generate(m.Generate("b#2", "two"))
    (shared,) = trace.root.children
    assert shared.text == "abc"
    below = {child.text: child.children[0].text for child in shared.children}
    assert below == {"def": "1", "xyz": "2"}


def test_forks_and_selects_stand_where_they_were_asked() -> None:
    @function
    def program(s: State) -> None:
        s += "It is "
        s += select("mood", ["good", "bad"])
        forks = s.fork(2)
        forks += gen("more")
        forks.join()

    trace = traced({"mood": "good", "more": ["x", "y"]})
    program.run(backend=trace)
    lines = [line.label for line in trace.lines()]
    assert lines == [
        '"It is "',
        "select mood of 2 choices",
        '"good"',
        'gen more = "x"',
        'gen more = "y"',
    ]
    assert [line.stem for line in trace.lines()] == ["", "", "", "|-- ", "`-- "]


def test_counts_are_those_of_the_answers() -> None:
    trace = traced({"answer": ["one two three"] * 2})
    backend_usage = [ask.run(what, backend=trace).usage() for what in ("x", "x")]
    total = trace.usage()
    assert total.prompt_tokens == sum(usage.prompt_tokens for usage in backend_usage)
    assert total.cached_tokens == sum(usage.cached_tokens for usage in backend_usage) > 0
    assert f"{total.cached_tokens} hit" in trace.summary()


def test_a_failure_stands_in_the_tree() -> None:
    trace = traced({})
    with pytest.raises(ProgramError):
        ask.run("x", backend=trace)
    assert "gen answer failed: no scripted answer" in trace.render()


def test_long_texts_are_cut_in_the_middle_and_roles_of_conversations_are_read() -> None:
    trace = traced({"g": "x" * 200})
    messages = ({"role": "user", "content": "a" * 100}, {"role": "assistant", "content": "b"})
    trace.generate(m.Generate("g#1", segments=(m.Chat(messages), m.Ids((1, 2)))))
    first, second, third = (line.label for line in trace.lines(max_chars=25))
    assert first == f'user "{"a" * 10} ... {"a" * 10}"'
    assert second == 'assistant "b<2 token ids>"'
    assert third == f'gen g = "{"x" * 10} ... {"x" * 10}"'


def test_it_is_a_backend_and_forgets_closed_branches() -> None:
    trace = traced({"answer": "x"})
    assert isinstance(trace, Backend)
    assert trace.facts.model == "scripted"
    ask.run("x", backend=trace)
    assert not trace._ends


def test_the_tree_is_drawn_as_svg_and_as_a_page() -> None:
    trace = traced({"answer": ["red & <green>", "blue"]})
    ask.run_batch([{"what": "apples"}, {"what": "plums"}], backend=trace)
    picture = ElementTree.fromstring(trace.svg())
    written = [node.text or "" for node in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert written[:2] == ['system "Be brief."', 'user "Tell me of "']
    assert 'assistant gen answer = "red & <green>"' in written
    assert sum("hit" in text and "computed" in text for text in written) == 2
    page = trace.html()
    assert trace.summary() in page
    assert trace.svg() in page


def test_a_failure_is_drawn_in_its_colour_and_an_empty_trace_says_so() -> None:
    trace = traced({})
    with pytest.raises(ProgramError):
        ask.run("x", backend=trace)
    assert "#f7dcdc" in trace.svg()
    assert "nothing was asked" in traced({}).svg()
