"""Stop strings: the first match to complete, however the bytes are cut into tokens."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from radixlm.runtime.stop_strings import StopMatch, StopStrings

small = st.binary(min_size=1, max_size=4).map(lambda data: bytes(97 + b % 2 for b in data))


def first_to_complete(text: bytes, stops: list[bytes]) -> StopMatch | None:
    for end in range(1, len(text) + 1):
        found = [stop for stop in stops if text[:end].endswith(stop)]
        if found:
            longest = max(found, key=len)
            return StopMatch(longest, end - len(longest), end)
    return None


@given(st.lists(small, min_size=1, max_size=3), st.lists(small, max_size=12))
def test_the_answer_does_not_depend_on_where_tokens_end(stops, tokens):
    search, found = StopStrings(stops), None
    for token in tokens:
        found = search.push(token)
        if found:
            break
    assert found == first_to_complete(b"".join(tokens), stops)


def test_matches_that_were_passed_over_do_not_come_back():
    search = StopStrings([b"ab", b"long stop string"])
    assert search.push(b"xab") == StopMatch(b"ab", 1, 3)
    assert search.push(b"c") is None
    assert search.push(b"ab") == StopMatch(b"ab", 4, 6)


def test_a_copy_continues_on_its_own():
    search = StopStrings([b"end"])
    search.push(b"e")
    twin = search.copy()
    assert twin.push(b"nd") == StopMatch(b"end", 0, 3)
    assert search.push(b"xx") is None
