"""Constraints in files: the kind by the file's ending, the text, and the options that choose how it is read.

Owns the endings and the options of `radixlm grammar`. Knows nothing of what the text means: that is its front end's. Heavy modules are
imported when a file is read, so that the command line can show its help quickly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from ..errors import ConfigError

if TYPE_CHECKING:
    from .spec import Spec, Whitespace

KINDS = {
    "json": (".json", ".schema"),
    "regex": (".regex", ".re"),
    "lark": (".lark",),
    "gbnf": (".gbnf",),
    "choices": (".choices",),
}
"""The kinds of constraints, with the endings of their files."""


def _option(default: Any, text: str) -> Any:
    return field(default=default, metadata={"text": text})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintOptions:
    """How a constraint is read. What is None was not given: the command decides."""

    kind: str | None = _option(
        None, "what the file holds, if its ending does not say: json, regex, lark, gbnf or choices"
    )
    regex: str | None = _option(None, "a pattern, in place of a file")
    start: str | None = _option(None, "the rule a Lark grammar starts with; else start")
    whitespace: str | None = _option(
        None, "of JSON: compact, single_space, indented or flexible (any white space)"
    )
    any_order: bool | None = field(
        default=None, metadata={"text": "of JSON: properties in any order"}
    )
    best_effort: bool | None = field(
        default=None,
        metadata={"text": "of JSON: leave out keywords that cannot be enforced, and list them"},
    )


def read_constraint(path: Path | None, options: ConstraintOptions) -> Spec:
    """The constraint in the file `path`, or of `options.regex`.

    A regex ends before the last line break of its file; choices are the lines of theirs that are not empty. ConfigError when the file
    cannot be read, its kind is not known, or an option does not fit it.
    """
    if (path is None) == (options.regex is None):
        raise ConfigError(
            "give one constraint: a file or --regex", place="" if path is None else str(path)
        )
    kind = "regex" if path is None else _kind(path, options.kind)
    _refuse_misplaced(kind, options)
    return _spec(kind, options.regex or "" if path is None else _text(path), options)


def loosened(spec: Spec, options: ConstraintOptions) -> Spec:
    """A JSON Schema with the layout that the options do not fix set free: any white space, any order of properties."""
    from msgspec.structs import replace

    from .spec import JsonSchema

    if not isinstance(spec, JsonSchema):
        return spec
    any_order = True if options.any_order is None else options.any_order
    return replace(
        spec,
        whitespace=spec.whitespace if options.whitespace else "flexible",
        any_order=any_order,
    )


def _kind(path: Path, given: str | None) -> str:
    if given is not None and given not in KINDS:
        raise ConfigError(f"kind={given!r} is none of {', '.join(KINDS)}", place="--kind")
    found = given or next((k for k, ends in KINDS.items() if path.suffix.lower() in ends), None)
    if found is None:
        raise ConfigError(
            f"the ending {path.suffix!r} does not say what this file holds",
            place=str(path),
            hint=f"Add --kind {', '.join(KINDS)}",
        )
    return found


def _refuse_misplaced(kind: str, options: ConstraintOptions) -> None:
    of_json = ("whitespace", "any_order", "best_effort")
    misplaced = [n for n in of_json if kind != "json" and getattr(options, n) is not None]
    if options.start is not None and kind != "lark":
        misplaced.append("start")
    if misplaced:
        name = misplaced[0].replace("_", "-")
        meant = "Lark grammar" if misplaced[0] == "start" else "JSON Schema"
        raise ConfigError(f"--{name} is for a {meant}, and this is of kind {kind}")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"it is not UTF-8: {error}"
        raise ConfigError(f"the file cannot be read: {reason}", place=str(path)) from None


def _spec(kind: str, text: str, options: ConstraintOptions) -> Spec:
    from .spec import Choice, Gbnf, JsonSchema, Lark, Regex

    if kind == "regex":
        return Regex(text.removesuffix("\n").removesuffix("\r"))
    if kind == "lark":
        return Lark(text, options.start or "start")
    if kind == "gbnf":
        return Gbnf(text)
    if kind == "choices":
        return Choice(tuple(dict.fromkeys(filter(None, text.splitlines()))))
    return JsonSchema(
        text,
        any_order=bool(options.any_order),
        whitespace=_whitespace(options.whitespace or "compact"),
        best_effort=bool(options.best_effort),
    )


def _whitespace(name: str) -> Whitespace:
    from .spec import Whitespace

    if name not in get_args(Whitespace):
        raise ConfigError(
            f"whitespace={name!r} is none of {', '.join(get_args(Whitespace))}",
            place="--whitespace",
        )
    return cast("Whitespace", name)
