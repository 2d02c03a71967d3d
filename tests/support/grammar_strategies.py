"""Random small grammars for property tests: regular ones, recursive ones, with products and counted repeats."""

from __future__ import annotations

from hypothesis import strategies as st

from radixlm.grammar.expr import (
    Alt,
    And,
    Bytes,
    Chars,
    Expr,
    Grammar,
    Lit,
    Minus,
    Ref,
    Repeat,
    Seq,
)

LETTERS = b"ab"

_leaves = st.one_of(
    st.sampled_from([b"a", b"b", b"ab", b"ba", b"aab", b""]).map(Lit),
    st.sampled_from([b"a", b"b", b"ab"]).map(
        lambda letters: Bytes(sum(1 << byte for byte in letters))
    ),
    st.sampled_from([((0x61, 0x61),), ((0x61, 0x62),)]).map(Chars),
)


def _bounds() -> st.SearchStrategy[tuple[int, int | None]]:
    pairs = st.tuples(st.integers(0, 4), st.integers(0, 4)).map(lambda pair: (min(pair), max(pair)))
    return st.one_of(pairs, st.integers(0, 3).map(lambda lo: (lo, None)))


def _wider(inner: st.SearchStrategy[Expr], *, has_products: bool) -> st.SearchStrategy[Expr]:
    lists = st.lists(inner, min_size=1, max_size=3).map(tuple)
    kinds = [
        lists.map(Seq),
        lists.map(Alt),
        st.tuples(inner, _bounds()).map(lambda pair: Repeat(pair[0], *pair[1])),
    ]
    if has_products:
        kinds += [
            st.lists(inner, min_size=1, max_size=2).map(lambda items: And(tuple(items))),
            st.tuples(inner, inner).map(lambda pair: Minus(*pair)),
        ]
    return st.one_of(kinds)


def regular_exprs() -> st.SearchStrategy[Expr]:
    """Expressions without calls."""
    return st.recursive(_leaves, lambda inner: _wider(inner, has_products=True), max_leaves=8)


@st.composite
def grammars(draw: st.DrawFn) -> Grammar:
    """One to three rules that call one another in any way, left recursion included."""
    names = ["start", "x", "y"][: draw(st.integers(1, 3))]
    calls = st.one_of(
        st.sampled_from([Ref(name) for name in names]), st.sampled_from(names).map(Ref)
    )  # shared or not
    leaves = st.one_of(_leaves, calls, regular_exprs())
    bodies = st.recursive(leaves, lambda inner: _wider(inner, has_products=False), max_leaves=6)
    return Grammar({name: draw(bodies) for name in names}, "start")
