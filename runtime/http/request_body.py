"""The body of a request as a struct, and the names of fields nobody knows. Owns the limits and messages of reading.

    body, ignored = await read_body(request, ChatBody)

A body is read up to `max_body_bytes` within `read_timeout_s`, whatever its content type says, decoded as JSON and converted. What is
wrong is named the way OpenAI names it: `param` is the path ("messages[0].role"). A field that no struct knows is ignored and returned,
nested ones with their path; the server reports them in the header x-radixlm-ignored-fields. Knows no endpoint.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request

from .context import BodyBudget, server_of
from .refusals import BodyError, ClientGone, HttpRefusal

Body = TypeVar("Body", bound=msgspec.Struct)

IGNORED_HEADER = "x-radixlm-ignored-fields"
MAX_IGNORED = 32
_PATH = re.compile(r" - at `(?:key in )?\$(.*)`$", re.DOTALL)
_BYTE = re.compile(r"\(byte (\d+)\)$")
_UNPRINTABLE = re.compile(r"[^A-Za-z0-9_.\[\]$-]")


async def read_body(request: Request, kind: type[Body]) -> tuple[Body, tuple[str, ...]]:
    """The body as `kind`, and the paths of the fields that were ignored. Raises BodyError, or HttpRefusal 413 or 408."""
    server = server_of(request)
    settings = server.settings
    try:
        async with asyncio.timeout(settings.read_timeout_s):
            data = await _read(request, settings.max_body_bytes, server.bodies)
    except TimeoutError:
        raise HttpRefusal(
            f"the body did not arrive within {settings.read_timeout_s:g} s",
            status=408,
            headers={"connection": "close"},
        ) from None
    except ClientDisconnect:
        raise ClientGone from None
    return parse_body(data, kind)


async def _read(request: Request, max_bytes: int, budget: BodyBudget) -> bytes:
    announced = request.headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > max_bytes:
        raise _too_large(int(announced), max_bytes)
    data = bytearray()
    try:
        async for piece in request.stream():
            data += piece
            budget.take(len(piece))
            if len(data) > max_bytes:
                raise _too_large(len(data), max_bytes)
        return bytes(data)
    finally:
        budget.give_back(len(data))


def _too_large(num_bytes: int, max_bytes: int) -> HttpRefusal:
    return HttpRefusal(
        f"the body has {num_bytes} bytes or more, the server takes {max_bytes}",
        status=413,
        code="body_too_large",
        headers={"connection": "close"},
    )


def parse_body(data: bytes, kind: type[Body]) -> tuple[Body, tuple[str, ...]]:
    """The same from bytes."""
    try:
        raw: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(data, error) from None
    if not isinstance(raw, dict):
        raise BodyError("the body is not a JSON object", code="invalid_body")
    try:
        body = msgspec.convert(raw, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _mistyped(str(error)) from None
    ignored: list[str] = []
    _collect_unknown(raw, body, "", ignored)
    return body, tuple(ignored)


def ignored_headers(ignored: tuple[str, ...]) -> dict[str, str]:
    """The header that reports ignored fields; none when there are none."""
    if not ignored:
        return {}
    names = [_UNPRINTABLE.sub("?", name)[:80] for name in ignored[:MAX_IGNORED]]
    return {IGNORED_HEADER: ", ".join(names)}


def _malformed(data: bytes, error: Exception) -> BodyError:
    if not data.strip():
        return BodyError("the body is empty, a JSON object is expected", code="invalid_json")
    text = str(error) or type(error).__name__
    found = _BYTE.search(text)
    if found is not None:
        before = data[: int(found[1])]
        line = before.count(b"\n") + 1
        column = len(before) - (before.rfind(b"\n") + 1) + 1
        text = f"{text[: found.start()].rstrip()} at line {line}, column {column}"
    return BodyError(f"the body is no JSON: {text}", code="invalid_json")


def _mistyped(text: str) -> BodyError:
    found = _PATH.search(text)
    path = found[1].lstrip(".") if found else ""
    text = text[: found.start()] if found else text
    missing = re.match(r"Object missing required field `(.+)`$", text)
    if missing is not None:
        path = f"{path}.{missing[1]}" if path else missing[1]
        return BodyError(f"{path}: this field is required", place=path, code="missing_field")
    text = text[:1].lower() + text[1:]
    return BodyError(f"{path}: {text}" if path else text, place=path, code="invalid_type")


def _collect_unknown(raw: Any, value: Any, path: str, found: list[str]) -> None:
    """Paths of keys in `raw` that the struct `value` made of it does not have."""
    if len(found) >= MAX_IGNORED:
        return
    if isinstance(value, msgspec.Struct) and isinstance(raw, dict):
        known = dict(zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True))
        tag = value.__struct_config__.tag_field
        for key, inner in raw.items():  # pyright: ignore[reportUnknownVariableType]
            place = f"{path}.{key}" if path else str(key)  # pyright: ignore[reportUnknownArgumentType]
            if key in known:
                _collect_unknown(inner, getattr(value, known[key]), place, found)
            elif key != tag and len(found) < MAX_IGNORED:
                found.append(place)
    elif isinstance(value, (list, tuple)) and isinstance(raw, list):
        for index, (inner_raw, inner) in enumerate(zip(raw, value, strict=False)):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            if isinstance(inner, (msgspec.Struct, list, tuple)):
                _collect_unknown(inner_raw, inner, f"{path}[{index}]", found)
