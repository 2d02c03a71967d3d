"""A Python function as a tool: its name, its description, the schema of its arguments, and the way from a call's JSON to a Python call.

Owns the reading of a signature. Each parameter needs an annotation that is a schema (`lang.schema`); one with a default may be left out.
Descriptions come from the docstring, or from `Annotated[T, "what it is"]`, or from pydantic's `Field(description=)`. A class is a tool too:
its fields are the arguments and calling it makes an instance. Must not know prompts, outputs or how a call is carried out.
"""

from __future__ import annotations

import inspect
import json
import typing
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NotRequired, Required, TypedDict, cast

from ...errors import ProgramError
from ..schema import plain_json, typed_schema
from .docstrings import read_docstring

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...runtime.messages import Output
    from ..schema import TypedSchema
    from .calls import Call

_BY_KEYWORD = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class FunctionTool:
    """One function that a model may call."""

    function: Callable[..., Any]
    name: str
    description: str
    parameters: Mapping[str, Any]
    """The JSON Schema of the arguments, an object."""
    typed: TypedSchema = field(repr=False)
    is_class: bool = False
    positional: tuple[str, ...] = ()
    """Parameters that take no name, in order."""

    @property
    def is_async(self) -> bool:
        """Calling it gives a coroutine."""
        function = self.function
        while isinstance(function, partial):
            function = cast("partial[Any]", function).func
        return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004  an object with an async __call__
        )

    @property
    def on_the_wire(self) -> dict[str, Any]:
        """The tool as requests and chat templates write it."""
        described = {"description": self.description} if self.description else {}
        function = {"name": self.name, **described, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}

    def arguments_of(self, text: str) -> dict[str, Any]:
        """The arguments as Python values, in the order they were written. OutputError if the JSON text or a validator refuses."""
        value = self.typed.value_of(text)
        if not self.is_class:
            return value
        names = [name for name in json.loads(text) if hasattr(value, name)]
        return {name: getattr(value, name) for name in names}

    def call_of(self, output: Output) -> Call:
        """The call whose arguments are an output, as JSON. OutputError if it was cut, or a validator refuses it."""
        from .calls import Call

        self.typed.decode(output)
        return Call(self, output.text, self.arguments_of(output.text))

    def call(self, arguments: Mapping[str, Any]) -> Any:
        """Call the function; what it raises comes through."""
        if self.is_class:
            return self.typed.value_of(plain_json(dict(arguments)))
        named = dict(arguments)
        first: list[Any] = []
        for name in self.positional:
            if name not in named:
                break
            first.append(named.pop(name))
        return self.function(*first, **named)


def tool_of(function: object) -> FunctionTool:
    """The tool of a function, method, partial, callable object or class. ProgramError where its signature cannot be a schema."""
    if isinstance(function, FunctionTool):
        return function
    if not callable(function):
        hint = "A tool is a function with annotations"
        raise ProgramError(f"{function!r:.80} is no function", place="tools", hint=hint)
    try:
        return _remembered(function)
    except TypeError:  # not hashable, such as a method of a list-like object
        return _read(function)


@lru_cache(maxsize=256)
def _remembered(function: Callable[..., Any]) -> FunctionTool:
    return _read(function)


def _read(function: Callable[..., Any]) -> FunctionTool:
    name = _name_of(function)
    description, said = read_docstring(_docstring_of(function))
    if inspect.isclass(function):
        typed = typed_schema(function)
        if typed.schema.get("type") != "object":
            raise ProgramError(f"the class {name} has no fields to be called with", place=name)
        return FunctionTool(function, name, description, _plain(typed.schema), typed, is_class=True)
    parameters = _parameters_of(function, name)
    hints = _hints_of(function, name)
    typed = _typed_arguments(name, parameters, hints)
    said = {**said, **{each: text for each, hint in hints.items() if (text := _noted(hint))}}
    schema = _described(typed.schema, parameters, said)
    only_by_place = inspect.Parameter.POSITIONAL_ONLY
    positional = tuple(p.name for p in parameters if p.kind is only_by_place)
    return FunctionTool(function, name, description, schema, typed, positional=positional)


def _name_of(function: Callable[..., Any]) -> str:
    if isinstance(function, partial):
        return _name_of(cast("partial[Any]", function).func)
    return str(getattr(function, "__name__", type(function).__name__))


def _docstring_of(function: Callable[..., Any]) -> str | None:
    if isinstance(function, partial):
        return _docstring_of(cast("partial[Any]", function).func)
    if inspect.isroutine(function) or inspect.isclass(function):
        return function.__doc__
    return type(function).__call__.__doc__ or type(function).__doc__


def _parameters_of(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        hint = "Write a function around it"
        raise ProgramError(f"{name} has no signature: {error}", place=name, hint=hint) from None
    if isinstance(function, partial):  # what is filled in is not the model's to choose
        filled = cast("partial[Any]", function).keywords
        parameters = [p for p in parameters if p.name not in filled]
    for parameter in parameters:
        if parameter.kind not in (*_BY_KEYWORD, inspect.Parameter.POSITIONAL_ONLY):
            raise ProgramError(
                f"{name} takes {parameter}: what a model may write there has no bound",
                place=f"{name}.{parameter.name}",
                hint="Take a list or a dict as an ordinary parameter",
            )
    return parameters


def _hints_of(function: Callable[..., Any], name: str) -> dict[str, Any]:
    target: Any = function
    while isinstance(target, partial):
        target = cast("partial[Any]", target).func
    if not inspect.isroutine(target):
        target = type(target).__call__
    try:
        return typing.get_type_hints(target, include_extras=True)
    except Exception as error:  # annotations are code: they may raise anything
        raise ProgramError(
            f"the annotations of {name} cannot be read: {error}",
            place=name,
            hint="Under `from __future__ import annotations` their types must stand at the top of the module",
        ) from error


def _typed_arguments(
    name: str, parameters: list[inspect.Parameter], hints: Mapping[str, Any]
) -> TypedSchema:
    fields: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.name not in hints:
            raise ProgramError(
                f"the parameter {parameter.name!r} of {name} has no annotation",
                place=f"{name}.{parameter.name}",
                hint=f"Write {parameter.name}: str, or whatever it is",
            )
        is_needed = parameter.default is inspect.Parameter.empty
        fields[parameter.name] = (Required if is_needed else NotRequired)[hints[parameter.name]]
    arguments: Any = TypedDict(name, fields)  # pyright: ignore[reportArgumentType, reportGeneralTypeIssues]
    arguments.__doc__ = None
    try:
        return typed_schema(arguments)
    except ProgramError as error:
        error.message = f"the arguments of {name}: {error.message}"
        error.place = name
        raise


def _described(
    schema: Mapping[str, Any], parameters: list[inspect.Parameter], said: Mapping[str, str]
) -> dict[str, Any]:
    """The schema with what docstring, annotations and defaults tell of each argument."""
    plain = _plain(schema)
    properties = dict(cast("dict[str, Any]", plain.get("properties", {})))
    for parameter in parameters:
        node = dict(cast("dict[str, Any]", properties[parameter.name]))
        text = node.get("description") or said.get(parameter.name)
        if text:
            node["description"] = text
        default = parameter.default
        if default is not inspect.Parameter.empty and default is not None:
            try:
                node["default"] = json.loads(plain_json(default))
            except ValueError:
                node.pop("default", None)  # it has no JSON form
        properties[parameter.name] = node
    return {**plain, "properties": properties}


def _noted(hint: object) -> str:
    """The text of `Annotated[T, "text"]`."""
    marks = getattr(hint, "__metadata__", ())
    return next((mark for mark in marks if isinstance(mark, str)), "")


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without titles, which only repeat the names."""
    return cast("dict[str, Any]", _without_titles(dict(schema)))


def _without_titles(node: Any, is_map: bool = False) -> Any:
    if isinstance(node, list):
        return [_without_titles(item) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    fields = cast("dict[str, Any]", node)
    kept = ("enum", "const", "default", "examples")
    return {
        key: value if key in kept and not is_map
        else _without_titles(value, key in ("properties", "$defs") and not is_map)
        for key, value in fields.items()
        if is_map or key != "title"
    }  # fmt: skip
