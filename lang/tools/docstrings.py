"""What a docstring says: of the function, and of each parameter.

Owns a reading of the three common styles. What is not understood stays out of the parameters; nothing here fails.

    Google     Args:\\n    city: where         Sphinx   :param city: where         numpy   Parameters\\n----------\\ncity : str\\n    where
"""

from __future__ import annotations

import inspect
import re

_SECTION = re.compile(
    r"(Args|Arguments|Parameters|Params|Returns?|Yields?|Raises|Examples?|Notes?|References)\s*:?\s*"
)
_OF_PARAMETERS = frozenset({"Args", "Arguments", "Parameters", "Params"})
_SPHINX = re.compile(r":(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")
_ITEM = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:(?:\s+(.*)|$)")


def read_docstring(docstring: str | None) -> tuple[str, dict[str, str]]:
    """The description without its sections, and what is said of each parameter."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    described: list[str] = []
    parameters: dict[str, str] = {}
    section = ""
    current: str | None = None  # the parameter that a line goes on about
    indent = 0  # of the items of the section
    for number, line in enumerate(lines):
        text = line.strip()
        sphinx = _SPHINX.fullmatch(text)
        heading = _heading(lines, number)
        depth = len(line) - len(line.lstrip())
        if sphinx:
            section, current, indent = ":param", str(sphinx[1]), depth
            parameters[current] = sphinx[2]
        elif heading:
            section, current, indent = heading, None, -1
        elif not section:
            described.append(line)
        elif not text or set(text) == {"-"}:
            continue
        elif text.startswith(":"):
            current = None  # :returns: and the like
        elif section in _OF_PARAMETERS and (indent < 0 or depth <= indent):
            indent = depth
            item = _ITEM.fullmatch(text)
            current = item[1] if item else None
            if item:
                parameters[item[1]] = "" if _is_numpy(lines, number, depth) else item[2] or ""
        elif current is not None:
            parameters[current] = f"{parameters[current]} {text}".strip()
    return "\n".join(described).strip(), {name: text for name, text in parameters.items() if text}


def _heading(lines: list[str], number: int) -> str:
    """The section that a line begins: `Args:`, or a word with a line of dashes below it."""
    found = _SECTION.fullmatch(lines[number].strip())
    if not found:
        return ""
    below = lines[number + 1].strip() if number + 1 < len(lines) else ""
    is_one = lines[number].strip().endswith(":") or (below and set(below) == {"-"})
    return found[1] if is_one else ""


def _is_numpy(lines: list[str], number: int, depth: int) -> bool:
    """`city : str` with the description below: what stands behind the colon is the type."""
    if not re.match(r"\s*\*{0,2}\w+ :", lines[number]):
        return False
    below = lines[number + 1] if number + 1 < len(lines) else ""
    return bool(below.strip()) and len(below) - len(below.lstrip()) > depth
