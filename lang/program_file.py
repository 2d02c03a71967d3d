"""Programs by the place where they stand: `FILE.py`, `FILE.py:name` or `module:name`, and their arguments as texts.

Owns the search for a file's one program, and how `name=value` becomes an argument. Must not know backends or runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast, get_type_hints

from ..errors import ConfigError, ProgramError
from .arguments import RUN_NAMES
from .function import Program
from .user_code import load_module

_OF_RUN = RUN_NAMES | {"stream"}  # a function with **kwargs takes any other name


def load_program(target: str) -> Program:
    """The program at `target`. Without a name the file must hold exactly one. ConfigError says what is there instead."""
    where, name = _split(target)
    module = load_module(where)
    programs: dict[str, Program[..., Any]] = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, Program) and value.__module__ == module.__name__
    }
    if name:
        found = programs.get(name) or getattr(module, name, None)
        if isinstance(found, Program):
            return cast("Program[..., Any]", found)
        what = "is no program" if hasattr(module, name) else "is not there"
        raise ConfigError(f"{name!r} {what} in {where}", place=target, hint=_known(name, programs))
    if len(programs) == 1:
        return next(iter(programs.values()))
    count = f"{len(programs)} programs" if programs else "no program"
    hint = _known("", programs) + (f", written {where}:NAME" if programs else "")
    raise ConfigError(f"{where} holds {count}", place=target, hint=hint)


def read_arguments(program: Program, pairs: Sequence[str]) -> dict[str, Any]:
    """Arguments from `name=value` texts. ProgramError names one that is missing, unknown, doubled or of the wrong type.

    A value is a text where the parameter takes a str or is not annotated, else what its type makes of it: JSON (so `5`, `true`, `["a"]`,
    `{"street": "Mill Road"}` for a dataclass), or a plain form such as a date's. `name=@file` is the text of a file; `name=@@x` is "@x".
    """
    parameters = dict(list(inspect.signature(program).parameters.items())[1:])
    takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    hints = _hints(program)
    arguments: dict[str, Any] = {}
    for pair in pairs:
        name, is_given, value = pair.partition("=")
        if not is_given:
            raise ProgramError(f"{pair!r} has no value", place=name, hint="Write name=value")
        if name not in parameters and (not takes_any or name in _OF_RUN):
            raise ProgramError(
                f"{program!r} takes no argument {name!r}", place=name, hint=_known(name, parameters)
            )
        if name in arguments:
            raise ProgramError(f"the argument {name!r} is given twice", place=name)
        parameter = parameters.get(name)
        arguments[name] = _value(name, value, hints.get(name, str) if parameter else str)
    for name, parameter in parameters.items():
        is_needed = parameter.default is inspect.Parameter.empty and parameter.kind in (
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            inspect.Parameter.KEYWORD_ONLY,
        )
        if is_needed and name not in arguments:
            raise ProgramError(
                f"{program!r} needs the argument {name!r}", place=name, hint=f"Give {name}=..."
            )
    return arguments


def _split(target: str) -> tuple[str, str]:
    where, colon, name = target.rpartition(":")
    if not colon or not name.isidentifier():  # a colon inside the path
        return target, ""
    return where, name


def _known(name: str, names: Any) -> str:
    if not names:
        return "Nothing of the kind is known here"
    near = get_close_matches(name, list(names), n=1)
    return f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(names)}"


def _value(name: str, text: str, annotation: Any) -> Any:
    if text.startswith("@@"):
        text = text[1:]
    elif text.startswith("@"):
        try:
            text = Path(text[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ProgramError(f"{text[1:]} cannot be read: {error}", place=name) from None
    if annotation is str:
        return text
    from .schema import value_of_text

    try:
        return value_of_text(annotation, text)
    except ValueError as error:
        kind = getattr(annotation, "__name__", str(annotation))
        raise ProgramError(
            f"{name}={text!r:.80} is not a value of type {kind}: {error}", place=name
        ) from None


def _hints(program: Program) -> dict[str, Any]:
    """The types of the parameters, as far as their names can be looked up."""
    try:
        return get_type_hints(inspect.unwrap(program), include_extras=True)
    except (NameError, AttributeError, TypeError):
        return {}
