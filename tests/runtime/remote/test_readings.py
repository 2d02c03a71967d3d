"""What a server writes, as outputs and deltas: cut at stop strings, taken out of its wrapping, joined equal to the whole."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixlm.errors import OutputError, ServiceError
from radixlm.grammar.spec import Regex
from radixlm.runtime import messages as m
from radixlm.runtime.remote.readings import Reading
from radixlm.runtime.remote.structured import Wrapped


def read(
    pieces: Sequence[str],
    *,
    stops: tuple[str, ...] = (),
    reason: str = "stop",
    include_stop: bool = False,
    swallowed: str = "",
    wrapped: Wrapped | None = None,
) -> tuple[m.Output, list[str]]:
    given_out: list[str] = []
    sampling = m.SamplingParams(stop=stops, include_stop=include_stop)
    constraint = Regex("x") if wrapped is not None else None
    reading = Reading(
        "it",
        m.Generate("x", sampling=sampling, constraint=constraint),
        lambda delta: given_out.append(delta.text),
        stops=stops,
        swallowed=swallowed,
        wrapped=wrapped,
    )
    for piece in pieces:
        reading.push(0, piece)
    reading.end(0, reason)
    return reading.outputs()[0], given_out


@given(
    st.lists(st.text("ab\n ", max_size=4), max_size=8),
    st.sampled_from([(), ("\n",), ("ab", "b\n"), ("\n\n", "a")]),
    st.booleans(),
    st.sampled_from(["", " ", "\n "]),
)
def test_deltas_joined_are_the_text_and_nothing_is_taken_back(pieces: list[str], stops: tuple[str, ...], include: bool, swallowed: str) -> None:  # fmt: skip
    output, given_out = read(pieces, stops=stops, include_stop=include, swallowed=swallowed)
    assert "".join(given_out) == output.text
    whole = "".join(pieces).removeprefix(swallowed)
    found = [(whole.find(stop), -len(stop), stop) for stop in stops if stop in whole]
    if found:
        at, _, stop = min(found)
        assert output.text == whole[: at + len(stop) if include else at]
        assert (output.finish_reason, output.matched_stop) == ("stop", stop)
    else:
        assert output.text == whole


def test_what_may_become_a_stop_string_waits() -> None:
    _, given_out = read(["one\n", "two\n\n", "rest"], stops=("\n\n",))
    assert given_out == ["one", "\ntwo"]


def test_a_wrapped_answer_comes_at_once() -> None:
    output, given_out = read(['{"answ', 'er": "a', 'b"}'], wrapped=Wrapped("text"))
    assert (output.text, given_out, output.grammar_complete) == ("ab", ["ab"], True)
    cut, _ = read(['{"answ', 'er": "a'], wrapped=Wrapped("text"), reason="length")
    assert (cut.text, cut.finish_reason, cut.grammar_complete) == ("a", "length", False)


@pytest.mark.parametrize("reason", ["end_turn", "stop_sequence", "tool_calls", "eos"])
def test_every_way_to_stop_is_stop(reason: str) -> None:
    assert read(["x"], reason=reason)[0].finish_reason == "stop"
    assert read(["x"], reason="max_tokens")[0].finish_reason == "length"


def test_a_refusal_and_an_unknown_end_are_errors_with_the_text_so_far() -> None:
    with pytest.raises(OutputError, match="refusal") as raised:
        read(["half"], reason="refusal")
    assert raised.value.partial == "half"  # type: ignore[attr-defined]
    with pytest.raises(ServiceError, match="'lunch', which is unknown"):
        read(["half"], reason="lunch")


def test_an_answer_without_an_end_or_with_too_many_outputs_is_no_answer() -> None:
    reading = Reading("it", m.Generate("x", sampling=m.SamplingParams(n=2)), None)
    reading.push(0, "a")
    reading.end(0, "stop")
    with pytest.raises(ServiceError, match="broke off"):
        reading.outputs()
    with pytest.raises(ServiceError, match="sent output 2, 2 were asked for"):
        reading.push(2, "c")
