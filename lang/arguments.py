"""What may be said to a program: arguments of its function, sampling defaults, options of the run; and which names are none of these.

Owns the check of a function's signature, the sorting of names into the three kinds, and the errors for wrong ones with the nearest known
name. Must not know runs, states or backends.
"""

from __future__ import annotations

import inspect
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from ..errors import ProgramError
from .sglang_names import PROGRAM_OPTION_NAMES, clean_program_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

RUN_NAMES = frozenset(
    {
        "backend",
        "timeout_s",
        "seed",
        "namespace",
        "strict_text",
        "num_api_spec_tokens",
        "retries",
    }
)
MAX_RETRIES = 100
_REFUSED = (RUN_NAMES - {"retries"}) | {"stream"}  # as parameters: `run` would take them
BATCH_DEFAULTS: tuple[tuple[str, Any], ...] = (
    ("num_threads", "auto"),
    ("progress_bar", None),
    ("generator_style", False),
)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Arguments:
    """The parameters of one program's function."""

    def __init__(self, body: Callable[..., Any]) -> None:
        """ProgramError if `body` is async, a generator, takes no state, or calls a parameter as an option of `run`."""
        self.name = str(getattr(body, "__qualname__", repr(body)))
        if not callable(body):  # pyright: ignore[reportUnnecessaryComparison]
            raise ProgramError(f"{self.name} is no function", hint="Write @function above a def")
        if (
            inspect.iscoroutinefunction(body)
            or inspect.isgeneratorfunction(body)
            or inspect.isasyncgenfunction(body)
        ):
            raise ProgramError(
                f"{self.name} is async or a generator",
                hint="Write a plain function; `await program.arun(...)` runs it on an asyncio loop",
            )
        self._signature = inspect.signature(body)
        parameters = list(self._signature.parameters.values())
        if not parameters or parameters[0].kind is inspect.Parameter.KEYWORD_ONLY:
            raise ProgramError(f"{self.name} takes no state", hint="Its first parameter is `s`")
        for parameter in parameters[1:]:
            if parameter.name in _REFUSED and parameter.kind in _BY_NAME:
                raise ProgramError(
                    f"the parameter {parameter.name!r} of {self.name} is an option of its runs",
                    place=parameter.name,
                    hint="Give it another name",
                )
        self._order = tuple(p.name for p in parameters[1:] if p.kind is _BY_NAME[0])
        self.names = frozenset(p.name for p in parameters[1:] if p.kind in _BY_NAME)
        self._takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)

    def split(
        self, given: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Arguments of the function, sampling defaults, options of the run. A parameter of the function comes first.

        ProgramError for a name that is none of them, SamplingError for a wrong value of an option.
        """
        own: dict[str, Any] = {}
        sampling: dict[str, Any] = {}
        of_run: dict[str, Any] = {}
        for name, value in given.items():
            if name in RUN_NAMES and name not in self.names:
                _check_run_option(name, value)
                of_run[name] = value
            elif name in PROGRAM_OPTION_NAMES and name not in self.names:
                sampling[name] = value
            elif name in self.names or self._takes_any:
                own[name] = value
            else:
                raise self._unknown(name)
        return own, clean_program_options(sampling), of_run

    def check(self, args: Sequence[Any], own: Iterable[str]) -> None:
        """ProgramError if the function cannot be called with these: one is missing, or given twice, or too many."""
        try:
            self._signature.bind(None, *args, **dict.fromkeys(own))
        except TypeError as error:
            raise ProgramError(
                f"{self.name}: {error}",
                place=next((name for name in self.names if f"{name!r}" in str(error)), ""),
                hint=f"It takes {self._listed()}",
            ) from None

    def by_position(self, num_args: int) -> frozenset[str]:
        """Names of the parameters that `num_args` positional arguments fill."""
        return frozenset(self._order[:num_args])

    def check_batch(self, **options: Any) -> None:
        """ProgramError if an option of a batch could as well be meant for the function."""
        for name, default in BATCH_DEFAULTS:
            if name in self.names and options[name] != default:
                raise ProgramError(
                    f"{name!r} is a parameter of {self.name} and an option of run_batch",
                    place=name,
                    hint=f"Give the parameter in the items of the batch or by bind({name}=...)",
                )

    def _unknown(self, name: str) -> ProgramError:
        near = get_close_matches(name, sorted(self.names | PROGRAM_OPTION_NAMES | RUN_NAMES), n=1)
        return ProgramError(
            f"{self.name} has no parameter {name!r}, and no run has such an option",
            place=name,
            hint=f"Did you mean {near[0]}?" if near else f"It takes {self._listed()}",
        )

    def _listed(self) -> str:
        parameters = list(self._signature.parameters.values())[1:]
        shown = [str(p.replace(annotation=p.empty)) for p in parameters]
        return ", ".join(shown) if shown else "no arguments"


def _check_run_option(name: str, value: Any) -> None:
    """ProgramError for a value that a run cannot work with. None means not given."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is None or name == "backend":
        return
    if name == "timeout_s":
        fits, wanted = is_number and value > 0, "a number of seconds above 0"
    elif name == "seed":
        fits, wanted = is_number and isinstance(value, int), "a whole number"
    elif name == "num_api_spec_tokens":
        fits, wanted = is_number and isinstance(value, int) and value > 0, "a number of tokens"
    elif name == "retries":
        fits = is_number and isinstance(value, int) and 0 <= value <= MAX_RETRIES
        wanted = f"a whole number within 0 .. {MAX_RETRIES}"
    elif name == "strict_text":
        fits, wanted = isinstance(value, bool), "True or False"
    else:
        fits, wanted = isinstance(value, str), "a text"
    if not fits:
        raise ProgramError(f"{name}={value!r:.80} is not {wanted}", place=name)
