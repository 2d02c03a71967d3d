"""Questions about the rules of a grammar as a graph: which ones can ever end, what may be empty.

Owns the fixpoint over rules (each rule is looked at again only when a rule that it calls was found to end). A part is taken to end unless
its calls say otherwise: what an intersection or difference leaves is found by the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..expr import Alt, Bytes, Chars, Expr, Lit, Ref, Repeat, Seq


def ending_rules(rules: Mapping[str, Expr]) -> set[str]:
    """The names of the rules that some text can finish. Linear in the size of `rules` times the depth at which calls nest."""
    callers: dict[str, set[str]] = {}
    for name, body in rules.items():
        for called in calls_of(body):
            callers.setdefault(called, set()).add(name)
    ending: set[str] = set()
    work = list(rules)
    while work:
        name = work.pop()
        if name not in ending and _ends(rules[name], ending):
            ending.add(name)
            work += [caller for caller in callers.get(name, ()) if caller not in ending]
    return ending


def calls_of(body: Expr) -> set[str]:
    """The names of the rules that `body` calls by itself."""
    found: set[str] = set()
    seen: set[int] = set()
    work = [body]
    while work:
        expr = work.pop()
        if id(expr) in seen:
            continue
        seen.add(id(expr))
        if isinstance(expr, Ref):
            found.add(expr.name)
        else:
            work += _parts(expr)
    return found


def _parts(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Seq(items) | Alt(items):
            return items
        case Repeat(item):
            return (item,)
        case _:
            return ()


def may_be_empty(body: Expr) -> bool:
    """Whether the empty text may satisfy a part that calls no rules; True too where only the compiler can tell."""

    def decide(expr: Expr, known: Mapping[int, bool]) -> bool:
        match expr:
            case Lit() | Bytes() | Chars():
                return False
            case _:
                return _by_parts(expr, known)

    return _worked_out(body, decide)


def _ends(body: Expr, ending: set[str]) -> bool:
    def decide(expr: Expr, known: Mapping[int, bool]) -> bool:
        match expr:
            case Ref(name):
                return name in ending
            case _:
                return _by_parts(expr, known)

    return _worked_out(body, decide)


def _by_parts(expr: Expr, known: Mapping[int, bool]) -> bool:
    """What holds of a whole if it holds of all parts in a row, of one alternative, of what must come; True of anything else."""
    match expr:
        case Seq(items):
            return all(known[id(item)] for item in items)
        case Alt(items):
            return any(known[id(item)] for item in items)
        case Repeat(item, lo):
            return lo == 0 or known[id(item)]
        case _:
            return True


def _worked_out(body: Expr, decide: Callable[[Expr, Mapping[int, bool]], bool]) -> bool:
    """What `decide` says of `body`, given what it said of the parts, by identity."""
    known: dict[int, bool] = {}
    work = [body]
    while work:
        expr = work[-1]
        missing = [part for part in _parts(expr) if id(part) not in known]
        if missing:
            work += missing
            continue
        work.pop()
        known[id(expr)] = decide(expr, known)
    return known[id(body)]
