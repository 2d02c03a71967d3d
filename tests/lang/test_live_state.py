"""Watching a program while it runs: text per variable, objects and events, in a thread and on a loop."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import live_programs
import pytest
from lagging_backend import lagging
from live_programs import CAT, STORY, Cat, describe, pick

from radixlm import (
    OutputError,
    ProgramError,
    ScriptedBackend,
    State,
    UnknownVariable,
    function,
    gen,
)
from radixlm.lang.testing import Answer
from radixlm.runtime.messages import Abort


def test_text_comes_while_it_is_written_and_joined_it_is_the_text() -> None:
    @function
    def tell(s: State) -> None:
        s += "Tell: " + gen("story") + " The end."

    backend = ScriptedBackend({"story": STORY})
    backend.pause()
    with tell.run(stream=True, backend=backend) as s:
        parts = s.text_iter("story")
        first: list[str] = []
        for _ in range(3):
            assert backend.trickle()
            first.append(next(parts))
        assert first == ["Once", " upon", " a"]
        assert backend.open_branches, "it is still being written"
        backend.resume()
        assert "".join(first) + "".join(parts) == STORY == s["story"]
        assert "".join(s.text_iter()) == s.text() == f"Tell: {STORY} The end."
    assert not backend.open_branches
    assert s.text().endswith("The end."), "what is finished stays readable"


@pytest.mark.parametrize("choice", ["apple", "orange"])
def test_d004_a_variable_that_a_choice_decides_and_a_branch_sets_later(choice: str) -> None:
    with lagging({"type": choice, "value": "round and red"}, by_word=True) as backend:
        with pick.run(stream=True, backend=backend) as st:
            assert list(st.text_iter(var_name="type")) == [choice]
            assert "".join(st.text_iter(var_name="value")) == st["value"] == "round and red"
            assert st.ret_value == "round and red"
        late = pick.run(stream=True, backend=backend)
        assert "".join(late.text_iter("value")) == "round and red", "asked for before it is set"
        assert late.finish().get_meta("value").finish_reason == "stop"


def test_several_variables_are_read_side_by_side() -> None:
    @function
    def both(s: State) -> None:
        other = s.copy()
        s += "1: " + gen("one")
        other += "2: " + gen("two")
        s["two"] = other["two"]
        with s.var_scope("block"):
            s += " [" + gen("three") + "]"

    with lagging({"one": "a b c", "two": "d e", "three": "f g"}, by_word=True) as backend:
        s = both.run(stream=True, backend=backend)
        iterators = {name: s.text_iter(name) for name in ("block", "three", "one", "two")}
        texts = {name: "".join(parts) for name, parts in iterators.items()}
    assert texts == {"block": " [f g]", "three": "f g", "one": "a b c", "two": "d e"}


def test_meta_data_comes_with_the_last_text() -> None:
    @function
    def tell(s: State) -> None:
        s += gen("story")

    with lagging({"story": STORY}, by_word=True) as backend:
        s = tell.run(stream=True, backend=backend)
        pairs = list(s.text_iter("story", return_meta_data=True))
    assert "".join(text for text, _ in pairs) == STORY
    assert [meta for _, meta in pairs[:-1]] == [None] * (len(pairs) - 1)
    assert pairs[-1][1] == s.get_meta("story")


def test_events_tell_everything_of_all_branches() -> None:
    @function
    def think(s: State) -> None:
        fs = s.fork(3)
        for i, x in enumerate(fs):
            x += f"{i}: " + gen("v")
        fs.join()
        s += gen("sum")

    with lagging({"v": ["a b", "c d", "e f"], "sum": "all of it"}, by_word=True) as backend:
        s = think.run(stream=True, backend=backend)
        texts: dict[tuple[str, tuple[int, ...]], str] = {}
        ended: list[tuple[int, ...]] = []
        for event in s.event_iter():
            key = (event.name, event.path)
            texts[key] = texts.get(key, "") + event.text
            if event.meta is not None:
                ended.append(event.path)
    assert texts == {
        ("v", (0, 0)): "a b",
        ("v", (0, 1)): "c d",
        ("v", (0, 2)): "e f",
        ("sum", ()): "all of it",
    }
    assert len(ended) == 4
    with pytest.raises(ProgramError, match="no text to stream") as caught:
        list(s.text_iter("v"))
    assert "event_iter" in caught.value.hint


def test_a_name_that_only_forks_set_is_unknown_and_the_note_says_where_to_look() -> None:
    @function
    def think(s: State) -> None:
        s.copy().__iadd__(gen("deep"))

    with lagging({"deep": "x"}, by_word=True) as backend:
        s = think.run(stream=True, backend=backend)
        with pytest.raises(UnknownVariable) as caught:
            list(s.text_iter("deep"))
    assert any("event_iter" in note for note in caught.value.__notes__)


# ---------------------------------------------------------------------------------------------- objects


def test_an_object_grows_and_its_last_value_is_the_instance() -> None:
    with lagging({"cat": CAT}, by_word=True) as backend:
        s = describe.run(stream=True, backend=backend)
        *partial, cat = s.object_iter("cat")
    assert cat == Cat(name="Tom Cat", age=12, likes=["to sleep", "fish"]) == s["cat"]
    assert partial, "it was seen growing"
    for value in partial:
        assert "Tom Cat".startswith(value.get("name", ""))
        assert value.get("age", 12) == 12, "a number comes when it is complete"


def test_an_object_of_a_json_schema_ends_as_parsed_json() -> None:
    @function
    def free(s: State) -> None:
        s += gen("cat", json_schema={"type": "object"})

    with lagging({"cat": CAT}, by_word=True) as backend:
        s = free.run(stream=True, backend=backend)
        assert list(s.object_iter("cat"))[-1] == json.loads(CAT)
    with lagging({"cat": Answer(CAT[:20], "length")}, by_word=True) as backend:
        s = free.run(stream=True, backend=backend)
        with pytest.raises(OutputError, match="was cut"):
            list(s.object_iter("cat"))
        assert s["cat"] == CAT[:20], "as text it is what it is"


def test_an_object_that_a_validator_refuses_raises_in_its_iterator_with_the_line() -> None:
    with lagging({"cat": CAT.replace("12", "99")}, by_word=True) as backend:
        s = describe.run(stream=True, backend=backend)
        with pytest.raises(OutputError, match="so old") as caught:
            list(s.object_iter("cat"))
    assert any(live_programs.__file__ in note for note in caught.value.__notes__)
    assert isinstance(s.error(), OutputError)


def test_what_is_no_json_has_no_object() -> None:
    with lagging({"type": "apple", "value": "x"}, by_word=True) as backend:
        s = pick.run(stream=True, backend=backend)
        with pytest.raises(ProgramError, match="no object"):
            list(s.object_iter("value"))
        s.close()


# ---------------------------------------------------------------------------------------------- on a loop


def test_on_a_loop_other_tasks_run_while_text_comes() -> None:
    async def watch(backend: ScriptedBackend) -> tuple[str, Any, Any]:
        async with await pick.arun(stream=True, backend=backend) as s:
            parts = [text async for text in s.text_async_iter("value")]
            pairs = [pair async for pair in s.text_async_iter("type", return_meta_data=True)]
            await s.afinish()
            assert s.text() == "Pick: apple colour red as fire"
            return "".join(parts), pairs[-1][1], s.ret_value

    async def main(backend: ScriptedBackend) -> list[Any]:
        return await asyncio.gather(*(watch(backend) for _ in range(20)))

    with lagging({"type": "apple", "value": "red as fire"}, delay_s=0, by_word=True) as backend:
        results = asyncio.run(main(backend))
        assert not backend.open_branches
    for text, meta, value in results:
        assert text == value == "red as fire"
        assert meta.finish_reason == "choice"


def test_two_tasks_read_two_variables_of_one_run() -> None:
    @function
    def f(s: State) -> None:
        s += gen("a")
        _ = s["a"]
        s += gen("cat", schema=Cat)

    async def main(backend: ScriptedBackend) -> tuple[str, Any, int]:
        s = f.run(stream=True, backend=backend)

        async def text() -> str:
            return "".join([part async for part in s.text_async_iter("a")])

        async def value() -> Any:
            return [each async for each in s.object_async_iter("cat")][-1]

        async def events() -> int:
            return len([event async for event in s.event_async_iter()])

        return await asyncio.gather(text(), value(), events())  # type: ignore[return-value]

    with lagging({"a": "x y", "cat": CAT}, by_word=True) as backend:
        text, value, num_events = asyncio.run(main(backend))
    assert text == "x y"
    assert value.name == "Tom Cat"
    assert num_events >= 4


def test_cancelling_the_reading_task_aborts_the_run() -> None:
    backend = ScriptedBackend(default="x")
    backend.pause()

    async def watch() -> None:
        async with await pick.arun(stream=True, backend=backend) as s:
            async for _ in s.text_async_iter("value"):
                pass

    async def main() -> None:
        task = asyncio.create_task(watch())
        while not backend.num_waiting and not task.done():
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert not backend.open_branches
    assert sum(isinstance(m, Abort) for m in backend.sent) == 1
