"""What the compiler knows of a grammar before it builds states: order, nullability, sharing, size, recursion.

Owns one pass over the expression DAG (each shared object visited once, without Python recursion, so nesting has no depth limit here) and
the decisions that follow from it: which parts become regions (subroutines), which repeats are unrolled and which are counted. Knows
nothing of states or tokens.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import GrammarError
from .expr import (
    EMPTY,
    Alt,
    And,
    Bytes,
    Chars,
    Erase,
    Expr,
    Grammar,
    Limits,
    Lit,
    Members,
    Minus,
    Ref,
    Repeat,
    Seq,
)

SHARED_SIZE_MIN = 24  # a shared part larger than this is built once, as a region
UNROLL_SIZE_MAX = (
    64  # a repeat whose copies together stay below this is unrolled; others are counted
)
_PRODUCT_SIZE = 200  # what an intersection or difference is taken to need: always worth sharing
_REGION_SIZE = 2  # what a call costs in its caller
# Leaves are never visited on their own: there may be very many, and nothing is decided about them.
_LEAVES = (Lit, Bytes)


class Analysis:
    """Facts about every expression reachable from the grammar's start; expressions are known by identity."""

    def __init__(self, grammar: Grammar, limits: Limits) -> None:
        self.grammar = grammar
        self.limits = limits
        self.order: list[Expr] = []  # parts before what contains them (recursive calls excepted)
        self.recursive: set[int] = (
            set()
        )  # what contains itself: rule expressions, or calls shared as objects
        self._visit_all()
        self._check_products()
        self._nullable: dict[int, bool] = {}  # filled by `find_nullable`
        self._uses = self._count_uses()
        self._sizes: dict[int, int] = {}
        self._regions: set[int] = set(self.recursive)
        for expr in self.order:
            self._sizes[id(expr)] = self._size(expr)
            is_shared = self._uses[id(expr)] > 1 and not isinstance(expr, Ref)
            if is_shared and self._sizes[id(expr)] > SHARED_SIZE_MIN:
                self._regions.add(id(expr))

    def target(self, expr: Expr) -> Expr:
        """`expr`, or what it finally calls if it is a Ref."""
        seen: set[int] = set()
        while isinstance(expr, Ref) and id(expr) not in self._regions and id(expr) not in seen:
            seen.add(id(expr))
            expr = self.rule(expr)
        return expr

    def rule(self, call: Ref) -> Expr:
        """The expression of the rule that `call` names."""
        found = self.grammar.rules.get(call.name)
        if found is None:
            raise GrammarError(
                f"the grammar calls a rule {call.name!r} that it does not define", keyword=call.name
            )
        return found

    def is_region(self, expr: Expr) -> bool:
        """Whether `expr` is built once and called."""
        return id(expr) in self._regions

    def is_counted(self, expr: Repeat) -> bool:
        """Whether `expr` becomes a counted loop; otherwise its copies are built."""
        bound = expr.lo if expr.hi is None else expr.hi
        return bound > 1 and bound * self._size_in_parent(expr.item) > UNROLL_SIZE_MAX

    def children(self, expr: Expr) -> tuple[Expr, ...]:
        """The direct parts of `expr`, leaves left out."""
        if isinstance(expr, Seq | Alt | And):
            return tuple(item for item in expr.items if type(item) not in _LEAVES)
        if isinstance(expr, Minus):
            return tuple(item for item in (expr.keep, expr.drop) if type(item) not in _LEAVES)
        if isinstance(expr, Members):
            texts = (*(item.text for item in expr.items), expr.separator)
            return tuple(text for text in texts if type(text) not in _LEAVES)
        if isinstance(expr, Repeat | Erase | Ref):
            part = self.rule(expr) if isinstance(expr, Ref) else expr.item
            return () if isinstance(part, _LEAVES) else (part,)
        return ()

    def _visit_all(self) -> None:
        start = Ref(self.grammar.start)
        self.start = start
        is_done: dict[int, bool] = {}
        work: list[tuple[Expr, bool]] = [(start, False)]
        while work:
            expr, is_closing = work.pop()
            if is_closing:
                is_done[id(expr)] = True
                self.order.append(expr)
                continue
            if id(expr) in is_done:
                continue
            if len(is_done) >= self.limits.expressions:
                limit = self.limits.expressions
                raise GrammarError(
                    f"the grammar has more than limits.expressions={limit} parts",
                    keyword="expressions",
                )
            is_done[id(expr)] = False
            self._check_repeat(expr)
            work.append((expr, True))
            for child in reversed(self.children(expr)):
                done = is_done.get(id(child))
                if done is None:
                    work.append((child, False))
                elif not done:
                    self.recursive.add(id(child))

    def check_members(self, expr: Members) -> None:
        """GrammarError for a set that has no meaning; nullability must be known."""
        bound = max(expr.lo, expr.hi or 0)
        if expr.lo < 0 or bound > self.limits.repeat_bound:
            raise GrammarError(
                f"a set of {expr.lo} to {expr.hi} members exceeds limits.repeat_bound={self.limits.repeat_bound}",
                keyword="repeat_bound",
            )
        texts = [item.text for item in expr.items]
        if expr.separator != EMPTY:
            texts.append(expr.separator)
        if any(self.accepts_empty(text) for text in texts):
            raise GrammarError(
                "a member of a set, or their separator, may be empty", keyword="members"
            )
        if any(
            not 0 <= item < len(expr.items)
            for clause in expr.clauses
            for item in (*clause.needs, *clause.bars)
        ):
            raise GrammarError("a clause names a member that is not there", keyword="members")

    def _check_repeat(self, expr: Expr) -> None:
        if isinstance(expr, Repeat):
            bound = max(expr.lo, expr.hi or 0)
            if expr.lo < 0 or (expr.hi is not None and expr.hi < expr.lo):
                raise GrammarError(
                    f"a repeat of {expr.lo} to {expr.hi} times has no meaning", keyword="repeat"
                )
            if bound > self.limits.repeat_bound:
                limit = self.limits.repeat_bound
                raise GrammarError(
                    f"a repeat of {bound} times exceeds limits.repeat_bound={limit}",
                    keyword="repeat_bound",
                )

    def _check_products(self) -> None:
        has_ref = set(self.recursive)  # only a call leads back to what contains it
        for expr in self.order:
            is_called = isinstance(expr, Ref | Members)
            if is_called or any(id(child) in has_ref for child in self.children(expr)):
                has_ref.add(id(expr))
                if isinstance(expr, And | Minus | Erase):
                    raise GrammarError(
                        "an intersection or difference may not contain rule calls or sets of members",
                        keyword="and",
                    )

    def find_nullable(self, products: Mapping[int, bool]) -> None:
        """Decide which expressions accept the empty string; `products` says it of every And, Minus and Erase."""
        known = self._nullable = {id(expr): products.get(id(expr), False) for expr in self.order}
        is_changed = True
        while is_changed:  # parts come before wholes, so recursion alone asks for more rounds
            is_changed = False
            for expr in self.order:
                if not known[id(expr)] and self._is_nullable(expr, known):
                    known[id(expr)] = True
                    is_changed = bool(self.recursive)

    def accepts_empty(self, expr: Expr) -> bool:
        """Whether `expr` accepts the empty string."""
        return not expr.data if isinstance(expr, Lit) else self._nullable.get(id(expr), False)

    def _is_nullable(self, expr: Expr, known: dict[int, bool]) -> bool:
        def is_known(part: Expr) -> bool:
            return not part.data if isinstance(part, Lit) else known.get(id(part), False)

        if isinstance(expr, Repeat):
            return expr.lo == 0 or is_known(expr.item)
        if isinstance(expr, Alt):
            return any(map(is_known, expr.items))
        if isinstance(expr, Seq):
            return all(map(is_known, expr.items))
        if isinstance(expr, Ref):
            return is_known(self.rule(expr))
        if isinstance(expr, Members):
            return expr.lo == 0 and any(not clause.needs for clause in expr.clauses)
        return False

    def _count_uses(self) -> dict[int, int]:
        uses = {id(expr): 0 for expr in self.order}
        for expr in reversed(self.order):
            times = max(uses[id(expr)], 1) if isinstance(expr, Ref) else 1
            for child in self.children(expr):
                uses[id(child)] += times
        return uses

    def _size_in_parent(self, expr: Expr) -> int:
        return (
            _REGION_SIZE if id(expr) in self._regions else self._sizes.get(id(expr), _REGION_SIZE)
        )

    def _size(self, expr: Expr) -> int:
        if isinstance(expr, Chars):
            return 4 + len(expr.ranges) if expr.ranges and expr.ranges[-1][1] > 0x7F else 1
        if isinstance(expr, And | Minus | Erase):
            return _PRODUCT_SIZE
        if isinstance(expr, Members):
            return _REGION_SIZE * len(expr.items)
        inner = len(expr.items) if isinstance(expr, Seq | Alt) else 1
        inner = max(inner, sum(map(self._size_in_parent, self.children(expr))))
        if isinstance(expr, Repeat):
            if self.is_counted(expr):
                return _REGION_SIZE
            return inner * max(1, expr.lo if expr.hi is None else expr.hi) + 1
        return max(inner, 1)
