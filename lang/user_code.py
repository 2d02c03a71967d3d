"""The user's own Python, found by a text: `FILE.py`, `package.module`, and a name in it.

Owns the import of files and modules that are not on the path. Must not know programs, schemas or backends. A file is imported under its
own name, so an `if __name__ == "__main__"` block does not run, and what stands beside it can be imported by it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from ..errors import ConfigError


def load_module(where: str) -> ModuleType:
    """The module of a `.py` file, or of a dotted name found from the working directory. ConfigError if it is not there.

    What the module's own code raises is not caught: its traceback says where.
    """
    path = Path(where)
    if path.suffix == ".py":
        return _from_file(path)
    if not all(part.isidentifier() for part in where.split(".")):
        raise ConfigError(
            f"{where!r} is neither a .py file nor the name of a module", place=where, hint=_HINT
        )
    if "" not in sys.path:
        sys.path.insert(0, "")  # a console script does not look in the current folder
    try:
        return importlib.import_module(where)
    except ModuleNotFoundError as error:
        if error.name != where and not where.startswith(f"{error.name}."):
            raise  # something the module itself imports
        raise ConfigError(f"there is no module {where!r}", place=where, hint=_HINT) from None


_HINT = "Give a file as PROGRAM.py, or a module that can be imported from here"


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ConfigError(f"there is no file {path}", place=str(path))
    name = _free_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} cannot be imported", place=str(path))
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    sys.modules[name] = module  # dataclasses and pydantic look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _free_name(path: Path) -> str:
    """The file's own name, unless that is another module's: a program called random.py must not stand in for the library's."""
    name = path.stem
    there = sys.modules.get(name)
    file = getattr(there, "__file__", None)
    is_same = file is not None and Path(file).resolve() == path.resolve()
    is_taken = name in sys.stdlib_module_names or (there is not None and not is_same)
    return f"{name}_of_the_user" if is_taken else name
