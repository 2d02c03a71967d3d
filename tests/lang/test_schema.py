from __future__ import annotations

import enum
import ipaddress
import json
import typing
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict

import pytest
from pydantic import Base64Bytes, BaseModel, Field, field_validator

from radixlm import OutputError, ProgramError, ScriptedBackend, State, function, gen
from radixlm.lang.schema import TypedSchema, to_spec
from radixlm.lang.testing import Answer
from radixlm.runtime.messages import Output


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    zip_code: str
    city: str


class Person(BaseModel):
    name: str = Field(description="full name")
    age: int = Field(ge=0, le=150)
    address: Address
    tags: list[str] = []

    @field_validator("name")
    @classmethod
    def _is_capitalised(cls, name: str) -> str:
        if not name[0].isupper():
            raise ValueError("a name starts with a capital")
        return name


@dataclass
class Point:
    y: float
    x: float


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Shelf(TypedDict):
    movies: list[Movie]
    best: Movie | None


def schema_of(python_type: Any) -> dict[str, Any]:
    return json.loads(to_spec(python_type).text)


def output(text: str, *, complete: bool = True) -> Output:
    return Output(text, (), "stop" if complete else "length", grammar_complete=complete)


@pytest.mark.parametrize(
    ("python_type", "text", "value"),
    [
        (Person, '{"name":"Ada","age":36,"address":{"zip_code":"1","city":"L"}}',
         Person(name="Ada", age=36, address=Address(zip_code="1", city="L"))),
        (Point, '{"y":1.5,"x":2}', Point(1.5, 2.0)),
        (Movie, '{"title":"M","year":1931}', {"title": "M", "year": 1931}),
        (Shelf, '{"movies":[{"title":"M"}],"best":null}', {"movies": [{"title": "M"}], "best": None}),
        (Literal["a", "b"], '"b"', "b"),
        (Colour, '"blue"', Colour.BLUE),
        (int, "7", 7),
        (float, "7.5", 7.5),
        (bool, "true", True),
        (str, '"x"', "x"),
        (list[int], "[1,2]", [1, 2]),
        (list[Colour], '["red"]', [Colour.RED]),
        (dict[str, int], '{"a":1}', {"a": 1}),
        (int | None, "null", None),
    ],
)  # fmt: skip
def test_a_type_goes_out_as_a_schema_and_comes_back_as_a_value(
    python_type: Any, text: str, value: Any
) -> None:
    typed = TypedSchema(python_type)
    assert typed.decode(output(text)) == value
    assert type(typed.decode(output(text))) is type(value)


def test_fields_keep_their_declared_order() -> None:
    assert list(schema_of(Person)["properties"]) == ["name", "age", "address", "tags"]
    assert list(schema_of(Point)["properties"]) == ["y", "x"]
    assert list(schema_of(Person)["$defs"]["Address"]["properties"]) == ["zip_code", "city"]


def test_declared_objects_are_closed_unless_they_allow_more() -> None:
    class Open(BaseModel, extra="allow"):
        a: int

    class Odd(BaseModel):
        properties: dict[str, int]
        type: Literal["object"]

    assert schema_of(Person)["additionalProperties"] is False
    assert schema_of(Person)["$defs"]["Address"]["additionalProperties"] is False
    assert schema_of(Point)["additionalProperties"] is False
    assert schema_of(Open)["additionalProperties"] is True
    assert schema_of(dict[str, int])["additionalProperties"] == {"type": "integer"}
    odd = schema_of(Odd)["properties"]
    assert odd["properties"]["additionalProperties"] == {"type": "integer"}
    assert set(odd) == {"properties", "type"}


def test_typed_dicts_of_typing_know_their_optional_keys() -> None:
    assert schema_of(Movie)["required"] == ["title"]
    assert typing.is_typeddict(Movie)


def test_what_has_no_schema_is_refused() -> None:
    for bad in (object(), lambda: None, {"type": "integer"}, '{"type": "integer"}'):
        with pytest.raises(ProgramError, match=r"cannot be a schema|takes a Python type"):
            to_spec(bad)


def test_a_cut_text_and_a_refusing_validator_are_output_errors() -> None:
    typed = TypedSchema(Person)
    with pytest.raises(OutputError, match="cut by max_tokens"):
        typed.decode(output('{"name":"A', complete=False))
    with pytest.raises(OutputError, match="starts with a capital") as caught:
        typed.decode(output('{"name":"ada","age":1,"address":{"zip_code":"1","city":"L"}}'))
    assert caught.value.place == "/name"


def test_a_typed_gen_reads_as_an_instance_and_its_error_names_the_line() -> None:
    @function
    def f(s: State) -> None:
        s += gen("p", schema=Point) + " " + gen("many", schema=int, n=2)
        s += gen("cut", schema=Point)

    backend = ScriptedBackend(
        {"p": '{"y":1,"x":2}', "many": ("1", "2"), "cut": Answer('{"y"', "length")}
    )
    st = f.run(backend=backend)
    assert st["p"] == Point(1.0, 2.0)
    assert st["many"] == [1, 2]
    with pytest.raises(OutputError) as caught:
        _ = st["cut"]
    assert any(__file__ in note for note in caught.value.__notes__)
    assert st.text() == '{"y":1,"x":2} 1{"y"'


@pytest.mark.parametrize("python_type", [ipaddress.IPv4Network, list[Base64Bytes]])
def test_types_whose_text_no_grammar_enforces_are_refused(python_type: Any) -> None:
    with pytest.raises(ProgramError, match="of the format"):
        to_spec(python_type)
