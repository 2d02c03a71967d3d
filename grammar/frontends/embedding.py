"""Several grammars in one: each one's rules under names of their own.

Owns the renaming of rules and of the calls that name them. What calls nothing stays the same object; so do the rules of the process's
constants, which have one name everywhere. Works without Python recursion.
"""

from __future__ import annotations

from operator import is_

from ..expr import (
    CONSTANT_RULES,
    CONSTANTS,
    Alt,
    Expr,
    Grammar,
    Member,
    Members,
    Ref,
    Repeat,
    Seq,
    ref,
)


def embed(grammar: Grammar, prefix: str, rules: dict[str, Expr]) -> Expr:
    """Add the rules of `grammar` to `rules`, their names led by `prefix`; a call of its start."""
    renamed: dict[int, Expr] = {}
    for name, body in grammar.rules.items():
        if CONSTANT_RULES.get(name) is body:
            rules[name] = body
        else:
            rules[prefix + name] = _renamed(body, prefix, renamed)
    is_constant = CONSTANT_RULES.get(grammar.start) is grammar.rules[grammar.start]
    return ref(grammar.start if is_constant else prefix + grammar.start)


def _renamed(whole: Expr, prefix: str, renamed: dict[int, Expr]) -> Expr:
    """`whole` with every call in it renamed; `renamed` holds what is done, by identity, so that shared parts stay shared."""
    work = [whole]
    while work:
        expr = work[-1]
        missing = [part for part in _parts(expr) if id(part) not in renamed]
        if missing:
            work.extend(missing)
            continue
        work.pop()
        if id(expr) not in renamed:
            parts = tuple(renamed[id(part)] for part in _parts(expr))
            renamed[id(expr)] = _rebuilt(expr, parts, prefix)
    return renamed[id(whole)]


def _parts(expr: Expr) -> tuple[Expr, ...]:
    """The direct parts that may call a rule. Intersections, differences and erasures never do, nor do constants."""
    if id(expr) in CONSTANTS:
        return ()
    match expr:
        case Seq(items) | Alt(items):
            return items
        case Repeat(item):
            return (item,)
        case Members(items, separator):
            return (separator, *(item.text for item in items))
        case _:
            return ()


def _rebuilt(expr: Expr, parts: tuple[Expr, ...], prefix: str) -> Expr:
    if id(expr) in CONSTANTS:
        return expr
    match expr:
        case Ref(name):
            return ref(prefix + name)
        case Seq(items) | Alt(items):
            is_same = all(map(is_, items, parts))
            return expr if is_same else type(expr)(parts)
        case Repeat(item, lo, hi):
            return expr if parts[0] is item else Repeat(parts[0], lo, hi)
        case Members(items, _, lo, hi, clauses, is_ordered):
            separator, *texts = parts
            members = tuple(
                Member(text, item.is_run) for text, item in zip(texts, items, strict=True)
            )
            return Members(members, separator, lo, hi, clauses, is_ordered)
        case _:
            return expr
