"""The names in a Lark grammar: each is defined, is used as what it is, and no terminal needs itself.

Owns those checks and the order in which terminals can be worked out. Knows nothing of what definitions mean.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..grammar_text import GrammarText
from .nodes import Both, Call, Definition, Name, Node, Not, Schema, is_terminal, nodes_in


def check_names(source: GrammarText, definitions: Mapping[str, Definition]) -> None:
    """Check all names in all definitions, used or not. Raises GrammarError."""
    for definition in definitions.values():
        check_body(source, definitions, definition.body, definition)


def check_body(
    source: GrammarText,
    definitions: Mapping[str, Definition],
    body: Node,
    definition: Definition | None = None,
) -> None:
    """Check the names in `body`, of `definition` or (None) of what is ignored."""
    is_lexical = definition is None or is_terminal(definition.name)
    if definition is not None and definition.parameters and is_lexical:
        raise source.error("a template is a rule", definition.at, keyword="template")
    parameters = () if definition is None else definition.parameters
    for node in nodes_in(body):
        if isinstance(node, Name | Call) and node.name not in parameters:
            _check_use(source, definitions, node, is_lexical)
        elif isinstance(node, Call):
            raise source.error(
                "a parameter of a template takes no arguments", node.at, keyword="template"
            )
        elif isinstance(node, Both | Not) and not is_lexical:
            raise source.error("& and ~ belong into terminals", node.at, keyword="&")
        elif isinstance(node, Schema) and is_lexical:
            raise source.error("%json belongs into rules", node.at, keyword="%json")


def _check_use(
    source: GrammarText, definitions: Mapping[str, Definition], use: Name | Call, is_lexical: bool
) -> None:
    kind = "the terminal" if is_terminal(use.name) else "the rule"
    found = definitions.get(use.name)
    if found is None:
        raise source.unknown(f"{kind} {use.name}", use.name, use.at, definitions)
    if is_lexical and not is_terminal(use.name):
        raise source.error(
            f"the rule {use.name} cannot be part of a terminal", use.at, keyword="terminal"
        )
    num_given = len(use.arguments) if isinstance(use, Call) else 0
    if num_given != len(found.parameters):
        raise source.error(
            f"{use.name} takes {len(found.parameters)} arguments, not {num_given}",
            use.at,
            keyword="template",
        )


def terminals_in_order(
    source: GrammarText, definitions: Mapping[str, Definition]
) -> list[Definition]:
    """The terminals, each behind those it is made of. GrammarError for one that needs itself."""
    ordered: list[Definition] = []
    is_done: dict[str, bool] = {}
    for definition in definitions.values():
        work = [(definition, False)] if is_terminal(definition.name) else []
        while work:
            current, is_ready = work.pop()
            if is_ready:
                is_done[current.name] = True
                ordered.append(current)
                continue
            if current.name in is_done:
                continue
            is_done[current.name] = False
            work.append((current, True))
            for node in nodes_in(current.body):
                if isinstance(node, Name):
                    if is_done.get(node.name) is False:
                        raise source.error(
                            f"the terminal {node.name} is part of itself",
                            node.at,
                            keyword="recursion",
                            hint="Only rules, in lower case, may be recursive",
                        )
                    work.append((definitions[node.name], False))
    return ordered
