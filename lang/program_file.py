"""Programs by the place where they stand: `FILE.py`, `FILE.py:name` or `module:name`, and their arguments as texts.

Owns the import of a user's file, the search for its one program, and how `name=value` becomes an argument. Must not know backends or
runs. The file is imported under its own name, so a `if __name__ == "__main__"` block does not run.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import ConfigError, ProgramError
from .function import Program


def load_program(target: str) -> Program:
    """The program at `target`. Without a name the file must hold exactly one. ConfigError says what is there instead."""
    where, name = _split(target)
    module = load_module(where)
    programs = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, Program) and value.__module__ == module.__name__
    }
    if name:
        found = getattr(module, name, None)
        if isinstance(found, Program):
            return found
        what = "is no program" if hasattr(module, name) else "is not there"
        raise ConfigError(f"{name!r} {what} in {where}", place=target, hint=_known(name, programs))
    if len(programs) == 1:
        return next(iter(programs.values()))
    count = f"{len(programs)} programs" if programs else "no program"
    hint = _known("", programs) + (f", written {where}:NAME" if programs else "")
    raise ConfigError(f"{where} holds {count}", place=target, hint=hint)


def load_module(where: str) -> ModuleType:
    """The module of a `.py` file, or of a dotted name found from the working directory. ConfigError if it is not there."""
    path = Path(where)
    if path.suffix != ".py":
        sys.path.insert(0, "")
        try:
            return importlib.import_module(where)
        except ModuleNotFoundError as error:
            if not error.name or not where.startswith(error.name):
                raise  # something the module itself imports
            raise ConfigError(
                f"there is no module {where!r}",
                place=where,
                hint="Give a file as PROGRAM.py, or a module that can be imported from here",
            ) from None
    if not path.is_file():
        raise ConfigError(f"there is no file {where}", place=where)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{where} cannot be imported", place=where)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))  # what stands beside it can be imported
    sys.modules[path.stem] = module  # dataclasses and pydantic look their module up
    spec.loader.exec_module(module)
    return module


def read_arguments(program: Program, pairs: Sequence[str]) -> dict[str, Any]:
    """Arguments from `name=value` texts. ProgramError names one that is missing, unknown, doubled or of the wrong type.

    A value is a text where the parameter is annotated as str or not at all, else JSON (so `5`, `true`, `["a"]`). `name=@file` is the
    text of a file; `name=@@x` is the text "@x".
    """
    parameters = dict(list(inspect.signature(program).parameters.items())[1:])
    takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    arguments: dict[str, Any] = {}
    for pair in pairs:
        name, is_given, value = pair.partition("=")
        if not is_given:
            raise ProgramError(f"{pair!r} has no value", place=name, hint="Write name=value")
        if name not in parameters and not takes_any:
            raise ProgramError(
                f"{program!r} takes no argument {name!r}", place=name, hint=_known(name, parameters)
            )
        if name in arguments:
            raise ProgramError(f"the argument {name!r} is given twice", place=name)
        annotation = parameters[name].annotation if name in parameters else str
        arguments[name] = _value(name, value, annotation)
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
    if annotation in (str, "str", inspect.Parameter.empty):
        return text
    try:
        value: Any = json.loads(text)
    except ValueError:
        value = text
    wanted: dict[str, Any] = {
        "int": int,
        "float": (int, float),
        "bool": bool,
        "list": list,
        "dict": dict,
    }
    kind = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    expected = wanted.get(kind.partition("[")[0])
    is_wrong = expected is not None and not isinstance(value, expected)
    if is_wrong or (isinstance(value, bool) and kind in ("int", "float")):
        raise ProgramError(f"{name}={text!r} is not a value of type {kind}", place=name)
    return value
