"""The commands `radixlm grammar ...`: look at constraints without running them.

Owns their names, flags and exit statuses; what they do stands in `reports.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from radixlm.flags import AsJson, PanelCommand, with_fields
from radixlm.grammar.constraint_file import ConstraintOptions

grammar_app = typer.Typer(no_args_is_help=True, help="Look at constraints without running them.")
ConstraintFile = Annotated[
    Path | None,
    typer.Argument(help="A .json schema, .regex, .lark, .gbnf, or .choices (one a line)."),
]
CountingModel = Annotated[
    str | None, typer.Option("--model", "-m", help="Count in this model's tokens; else in bytes.")
]


@grammar_app.command("explain", cls=PanelCommand)
@with_fields(ConstraintOptions)
def explain_grammar(
    file: ConstraintFile = None,
    model: CountingModel = None,
    as_json: AsJson = False,
    **options: Any,
) -> None:
    """Compile a constraint and show what it enforces, forces and ignores; or why it is refused, with status 1."""
    from radixlm.reports import explain_constraint

    if not explain_constraint(file, ConstraintOptions(**options), model, as_json=as_json):
        sys.exit(1)


@grammar_app.command("check", cls=PanelCommand)
@with_fields(ConstraintOptions)
def check_grammar(
    file: ConstraintFile = None,
    text: Annotated[
        Path | None, typer.Option(help="A file with the text; else it is read from standard input.")
    ] = None,
    model: CountingModel = None,
    as_json: AsJson = False,
    **options: Any,
) -> None:
    """Is a text an output of a constraint? Else show where it leaves it and what was expected there.

    JSON may have white space and any order of properties, unless options say otherwise. Status: 0 yes, 1 no, 2 a file is unusable.
    """
    from radixlm.reports import check_against

    sys.exit(check_against(file, ConstraintOptions(**options), text, model, as_json=as_json))
