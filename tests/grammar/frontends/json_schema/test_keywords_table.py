"""Each keyword by a table of texts that pass and texts that fail."""

from __future__ import annotations

import pytest
from schema_checks import ok, refused

CASES = {
    "any value": ({}, ["null", "true", "0", "-1.5e3", '"x"', "[]", '[1,{"a":[null]}]', '{"a":{}}'], ["", "nul", "01", "[1,]", "{a:1}", " 1", "1 "]),
    "true": (True, ["null", "[{}]"], ["", "tru"]),
    "type": ({"type": "boolean"}, ["true", "false"], ["null", "0", '"true"']),
    "type list": ({"type": ["string", "null"]}, ['""', "null"], ["0", "[]"]),
    "integer": ({"type": "integer"}, ["0", "-7", "12345678901234567890"], ["1.0", "1e2", "01", "+1", "-", "-0", "1" * 41]),
    "number": ({"type": "number"}, ["0", "-0", "1.50", "1e10", "1E+100", "-3e-7", "0.0"], [".5", "1.", "1e", "1e999", "NaN", "- 1", "0x1", "1" * 41]),
    "keywords of other types do not matter": ({"minLength": 3, "minimum": 5}, ["null", "true", "[]", '"abc"', "5"], ['"ab"', "4"]),
    "enum": ({"enum": ["a", 1, 1.5, True, None, "", {"k": [1, 2]}]}, ['"a"', "1", "1.5", "true", "null", '""', '{"k":[1,2]}'], ['"b"', "false", "1.0", "{}", '{"k":[1]}']),
    "const keeps its spelling": ({"const": 1.0}, ["1.0"], ["1", "1.00", "true"]),
    "enum filtered by its siblings": ({"enum": ["ab", "abc", 5, 50, None], "type": ["string", "integer"], "minLength": 3, "maximum": 9}, ['"abc"', "5"], ['"ab"', "50", "null"]),
    "enum strings are escaped where JSON demands": ({"enum": ['q"q', "new\nline", "C:\\t", "\u0001", "naïve"]}, ['"q\\"q"', '"new\\nline"', '"C:\\\\t"', '"\\u0001"', '"naïve"'], ['"q"q"', '"new\nline"']),
    "anyOf": ({"anyOf": [{"type": "null"}, {"type": "boolean"}]}, ["null", "true"], ["nulltrue", '"null"', "0"]),
    "anyOf with siblings": (
        {"type": "object", "properties": {"k": {"type": "string"}, "m": {"type": "string"}, "a": {"type": "string"}}, "additionalProperties": False, "anyOf": [{"required": ["m"]}, {"required": ["a"]}]},
        ['{"k":"x","m":"y"}', '{"a":"z"}', '{"m":"","a":""}'],
        ['{"k":"x"}', "{}", '{"m":1}', '{"m":"","z":1}', "42"],
    ),
    "an impossible branch is dropped": ({"anyOf": [{"type": "integer", "minimum": 5, "maximum": 3}, {"type": "null"}]}, ["null"], ["4"]),
    "allOf": ({"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {"type": "integer"}}, "required": ["b"]}], "type": "object"}, ['{"a":"x","b":1}'], ['{"a":"x"}', '{"b":1}', '{"a":1,"b":1}']),
    "allOf of one property": ({"type": "object", "required": ["a"], "allOf": [{"properties": {"a": {"minimum": 3}}}, {"properties": {"a": {"type": "integer", "maximum": 5}}}]}, ['{"a":3}', '{"a":5}'], ['{"a":2}', '{"a":6}', '{"a":"x"}']),
    "oneOf tagged": ({"oneOf": [{"properties": {"t": {"const": "a"}, "n": {"type": "integer"}}, "required": ["t", "n"]}, {"properties": {"t": {"const": "b"}}, "required": ["t"]}], "type": "object"}, ['{"t":"a","n":1}', '{"t":"b"}', '{"t":"b","n":"x"}'], ['{"t":"a"}', '{"t":"c"}', '{"n":1}']),
    "oneOf overlapping": ({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 2}]}, ["1", "2.5", "-3"], ["2", "3", "1.5", "2.0"]),
    "not": ({"type": "string", "not": {"enum": ["x", "yy"]}}, ['""', '"y"', '"xx"', '"X"'], ['"x"', '"yy"', '"\\u0078"', "1"]),
    "not required": ({"type": "object", "properties": {"a": True, "b": True}, "additionalProperties": False, "not": {"required": ["a", "b"]}}, ["{}", '{"a":1}', '{"b":1}'], ['{"a":1,"b":1}']),
    "if then else": (
        {"type": "object", "properties": {"k": {"enum": ["p", "q"]}, "n": {"type": "integer"}}, "required": ["k"], "additionalProperties": False, "if": {"properties": {"k": {"const": "p"}}}, "then": {"required": ["n"]}, "else": {"properties": {"n": False}}},
        ['{"k":"p","n":1}', '{"k":"q"}'],
        ['{"k":"p"}', '{"k":"q","n":1}', "{}"],
    ),
    "minLength and maxLength count code points": ({"type": "string", "minLength": 2, "maxLength": 3}, ['"ab"', '"é😀"', '"\\n\\t"', '"\\ud83d\\ude00a"'], ['"a"', '"😀"', '"abcd"', '"\\u00e9"']),
    "pattern is searched for": ({"type": "string", "pattern": "b+"}, ['"b"', '"abbc"', '"é\\nb"'], ['""', '"aac"']),
    "pattern speaks of the decoded text": ({"type": "string", "pattern": '^a["\\\\\\n]é$'}, ['"a\\"é"', '"a\\\\é"', '"a\\n\\u00e9"'], ['"aé"', '"a\\té"']),
    "pattern with lengths": ({"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 3}, ['"ab"', '"abc"'], ['"a"', '"abcd"', '"AB"']),
    "unanchored pattern with lengths": ({"type": "string", "pattern": "ab", "maxLength": 4}, ['"ab"', '"xaby"', '"aabb"'], ['"a"', '"xxxab"', '"ba"']),
    "minimum and maximum": ({"type": "integer", "minimum": -123, "maximum": 42}, ["-123", "-1", "0", "42", "-99"], ["-124", "43", "100", "-0123", "42.5"]),
    "exclusive bounds": ({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10}, ["1", "9"], ["0", "10"]),
    "exclusive bounds of draft 4": ({"type": "integer", "minimum": 0, "exclusiveMinimum": True, "maximum": 10, "exclusiveMaximum": False}, ["1", "10"], ["0", "11"]),
    "decimal bounds": ({"type": "number", "minimum": 0.5, "exclusiveMaximum": 10.25}, ["0.5", "0.50", "1", "10.249", "10.2", "1e0", "9.9e0", "5e-1", "1.02e1"], ["0.4", "0.49", "0", "10.25", "10.3", "11", "1e1e", "1.025e1", "2e1", "4e-1", "-1"]),
    "multipleOf": ({"type": "integer", "multipleOf": 5}, ["0", "5", "-10", "125"], ["7", "1", "51"]),
    "multipleOf decimal": ({"type": "number", "multipleOf": 0.01}, ["0", "1", "1.5", "0.25", "-3.140"], ["0.001", "3.141"]),
    "items": ({"type": "array", "items": {"type": "integer"}}, ["[]", "[1]", "[1,2]"], ['["1"]', "[1,]", "[,1]", "[1 2]", "{}"]),
    "minItems and maxItems": ({"type": "array", "items": {"type": "null"}, "minItems": 2, "maxItems": 3}, ["[null,null]", "[null,null,null]"], ["[]", "[null]", "[null,null,null,null]"]),
    "prefixItems": ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False}, ["[]", "[1]", '[1,"a"]'], ['["a"]', '[1,"a",2]']),
    "prefixItems of an older draft": ({"type": "array", "items": [{"type": "integer"}], "additionalItems": {"type": "null"}, "minItems": 1}, ["[1]", "[1,null,null]"], ["[]", "[null]", "[1,2]"]),
    "contains": ({"type": "array", "contains": {"const": 1}, "maxItems": 3}, ["[1]", "[0,1]", "[1,1,1]"], ["[]", "[2]", "[0,0,0,1]"]),
    "minContains and maxContains": ({"type": "array", "items": {"enum": [0, 1]}, "contains": {"const": 1}, "minContains": 1, "maxContains": 2}, ["[1]", "[0,1,0,1,0]"], ["[]", "[0]", "[1,1,1]"]),
    "uniqueItems of a small set": ({"type": "array", "items": {"enum": ["a", "b", 1]}, "uniqueItems": True, "minItems": 1}, ['["a"]', '["b",1,"a"]'], ["[]", '["a","a"]', '["a","b",1,"a"]']),
    "properties in their order": ({"type": "object", "properties": {"o": {"type": "integer"}, "r": {"type": "integer"}, "s": {"type": "integer"}}, "required": ["r"], "additionalProperties": False}, ['{"r":1}', '{"o":1,"r":2,"s":3}', '{"r":1,"s":2}'], ["{}", '{"o":1}', '{"s":1,"r":2}', '{"r":1,}', '{,"r":1}', '{"r":1,"r":2}', '{"r":1,"x":1}']),
    "optional properties only": ({"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "additionalProperties": False}, ["{}", '{"a":1}', '{"c":1}', '{"a":1,"c":2}', '{"a":1,"b":2,"c":3}'], ['{"b":1,"a":2}', '{,"c":1}', '{"a":1,}']),
    "additional properties follow and do not repeat declared ones": ({"type": "object", "properties": {"a": {"const": "x"}, "é/": {}}, "required": ["a"]}, ['{"a":"x"}', '{"a":"x","b":1}', '{"a":"x","aa":1,"":2}'], ['{"a":"x","a":"y"}', '{"b":1,"a":"x"}', '{"a":"x","\\u00e9\\/":1,"é/":2}', '{"b":1}']),
    "additionalProperties as a schema": ({"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": {"type": "integer"}}, ["{}", '{"a":null,"b":1}', '{"z":1,"y":2}'], ['{"b":null}', '{"a":1}', '{"b":1,"a":1}']),
    "required without properties": ({"type": "object", "required": ["p", "q"], "additionalProperties": {"type": "integer"}}, ['{"p":1,"q":2}', '{"q":1,"x":5,"p":2}'], ['{"p":1}', '{"p":1,"q":"x"}', "{}"]),
    "names with quotes and escapes": ({"type": "object", "properties": {'a "b"': {}, "back\\slash": {}, "名前": {}}, "required": ['a "b"', "back\\slash", "名前"], "additionalProperties": False}, ['{"a \\"b\\"":1,"back\\\\slash":2,"名前":3}'], ['{"a \\"b\\"":1}']),
    "patternProperties": ({"type": "object", "patternProperties": {"^(yes|no)$": {"type": "string"}, "^x-": True}, "additionalProperties": False}, ["{}", '{"yes":"a"}', '{"no":"b","x-t":[1]}'], ['{"maybe":"a"}', '{"yes":1}', '{"yesno":"a"}']),
    "patternProperties overlapping": ({"type": "object", "patternProperties": {"a": {"minimum": 2}, "b": {"type": "integer"}}, "additionalProperties": False}, ['{"ab":2}', '{"a":"x"}', '{"b":1}'], ['{"ab":1}', '{"ab":"x"}', '{"a":1}', '{"c":1}']),
    "patternProperties also rule declared names": ({"type": "object", "properties": {"x1": {"minimum": 0}}, "patternProperties": {"^x": {"type": "integer"}}}, ['{"x1":1}', '{"y":"a"}'], ['{"x1":"a"}', '{"x1":-1}', '{"x2":"a"}']),
    "some property must break a pattern's rule": ({"type": "object", "not": {"patternProperties": {"^x": {"type": "string"}}}}, ['{"x1":1}', '{"y":"a","x":2}', '{"x":"s","x2":null}'], ["{}", '{"x":"s"}', '{"y":1}']),
    "some property must break the rule of the others": ({"type": "object", "properties": {"a": {}, "b": {}}, "not": {"properties": {"a": {}}, "additionalProperties": {"type": "integer"}}}, ['{"z":"s"}', '{"b":"s"}', '{"a":1,"z":1,"y":null}'], ["{}", '{"z":1}', '{"a":"s"}', '{"b":1}']),
    "properties come in the order of the schema's text": ({"oneOf": [{"properties": {"t": {"const": 1}, "u": {}}, "required": ["t"]}], "type": "object", "properties": {"a": {}, "t": {}}, "allOf": [{"allOf": [{"properties": {"m": {}}}]}, {"properties": {"n": {}}}]}, ['{"t":1,"u":2,"a":3,"m":4,"n":5}'], ['{"a":3,"t":1}', '{"t":1,"m":4,"u":2}', '{"t":1,"n":5,"m":4}']),
    "propertyNames": ({"type": "object", "propertyNames": {"pattern": "^[A-Z]+$", "maxLength": 2}}, ["{}", '{"A":1,"BC":2}'], ['{"a":1}', '{"ABC":1}']),
    "minProperties": ({"type": "object", "properties": {"a": {}, "b": {}}, "minProperties": 1}, ['{"a":1}', '{"z":1}', '{"a":1,"z":1}'], ["{}"]),
    "minProperties and maxProperties of declared ones": ({"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "additionalProperties": False, "minProperties": 2, "maxProperties": 2}, ['{"a":1,"b":1}', '{"b":1,"c":1}'], ["{}", '{"a":1}', '{"a":1,"b":1,"c":1}']),
    "maxProperties of a map": ({"type": "object", "maxProperties": 2}, ["{}", '{"x":1,"y":2}'], ['{"x":1,"y":2,"z":3}']),
    "dependentRequired": ({"type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": False, "dependentRequired": {"a": ["b"]}}, ["{}", '{"b":1}', '{"a":1,"b":1}'], ['{"a":1}']),
    "dependentSchemas": ({"type": "object", "properties": {"a": {}, "b": {"type": "integer"}}, "additionalProperties": False, "dependentSchemas": {"a": {"properties": {"b": {"minimum": 5}}}}}, ['{"b":1}', '{"a":1}', '{"a":1,"b":5}'], ['{"a":1,"b":4}']),
    "an impossible property cannot come": ({"type": "object", "properties": {"a": False, "b": {}}}, ["{}", '{"b":1}'], ['{"a":1}']),
    "$ref with recursion": ({"$defs": {"n": {"type": "object", "properties": {"v": {"type": "integer"}, "c": {"type": "array", "items": {"$ref": "#/$defs/n"}}}, "required": ["v"], "additionalProperties": False}}, "$ref": "#/$defs/n"}, ['{"v":1}', '{"v":1,"c":[{"v":2,"c":[{"v":3}]},{"v":4}]}'], ['{"c":[]}', '{"v":1,"c":[{"c":[]}]}', '{"v":1,"c":[}']),
    "$ref with siblings": ({"$defs": {"s": {"type": "string", "minLength": 2}}, "$ref": "#/$defs/s", "maxLength": 3}, ['"ab"', '"abc"'], ['"a"', '"abcd"']),
    "$ref silences its siblings up to draft 7": ({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"s": {"type": "string"}}, "properties": {"p": {"$ref": "#/definitions/s", "maxLength": 1}}, "type": "object", "required": ["p"]}, ['{"p":"abc"}'], ['{"p":1}']),
    "$anchor and escaped pointers": ({"$defs": {"a/b": {"type": "integer"}, "c~d %": {"type": "null"}, "e": {"$anchor": "foo", "type": "boolean"}}, "anyOf": [{"$ref": "#/$defs/a~1b"}, {"$ref": "#/$defs/c~0d%20%25"}, {"$ref": "#foo"}]}, ["1", "null", "true"], ['"x"']),
    "$id of an embedded resource": ({"$id": "http://x.org/root.json", "$defs": {"e": {"$id": "e.json", "$defs": {"k": {"type": "null"}}, "items": {"$ref": "#/$defs/k"}, "type": "array"}}, "$ref": "e.json"}, ["[]", "[null]"], ["[1]", "null"]),
    "annotations do not matter": ({"title": "t", "description": "d", "default": 3, "examples": [1], "$comment": "c", "deprecated": True, "readOnly": True, "x-any": {"minLength": 3}, "type": "null"}, ["null"], ["3"]),
    "unknown formats are annotations": ({"type": "string", "format": "zipcode"}, ['"x"'], ["1"]),
    "a raw control character is refused": ({"type": "string"}, ['"a\\tb"', '"\\u001f"', '"\\/"', '"/"', '"\\ud83d\\ude00"', '"\\u00E9"'], ['"a\tb"', '"a\nb"', '"\u001f"', '"\\ud83d"', '"\\ude00\\ud83d"', '"\\u0041"', '"\\x41"', '"']),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_keyword_accepts_and_refuses_what_it_should(name: str):
    schema, passing, failing = CASES[name]
    ok(schema, passing, failing)


REFUSALS = {
    "$dynamicRef": ({"items": {"$dynamicRef": "#x"}}, "$dynamicRef", "#/items/$dynamicRef"),
    "uniqueItems of anything": ({"type": "array", "uniqueItems": True}, "uniqueItems", "#/uniqueItems"),
    "a misspelt keyword": ({"type": "object", "additonalProperties": False}, "additonalProperties", "#/additonalProperties"),
    "a keyword in the wrong case": ({"type": "string", "minlength": 3}, "minlength", "#/minlength"),
    "a wrong value": ({"properties": {"a": {"minLength": "3"}}}, "minLength", "#/properties/a/minLength"),
    "an unknown type": ({"type": "text"}, "type", "#/type"),
    "a bad pattern": ({"pattern": "[a-z"}, "pattern", "#/pattern"),
    "a bad pattern of keys": ({"patternProperties": {"(": {}}}, "pattern", "#/patternProperties/("),
    "a missing definition": ({"properties": {"s": {"$ref": "#/$defs/Missing"}}}, "$ref", "#/properties/s/$ref"),
    "a remote reference": ({"$ref": "https://x.org/a.json"}, "$ref", "#/$ref"),
    "a reference to itself": ({"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}, "$ref": "#/$defs/A"}, "$ref", ""),
    "a reference to itself below anyOf": ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "$ref", ""),
    "a count beyond the limit": ({"maxLength": 10**9}, "maxLength", "#/maxLength"),
    "a step with too many remainders": ({"properties": {"n": {"type": "integer", "multipleOf": 1009}}}, "multipleOf", "#/properties/n"),
    "too many ways to contain": ({"prefixItems": [{"contains": {"const": 1}, "minContains": 900, "maxItems": 1000}]}, "contains", "#/prefixItems/0"),
    "minProperties by keys that may repeat": ({"type": "object", "minProperties": 2}, "minProperties", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_not_enforced_is_refused_by_name_and_place(name: str):
    schema, keyword, place = REFUSALS[name]
    refused(schema, keyword, place)


UNSATISFIABLE = {
    "false": False,
    "lengths": {"type": "string", "minLength": 3, "maxLength": 2},
    "bounds": {"type": "integer", "minimum": 5, "maximum": 3},
    "no integer between": {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 4},
    "enum against type": {"type": "object", "properties": {"a": {"type": "string", "enum": [1, 2]}}, "required": ["a"]},
    "a required property that is false": {"type": "object", "properties": {"a": False}, "required": ["a"]},
    "a required property without room": {"type": "object", "required": ["a"], "additionalProperties": False},
    "endless recursion": {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
    "types": {"allOf": [{"type": "string"}, {"type": "number"}]},
    "items": {"type": "array", "items": False, "minItems": 1},
    "pattern too long": {"type": "string", "pattern": "^abc$", "maxLength": 2},
    "empty enum": {"enum": []},
}  # fmt: skip


@pytest.mark.parametrize("name", UNSATISFIABLE)
def test_a_schema_without_values_is_an_error(name: str):
    refused(UNSATISFIABLE[name], message="no value satisfies")
