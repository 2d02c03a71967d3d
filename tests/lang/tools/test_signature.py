from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import pytest
from pydantic import BaseModel, Field, field_validator

from radixlm import OutputError, ProgramError
from radixlm.lang.tools import tool_of


class Place(BaseModel):
    city: str
    code: int = 0


class Window(TypedDict):
    first: int


def forecast(
    place: Place,
    days: Annotated[int, Field(ge=1, le=9), "how many"] = 1,
    unit: Literal["c", "f"] = "c",
    *,
    within: Window | None = None,
) -> str:
    """The weather of a place.

    More of it.

    Args:
        place: where
            it is
        unit (str): of temperature
    """
    return f"{place.city} {days} {unit} {within}"


def test_a_signature_becomes_a_schema_with_what_docstring_and_annotations_say() -> None:
    tool = tool_of(forecast)
    assert (tool.name, tool.description) == ("forecast", "The weather of a place.\n\nMore of it.")
    properties = tool.parameters["properties"]
    assert tool.parameters["required"] == ["place"]
    assert tool.parameters["additionalProperties"] is False
    assert properties["place"]["description"] == "where it is"
    days = {"type": "integer", "minimum": 1, "maximum": 9, "description": "how many", "default": 1}
    assert properties["days"] == days
    assert properties["unit"]["enum"] == ["c", "f"]
    assert properties["unit"]["description"] == "of temperature"
    assert "title" not in str(tool.parameters)


def test_arguments_are_python_values_and_the_call_gets_them() -> None:
    tool = tool_of(forecast)
    arguments = tool.arguments_of('{"place":{"city":"Rome"},"within":{"first":2}}')
    assert arguments == {"place": Place(city="Rome"), "within": {"first": 2}}
    assert tool.call(arguments) == "Rome 1 c {'first': 2}"


def test_a_field_called_title_is_kept() -> None:
    def book(title: str, enum: str) -> str:
        return title + enum

    assert set(tool_of(book).parameters["properties"]) == {"title", "enum"}


def test_methods_partials_objects_and_positional_parameters_are_called_as_they_should_be() -> None:
    class Shop:
        def price(self, item: str, /, count: int = 1) -> str:
            """What it costs."""
            return f"{item}{count}"

        def __call__(self, x: int) -> int:
            """Double it."""
            return 2 * x

    method = tool_of(Shop().price)
    assert method.call(method.arguments_of('{"item":"a","count":2}')) == "a2"
    called = tool_of(Shop())
    assert (called.name, called.description) == ("Shop", "Double it.")
    assert called.call({"x": 4}) == 8
    filled = tool_of(functools.partial(forecast, place=Place(city="Oslo")))
    assert "place" not in filled.parameters["properties"]
    assert filled.call({"days": 3}).startswith("Oslo 3")


def test_classes_are_tools_that_make_an_instance() -> None:
    @dataclass
    class Ticket:
        """A ticket."""

        seat: int

    model = tool_of(Place)
    assert model.arguments_of('{"city":"Rome","code":4}') == {"city": "Rome", "code": 4}
    assert model.call({"city": "Rome", "code": 4}) == Place(city="Rome", code=4)
    assert tool_of(Ticket).call(tool_of(Ticket).arguments_of('{"seat":1}')) == Ticket(1)


def test_an_async_function_is_known_as_such() -> None:
    async def look(x: int) -> int:
        return x

    assert tool_of(look).is_async
    assert tool_of(functools.partial(look)).is_async
    assert not tool_of(forecast).is_async


def no_annotation(x) -> None:  # type: ignore[no-untyped-def]
    pass


def takes_many(*items: str) -> None:
    pass


def takes_anything(**items: str) -> None:
    pass


def takes_a_function(f: Any, g: type[Place.model_validate]) -> None:  # type: ignore[valid-type]
    pass


def missing_name(x: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821
    pass


@pytest.mark.parametrize(
    ("function", "place"),
    [
        (no_annotation, "no_annotation.x"),
        (takes_many, "takes_many.items"),
        (takes_anything, "takes_anything.items"),
        (missing_name, "missing_name"),
        (7, "tools"),
        (Literal, "Literal"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_with_its_place(function: Any, place: str) -> None:
    with pytest.raises(ProgramError) as caught:
        tool_of(function)
    assert caught.value.place.startswith(place)


class Even(BaseModel):
    n: int

    @field_validator("n")
    @classmethod
    def is_even(cls, n: int) -> int:
        if n % 2:
            raise ValueError("odd")
        return n


def halve(even: Even) -> int:
    return even.n // 2


def test_a_validator_of_an_argument_refuses_with_its_place() -> None:
    with pytest.raises(OutputError, match="odd") as caught:
        tool_of(halve).arguments_of('{"even":{"n":3}}')
    assert caught.value.place == "/even/n"


def test_sphinx_and_numpy_docstrings_are_read() -> None:
    def sphinx(a: int, b: int) -> None:
        """Do it.

        :param a: first
            of two
        :param int b: second
        :returns: nothing
        """

    def numpy(a: int, b: int) -> None:
        """Do it.

        Parameters
        ----------
        a : int
            first
        b : int, optional
            second
            of two

        Returns
        -------
        None
        """

    for function, said in (
        (sphinx, ("first of two", "second")),
        (numpy, ("first", "second of two")),
    ):
        tool = tool_of(function)
        properties = tool.parameters["properties"]
        assert tool.description == "Do it."
        assert (properties["a"]["description"], properties["b"]["description"]) == said
