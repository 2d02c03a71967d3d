"""Each pattern on scripted answers: what it asks, how many forks and requests it makes, what it does when an attempt fails."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from lagging_backend import lagging
from pydantic import Field

from radixlm import (
    Answer,
    EngineDied,
    OutputError,
    ProgramError,
    ScriptedBackend,
    State,
    assistant,
    function,
    gen,
    gen_int,
    user,
)
from radixlm.lang.patterns import (
    best_of_n,
    branch_solve_merge,
    map_reduce,
    react,
    retry_until_valid,
    self_consistency,
    skeleton_of_thought,
    split_text,
    thinking,
    tree_of_thought,
)
from radixlm.runtime.messages import Fork

CUT = Answer("1", "length")  # of a gen_int with a maximum: no complete number


def run(body: Any, script: dict[str, Any], **options: Any) -> tuple[State, ScriptedBackend]:
    """Run on a backend that answers at once, and again on one that answers later; both leave nothing open."""
    backend = ScriptedBackend(script)
    state = function(body).run(backend=backend, **options)
    assert not backend.open_branches
    if not any(isinstance(each, list) for each in script.values()):
        with lagging(script) as slow:
            assert function(body).run(backend=slow, **options).text() == state.text()
            assert not slow.open_branches
    return state, backend


def num_children(backend: ScriptedBackend) -> list[int]:
    return [len(each.children) for each in backend.sent if isinstance(each, Fork)]


def test_self_consistency_takes_the_answer_of_most_attempts() -> None:
    def body(s: State) -> Any:
        s += "Q?\n"
        attempt = (
            "Why:" + gen("why", temperature=0.7, stop="\n") + "\nA:" + gen_int("a", maximum=99)
        )
        vote = self_consistency(s, attempt, "a", num_attempts=5)
        s += "\nThen:" + gen("then")
        return vote

    failing = {"why": [" 1", " 2", " 3", " 4", " 5"], "a": ["7", "12", CUT, "12", "9"], "then": "x"}
    state, backend = run(body, failing, seed=1)
    vote = state.ret_value
    assert (vote.answer, vote.counts[12], len(vote.failed)) == (12, 2, 1)
    assert num_children(backend) == [5]
    assert len(backend.requests) == 11
    assert backend.requests[0].prompt == "Q?\nWhy:"
    assert backend.requests[-1].prompt == "Q?\nWhy: 2\nA:12\nThen:"
    assert (state["a"], state["why"]) == (12, " 2")
    with pytest.raises(OutputError):
        run(body, {"why": " x", "a": CUT, "then": "x"})


def test_another_failure_of_an_attempt_raises_with_its_number() -> None:
    def body(s: State) -> Any:
        return self_consistency(s, "A:" + gen("a"), "a", num_attempts=3)

    with pytest.raises(EngineDied) as caught:
        run(body, {"a": ["7", EngineDied("gone"), "7"]})
    assert "attempt 1" in caught.value.__notes__


def test_best_of_n_goes_on_with_the_candidate_that_the_judge_likes_best() -> None:
    judge = user("Score?") + assistant(gen_int("score", maximum=10))

    def body(s: State) -> Any:
        s += user("Write.")
        best = best_of_n(s, assistant(gen("text")), "text", judge, num_candidates=3)
        s += user("More.") + assistant(gen("more"))
        return best

    script = {"text": ["one", "two", "three"], "score": ["4", "9", CUT], "more": "end"}
    state, backend = run(body, script)
    best = state.ret_value
    assert (best.answer, best.score, best.ranking) == ("two", 9, ((9, "two"), (4, "one")))
    assert state.text() == "Write.twoMore.end"
    assert num_children(backend) == [3, 1, 1, 1]
    assert [each.name for each in backend.requests] == ["text"] * 3 + ["score"] * 3 + ["more"]
    assert "Score?" not in backend.requests[-1].prompt
    assert backend.requests[3].prompt.endswith(
        "assistant\none<|im_end|>\n<|im_start|>user\nScore?<|im_end|>\n<|im_start|>assistant\n"
    )


def test_branch_solve_merge_solves_the_parts_side_by_side() -> None:
    def body(s: State) -> Any:
        return branch_solve_merge(
            s,
            "Parts: " + gen("parts", schema=list[str]),
            "parts",
            lambda part: f"\n{part}:" + gen_int("n", maximum=9),
            "n",
            lambda found: f"\nSum of {found}:" + gen("sum"),
        )

    state, backend = run(body, {"parts": '["a","b","c"]', "n": ["1", CUT, "3"], "sum": "4"})
    assert state.ret_value == [1, 3]
    assert num_children(backend) == [3]
    assert backend.requests[2].prompt == 'Parts: ["a","b","c"]\nb:'
    assert state.text() == 'Parts: ["a","b","c"]\nSum of [1, 3]:4'
    with pytest.raises(ProgramError, match="no list of parts"):
        run(body, {"parts": "[]", "n": "1", "sum": "4"})


def test_skeleton_of_thought_writes_the_points_of_an_outline() -> None:
    def body(s: State) -> Any:
        s += "Outline: "
        outline = gen("points", schema=Annotated[list[str], Field(max_length=3)]) + "\n"
        return skeleton_of_thought(s, outline, "points", lambda p: f"{p} is" + gen("t"), "t")

    state, backend = run(body, {"points": '["x","y"]', "t": lambda r: f" about {r.prompt[-4:]}"})
    assert state.ret_value == [" about x is", " about y is"]
    assert state.text() == 'Outline: ["x","y"]\n about x is\n about y is'
    assert len(backend.requests) == 3


def test_tree_of_thought_keeps_the_best_lines() -> None:
    worth = {
        "b": "5",
        "a": "3",
        "c": "1",
        "bb": "6",
        "ba": "9",
        "bc": "0",
        "ab": "8",
        "aa": "1",
        "ac": "1",
    }

    def body(s: State) -> Any:
        s += "Start "
        step = lambda depth: gen("step", temperature=0.9)  # noqa: E731
        return tree_of_thought(
            s, step, "?" + gen_int("value", maximum=9), depth=2, num_ways=3, num_kept=2
        )

    def value(request: Any) -> str:
        return worth[request.prompt.removeprefix("Start ").removesuffix("?")]

    state, backend = run(body, {"step": [*"abc", *"abc", *"abc"], "value": value})
    kept = state.ret_value
    assert [(each.path, each.value) for each in kept] == [((1, 0), 9), ((0, 1), 8)]
    assert state.text() == "Start ba"
    assert [each.name for each in backend.requests].count("step") == 9
    assert num_children(backend).count(3) == 3
    assert [state["step"] for state in kept[1].states] == ["a", "b"]


def test_map_reduce_joins_in_levels() -> None:
    def body(s: State, parts: list[str]) -> Any:
        s += "Task. "
        return map_reduce(
            s,
            parts,
            lambda part: f"<{part}>" + gen("note"),
            "note",
            lambda notes: f"join{notes}" + gen("note"),
            num_joined=2,
        )

    def note(request: Any) -> str:
        return f"n{len(request.prompt)}"

    state, backend = run(body, {"note": note}, parts=["a", "bb", "c", "dd", "e"])
    assert num_children(backend) == [5, 3, 2]
    assert len(backend.requests) == 5 + 3 + 2 + 1
    assert backend.requests[1].prompt == "Task. <bb>"
    assert backend.requests[5].prompt == "Task. join['n9', 'n10']"
    assert state.text().count("join") == 1
    assert len(run(body, {"note": note}, parts=["a"])[1].requests) == 2
    with pytest.raises(ProgramError):
        run(body, {"note": note}, parts=[])


def test_a_text_is_split_at_paragraphs_lines_sentences_and_words() -> None:
    text = "One two. Three four.\nFive six seven.\n\nEight nine ten eleven twelve."
    for size in (8, 15, 30, 60, 200):
        parts = split_text(text, size)
        assert all(0 < len(part) <= size for part in parts)
        assert "".join(parts).split() == "".join(text.split()).split() or "".join(
            "".join(parts).split()
        ) == "".join(text.split())
    assert split_text(text, 40) == text.split("\n\n")
    assert split_text("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]
    assert split_text("  ", 5) == []


def stock(item: str) -> int:
    """How many."""
    return {"pens": 30}[item]


def test_react_thinks_acts_and_observes_until_it_finishes() -> None:
    def body(s: State, max_steps: int = 4) -> Any:
        s += "Q: pens?\n"
        return react(s, [stock], max_steps=max_steps)

    script = {
        "thought": [" I look.", " Wrong.", " I know."], "action": ["stock", "stock", "finish"],
        "arguments": ['{"item":"pens"}', '{"item":"cups"}'], "answer": " 30 pens",
    }  # fmt: skip
    state, _ = run(body, script)
    assert state.text() == (
        'Q: pens?\nThought: I look.\nAction: stock {"item":"pens"}\nObservation: 30\n'
        'Thought: Wrong.\nAction: stock {"item":"cups"}\nObservation: error: KeyError: \'cups\'\n'
        "Thought: I know.\nAction: finish\nAnswer: 30 pens"
    )
    steps = state.ret_value
    assert [step.thought for step in steps] == ["I look.", "Wrong.", "I know."]
    assert [step.result and step.result.value for step in steps] == [30, None, None]
    script = {
        "thought": " x",
        "action": lambda r: r.choices[0],
        "arguments": '{"item":"pens"}',
        "answer": " y",
    }
    state, backend = run(body, script, max_steps=2)
    assert len(state.ret_value) == 2
    assert [each.choices for each in backend.requests if each.name == "action"] == [
        ("stock", "finish"),
        ("finish",),
    ]


@pytest.mark.parametrize("num_at_once", [1, 2, 5])
def test_retry_until_valid_goes_on_with_the_first_good_attempt(num_at_once: int) -> None:
    def body(s: State) -> Any:
        s += "Even:"
        even = retry_until_valid(
            s, gen_int("n", maximum=99), "n", lambda n: n % 2 == 0, num_at_once=num_at_once
        )
        s += "."
        return even

    state, backend = run(body, {"n": ["1", CUT, "4", "6", "7"]})
    assert (state.ret_value, state.text(), state["n"]) == (4, "Even:4.", 4)
    assert len(backend.requests) == {1: 3, 2: 4, 5: 5}[num_at_once]
    with pytest.raises(OutputError, match="no valid 'n' in 5 attempts") as caught:
        run(body, {"n": "3"})
    note = "attempt 4: the check refuses 3: it does not pass the check"
    assert note in caught.value.__notes__


def test_retry_until_valid_and_gen_have_one_rule_for_checks() -> None:
    def refuses_by_a_reason(text: str) -> object:
        return None if text == "good" else "not good"

    def asserts(text: str) -> object:
        if text != "good":
            raise AssertionError("not good")
        return True

    for check in (refuses_by_a_reason, asserts):

        def body(s: State, check: Any = check) -> Any:
            drawn = retry_until_valid(s, gen("x"), "x", check)
            s += gen("y", check=check, max_reasks=4)
            return drawn, s["y"]

        state, _ = run(body, {"x": ["bad", "good"], "y": ["bad", "good"]})
        assert state.ret_value == ("good", "good")
        with pytest.raises(OutputError) as caught:
            run(body, {"x": "bad", "y": "good"})
        assert "attempt 4: the check refuses 'bad': not good" in caught.value.__notes__


def _fails(s: State) -> None:
    raise KeyError("of the part")


@pytest.mark.parametrize(
    "use",
    [
        lambda s: best_of_n(s, gen("a"), "a", _fails),
        lambda s: best_of_n(s, _fails, "a", gen("score")),
        lambda s: self_consistency(s, _fails, "a"),
        lambda s: self_consistency(s, gen("a"), "a", key=_fails),
        lambda s: tree_of_thought(s, lambda level: gen("a") if level == 0 else _fails, gen("value")),
        lambda s: branch_solve_merge(s, gen("parts", schema=list[str]), "parts", _fails, "a", str),
        lambda s: map_reduce(s, ["one", "two"], lambda part: _fails, "a", str),
        lambda s: retry_until_valid(s, _fails, "a"),
    ],
)  # fmt: skip
def test_a_pattern_that_fails_leaves_no_fork_open(use: Any) -> None:
    backend = ScriptedBackend({"a": "1", "value": "1", "parts": '["x","y"]'})

    @function
    def tries(s: State) -> list[int]:
        s += "p" + gen("a")
        before = len(backend.open_branches)
        with pytest.raises(KeyError):
            use(s)
        return [before, len(backend.open_branches)]

    assert tries.run(backend=backend).ret_value == [1, 1]


def test_thinking_ends_at_its_mark_or_after_its_budget() -> None:
    def body(s: State) -> None:
        s += user("Q") + assistant(thinking(gen_int("a"), max_thinking_tokens=5))

    state, backend = run(body, {"thinking": "so", "a": "4"})
    assert state.messages()[1]["content"] == "<think>\nso\n</think>\n\n4"
    sampling = backend.requests[0].sampling
    assert (sampling.max_tokens, sampling.stop) == (5, ("</think>",))


def test_a_part_may_be_a_function_or_another_pattern() -> None:
    def debate(s: State) -> None:
        self_consistency(s, "A:" + gen("a"), "a", num_attempts=2)

    def body(s: State) -> Any:
        s += "Q "
        return best_of_n(s, debate, "a", " ok?" + gen_int("score"), num_candidates=2).answer

    state, backend = run(body, {"a": ["x", "y", "z", "z"], "score": ["1", "2"]})
    assert (state.ret_value, state.text()) == ("z", "Q A:z")
    assert num_children(backend)[:3] == [2, 2, 2]


@pytest.mark.parametrize("number", [0, True, 1.5])
def test_wrong_numbers_are_refused(number: Any) -> None:
    def body(s: State) -> None:
        self_consistency(s, "x", "a", num_attempts=number)

    with pytest.raises(ProgramError) as caught:
        run(body, {})
    assert caught.value.place == "num_attempts"
