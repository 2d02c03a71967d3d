"""`program.save` and `Program.load`: the same text, requests and variables without the program's Python, or a refusal at its line."""

from __future__ import annotations

import json
import re
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_programs import outcome

from radixlm import (
    Program,
    ProgramError,
    ScriptedBackend,
    State,
    assistant,
    function,
    gen,
    gen_int,
    select,
    user,
)

NAMES = st.sampled_from(["a", "b"])
KINDS = st.sampled_from(["greedy", "seeded", "drawn", "number", "choice", "two"])
PLAIN = st.one_of(
    st.tuples(st.just("text"), st.sampled_from(["x ", "Tell me: ", "«", "‹a 0›"])),
    st.just(("first",)),
    st.just(("second",)),
    st.tuples(st.just("gen"), NAMES, KINDS),
    st.tuples(st.just("select"), NAMES),
    st.tuples(st.just("use"), NAMES),
    st.tuples(st.just("set"), NAMES),
)


def _nested(inner: Any) -> Any:
    blocks = st.lists(inner, max_size=3)
    return st.one_of(
        st.tuples(st.just("role"), blocks),
        st.tuples(st.just("scope"), blocks),
        st.tuples(st.just("fork"), st.integers(1, 3), blocks, st.sampled_from(["gather", "concat", ""])),
    )  # fmt: skip


STRAIGHT = st.lists(st.recursive(PLAIN, _nested, max_leaves=8), max_size=6)


@function
def straight(s: State, ops: list[Any], first: str, second: str) -> Any:
    """Does what `ops` say, whatever the texts are."""
    s += f"[{first}|{second}]"
    known: set[str] = set()
    for op in ops:
        do(s, op, first, second, known)
    return [first + "!", None, *(s[name] for name in sorted(known))]


def do(s: State, op: Any, first: str, second: str, known: set[str]) -> None:
    """`known`: variables that are a single text, on this branch."""
    kind, rest = op[0], op[1:]
    if kind == "text":
        s += rest[0]
    elif kind in ("first", "second"):
        s += (first if kind == "first" else second) + ","
    elif kind == "gen":
        s += made(*rest)
        known.discard(rest[0])
        if rest[1] in ("greedy", "seeded", "drawn", "choice"):
            known.add(rest[0])
    elif kind == "select":
        s += select(rest[0], ["yes", "no", "yes, but"])
        known.add(rest[0])
    elif kind == "use":
        s += "<" + s[rest[0]] + ">" if rest[0] in known else "none "
    elif kind == "set":
        s[rest[0]] = ["by hand", first]
        known.discard(rest[0])
    else:
        do_block(s, kind, rest, first, second, known)


def do_block(s: State, kind: str, rest: Any, first: str, second: str, known: set[str]) -> None:
    if kind == "fork":
        group = s.fork(rest[0])
        for index, child in enumerate(group):
            child += f"child {index}: "
            own = set(known)
            for op in rest[1]:
                do(child, op, first, second, own)
        if rest[2]:
            group.join(rest[2])
        known.clear()
    elif kind == "role" and s.open_role() is None:
        with s.user():
            for op in rest[0]:
                do(s, op, first, second, known)
    else:
        with s.var_scope("scope"):
            for op in rest[0]:
                do(s, op, first, second, known)


def made(name: str, how: str) -> Any:
    if how == "number":
        return gen_int(name, minimum=0, maximum=999)
    if how == "choice":
        return gen(name, choices=["left", "right"])
    if how == "two":
        return gen(name, n=2, max_tokens=3)
    if how == "seeded":
        return gen(name, temperature=1.0, seed=5, stop=["\n"], logit_bias={7: -1.5})
    return gen(name, temperature=1.0) if how == "drawn" else gen(name, max_tokens=9)


def reply(request: Any) -> Any:
    """The same for the same prompt, and seed where one counts."""
    seed = "" if request.choices or not request.sampling.temperature else request.sampling.seed
    number = zlib.crc32(f"{request.prompt} {seed}".encode())
    if request.choices:
        return request.choices[number % len(request.choices)]
    constraint = repr(request.message.constraint)
    if constraint != "None":
        return ("left", "right")[number % 2] if "left" in constraint else str(number % 1000)
    texts = tuple(f"t{(number + i) % 100} " for i in range(request.sampling.n))
    return texts if len(texts) > 1 else texts[0]


def ran(program: Any, first: str, second: str) -> Any:
    backend = ScriptedBackend(default=reply)
    state = program.run(first=first, second=second, backend=backend, seed=3, max_tokens=50)
    asked = [
        (request.prompt, request.name, request.choices or request.sampling)
        for request in backend.requests
    ]
    assert not backend.open_branches
    return outcome(state, None), asked


@given(STRAIGHT, st.tuples(st.text("ab‹ ", max_size=3), st.sampled_from(["", "zz", "{x}", "日本"])))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_saved_program_does_what_the_program_does(ops: list[Any], values: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "straight.json"
        bound = straight.bind(ops=ops)
        if not was_saved(bound, path):
            return
        loaded = Program.load(path)
        assert ran(loaded, *values) == ran(bound, *values)
        again = Path(folder) / "again.json"
        loaded.save(again, first="hill", second="dale")
        assert json.loads(again.read_text()) == json.loads(path.read_text())


def was_saved(program: Program, path: Path) -> bool:
    """Whether it could be; what a program reads without showing it is refused."""
    try:
        program.save(path, first="river", second="stone")
    except ProgramError as error:
        if "no placeholder of its own" in str(error):
            return False
        raise
    return True


# ------------------------------------------------------------------------------------ what cannot be saved


@dataclass
class Point:
    x: int


@function
def looks(s: State, topic: str) -> None:
    s += topic + gen("a")
    if "yes" in s["a"]:
        s += "so"


@function
def looks_at_the_argument(s: State, topic: str) -> None:
    s += topic if len(topic) < 50 else topic[:50]


@function
def chooses_a_way(s: State, topic: str) -> None:
    s += topic + select("a", ["yes", "no"])
    if s["a"] == "yes":
        s += gen("b")


@function
def makes_another_text(s: State, topic: str) -> None:
    s += topic + gen("a")
    s += s["a"].strip()


@function
def reads_a_number(s: State, topic: str) -> None:
    s += topic + gen_int("n")
    for _ in range(s["n"] % 3):
        s += "."


@function
def asks_for_the_end(s: State, topic: str) -> None:
    s += topic + gen("a")
    if s.get_meta("a").finish_reason == "length":
        s += "..."


@function
def throws_away(s: State, topic: str) -> None:
    s += topic + gen("a")
    seen.add(id(s["a"]))


seen: set[int] = set()


@function
def returns_an_object(s: State, topic: str) -> Any:
    s += topic
    return Point(3)


@function
def asks_again(s: State, topic: str) -> None:
    s += topic + gen("a", max_reasks=2)


@function
def checks(s: State, topic: str) -> None:
    s += topic + gen("a", check=lambda text: text != "bad")


@function
def calls(s: State, topic: str) -> None:
    s += topic + gen("a", tools=[abs_of])


def abs_of(number: int) -> int:
    """The absolute value.

    Args:
        number: Any number.
    """
    return abs(number)


@function
def breaks(s: State, topic: str) -> None:
    s += topic + gen("a")
    int(s["a"])


def test_a_program_without_end_is_refused(tmp_path: Path) -> None:
    @function
    def endless(s: State, topic: str) -> None:
        while True:
            s += topic

    with pytest.raises(ProgramError, match="more than 2000 steps"):
        endless.save(tmp_path / "p.json", "rivers")


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (looks, "str.__contains__"),
        (looks_at_the_argument, "str.__len__"),
        (chooses_a_way, "str.__eq__"),
        (makes_another_text, "str.strip"),
        (reads_a_number, "the int of 'n'"),
        (asks_for_the_end, "get_meta()"),
        (throws_away, "the result of 'a' is read, and stands nowhere"),
        (returns_an_object, "a Point that Python made"),
        (asks_again, "a gen with max_reasks= or check= cannot be saved"),
        (checks, "a gen with max_reasks= or check= cannot be saved"),
        (calls, "a gen whose value a function makes"),
        (breaks, "it cannot go on with a placeholder: ValueError"),
    ],
)
def test_what_may_do_something_else_is_refused_with_its_line(
    program: Program, why: str, tmp_path: Path
) -> None:
    with pytest.raises(ProgramError) as caught:
        program.save(tmp_path / "p.json", "rivers")
    assert why in str(caught.value)
    assert __file__ in str(caught.value.place)
    assert list(tmp_path.iterdir()) == []


@function
def greet(s: State, name: str, times: int = 1) -> None:
    """Its way depends on a number, which is bound or left out."""
    for _ in range(times):
        s += user("Greet " + name) + assistant(gen("greeting"))


def test_an_argument_that_is_no_text_is_bound_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "greet.json"
    with pytest.raises(ProgramError, match="the argument 'times' is a int"):
        greet.save(path, "Ada", times=2)
    greet.bind(times=2).save(path, "Ada")
    backend = ScriptedBackend(default="Hi!")
    loaded = Program.load(path)
    assert loaded.run("Eve", backend=backend).text() == "Greet EveHi!" * 2
    with pytest.raises(ProgramError, match="times"):
        loaded.run("Eve", times=2, backend=backend)
    with pytest.raises(ProgramError, match="name=5 is no text"):
        loaded.run(name=5, backend=backend)
    with pytest.raises(ProgramError, match="missing"):
        loaded.run(backend=backend)


def test_a_typed_result_is_what_json_makes_of_its_text(tmp_path: Path) -> None:
    @function
    def place(s: State, what: str) -> Any:
        s += what + gen("at", schema=Point)
        return "done"

    path = tmp_path / "place.json"
    place.save(path, "where")
    state = Program.load(path).run("here", backend=ScriptedBackend({"at": '{"x":4}'}))
    assert state["at"] == {"x": 4}


@pytest.mark.parametrize(
    ("dtype", "texts"),
    [(bool, ["True", "False"]), (int, ["-3"]), (float, ["2", "1e3"]), (str, ['"a\\nb"'])],
)
def test_a_value_of_a_plain_type_stays_what_it_was(
    tmp_path: Path, dtype: type, texts: list[str]
) -> None:
    @function
    def typed(s: State, what: str) -> None:
        s += what + gen("x", dtype=dtype)

    path = tmp_path / "typed.json"
    typed.save(path, "where")
    for text in texts:
        before, after = (
            each.run("here", backend=ScriptedBackend({"x": text}))["x"]
            for each in (typed, Program.load(path))
        )
        assert (type(after), after) == (type(before), before)


def test_what_looks_past_the_methods_of_a_text_is_not_seen(tmp_path: Path) -> None:
    @function
    def hidden(s: State, what: str) -> None:
        s += what + gen("x")
        if re.search("yes", s["x"]) or s["x"] in "yes or no":
            s += "!"
        s += s["x"]

    path = tmp_path / "hidden.json"
    hidden.save(path, "where")
    backend = ScriptedBackend({"x": ["yes", "yes"]})
    assert hidden.run("here", backend=backend).text() == "hereyes!yes"
    assert Program.load(path).run("here", backend=backend).text() == "hereyesyes"


def test_outputs_told_apart_stay_so_where_their_number_was_bound(tmp_path: Path) -> None:
    @function
    def second(s: State, what: str) -> None:
        s += what + gen("x")
        s += "|" + s["x"][1]

    path = tmp_path / "second.json"
    second.bind(n=2).save(path, "where")
    state = Program.load(path).run("here", backend=ScriptedBackend({"x": ("a", "b")}))
    assert state.text() == "herea|b"
