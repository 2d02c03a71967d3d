"""Random programs as data, a body that carries them out, and a script whose answers depend on the prompt and the seed alone."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from radixlm import EngineDied, State, function, gen, gen_int, select
from radixlm.lang.testing import Request
from radixlm.lang.variable import Variable

Op = tuple[Any, ...]
NAMES = st.sampled_from(["a", "b", "c"])
CONSTANTS = st.sampled_from(["x", "Tell me more. ", "so ", ""])


def _plain() -> st.SearchStrategy[Op]:
    return st.one_of(
        st.tuples(st.just("text"), CONSTANTS),
        st.just(("argument",)),
        st.tuples(st.just("gen"), NAMES, st.sampled_from(["greedy", "seeded", "drawn", "number", "two"])),
        st.tuples(st.just("select"), NAMES),
        st.tuples(st.just("use"), NAMES),
        st.tuples(st.just("set"), NAMES),
        st.tuples(st.just("raise"), NAMES),
    )  # fmt: skip


def _nested(inner: st.SearchStrategy[Op]) -> st.SearchStrategy[Op]:
    blocks = st.lists(inner, max_size=3)
    return st.one_of(
        st.tuples(st.just("if"), NAMES, blocks, blocks),
        st.tuples(st.just("role"), blocks),
        st.tuples(st.just("fork"), st.integers(1, 3), blocks, st.sampled_from(["gather", "concat", ""])),
    )  # fmt: skip


PROGRAMS = st.lists(st.recursive(_plain(), _nested, max_leaves=12), max_size=7)


@function
def carry_out(s: State, ops: Sequence[Op], value: str, one_by_one: bool = False) -> str:
    """Does what `ops` say. `one_by_one`: each child of a fork is waited for before the next begins."""
    for op in ops:
        _carry_out(s, op, value, one_by_one)
    return value


def _carry_out(s: State, op: Op, value: str, one_by_one: bool) -> None:
    kind, rest = op[0], op[1:]
    if kind in ("if", "role", "fork"):
        _carry_out_block(s, kind, rest, value, one_by_one)
    elif kind in ("text", "argument"):
        s += rest[0] if kind == "text" else f"[{value}] "
    elif kind == "gen":
        s += _gen(*rest)
    elif kind == "select":
        s += select(rest[0], ["yes", "no", "yes, but"])
    elif kind == "use":
        s += str(s[rest[0]]) if rest[0] in s else "none "
    elif kind == "set":
        s[rest[0]] = "by hand"
    elif rest[0] in s and "7" in str(s[rest[0]]):
        raise LookupError(rest[0])


def _carry_out_block(s: State, kind: str, rest: Op, value: str, one_by_one: bool) -> None:
    if kind == "fork":
        _fork(s, *rest, value, one_by_one)
        return
    if kind == "if":
        is_so = rest[0] in s and zlib.crc32(str(s[rest[0]]).encode()) % 2
        block, scope = rest[1] if is_so else rest[2], nullcontext()
    else:
        block, scope = rest[0], s.user() if s.open_role() is None else nullcontext()
    with scope:
        for each in block:
            _carry_out(s, each, value, one_by_one)


def _fork(s: State, num: int, block: Sequence[Op], join: str, value: str, one_by_one: bool) -> None:
    group = s.fork(num)
    for index, child in enumerate(group):
        child += f"child {index % 2}: "
        for op in block:
            _carry_out(child, op, value, one_by_one)
        if one_by_one:
            wait_for_all(child)
    if join:
        group.join(join)


def wait_for_all(s: State) -> None:
    """Until all results of a branch are there or failed; raises nothing."""
    branch = s._branch
    for piece in branch.all_pieces():
        if isinstance(piece, Variable):
            branch.run.wait_for(piece)


def _gen(name: str, how: str) -> Any:
    if how == "number":
        return gen_int(name)
    if how == "two":
        return gen(name, n=2)
    if how == "seeded":
        return gen(name, temperature=1.0, seed=5)
    return gen(name, temperature=1.0) if how == "drawn" else gen(name, max_tokens=9)


def answer(request: Request) -> Any:
    """By the exactness contract: the same for the same prompt, and seed where one counts. Some requests fail."""
    seed = ""
    if not request.choices and request.sampling.temperature:
        seed = str(request.sampling.seed)
    number = zlib.crc32(f"{request.prompt} {seed}".encode())
    if number % 29 == 0:
        return EngineDied(f"no luck with {number}")
    if request.choices:
        return request.choices[number % len(request.choices)]
    if request.message.constraint is not None:
        return str(number % 1000)
    texts = tuple(f"t{(number + i) % 100} " for i in range(request.sampling.n))
    return texts if len(texts) > 1 else texts[0]


@dataclass(frozen=True)
class Outcome:
    """What a user can see of a run."""

    text: str
    variables: dict[str, str]
    error: str
    ret_value: Any
    roles: list[dict[str, str]]


def outcome(state: State | None, error: BaseException | None) -> Outcome:
    """Of a state or of what was raised instead of one."""
    if state is None:
        return Outcome("", {}, describe(error), None, [])
    return Outcome(
        _tried(state.text),
        {name: _tried(lambda name=name: repr(state[name])) for name in list(state.keys())},
        describe(error or state.error()),
        state.ret_value,
        _tried(state.messages),
    )


def describe(error: BaseException | None) -> str:
    return "" if error is None else f"{type(error).__name__}: {error}"


def _tried(read: Any) -> Any:
    try:
        return read()
    except Exception as error:  # noqa: BLE001  an outcome like any other
        return describe(error)
