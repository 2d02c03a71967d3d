"""Formats beside a `maxLength`: addresses and identifiers whose parts are so short that the whole is no longer than that.

Owns how a length is divided among the parts. An automaton that counted the whole, with all that an address may be, would have hundreds of
thousands of states; here each part counts for itself. So these are some of the texts of a format with at most so many characters, never
others. Knows nothing of schemas.
"""

from __future__ import annotations

from functools import lru_cache, partial

from ...expr import Expr, alt, conj, repeat, seq
from .bounded_lengths import NARROWER, characters
from .code_points import text_language
from .format_patterns import IPV4, IPV6, IRI_CHARS, IRI_PRIVATE, labels
from .pattern_language import search_language

_LEAST = 40  # characters from which on the lengths are divided
_LABEL = 63
_DOMAIN = 253
_LOCAL = 64  # RFC 5321, section 4.5.3.1.1
_ROOMY = 128  # characters from which on there is a place for a user and a port
_MAX_KEPT = 16
_ADDRESS_LITERAL = 54


def register(name: str, language: Expr) -> None:
    """Make `bounded_lengths` know the shorter texts of the format `name`, whose language lives as long as the process."""
    if name == "email":
        NARROWER[id(language)] = _email
    elif name in _URIS:
        NARROWER[id(language)] = partial(_uri, *_URIS[name])


def _matching(pattern: str) -> Expr:
    return search_language(f"^({pattern})$", "format")


def _at_most(pattern: str, most: int) -> Expr:
    """By an automaton that counts: for what has few states."""
    language = _matching(pattern)
    return conj(language, repeat(characters(language), 1, most))


@lru_cache(maxsize=_MAX_KEPT)
def _email(most: int) -> Expr | None:
    """RFC 5321 with an unquoted local part: a quarter, a half or three quarters of the length for that, the rest for the domain."""
    if most < _LEAST:
        return None
    atom = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
    sizes = {min(_LOCAL, most * n // 4) for n in (1, 2, 3)}
    return alt(
        *(
            seq(
                _at_most(rf"{atom}(\.{atom})*", local),
                text_language("@"),
                _domain(min(_DOMAIN, most - 1 - local)),
            )
            for local in sorted(sizes)
        )
    )


@lru_cache(maxsize=3 * _MAX_KEPT)
def _domain(most: int) -> Expr:
    """A host name, or an address in brackets."""
    parts = [_at_most(labels(None, None), min(most, _LABEL))]
    if most > _LABEL:
        for num_labels in (2, 3, 4, 8, 15, 30):
            label = min(_LABEL, (most + 1) // num_labels - 1)
            if label >= 6:
                parts.append(_matching(labels(num_labels, label)))
    if most >= _ADDRESS_LITERAL:
        parts.append(_matching(rf"\[({IPV4}|IPv6:{IPV6})\]"))
    return alt(*parts)


@lru_cache(maxsize=_MAX_KEPT)
def _uri(extra: str, private: str, is_reference: bool, most: int) -> Expr | None:
    """RFC 3986 and 3987: most of the length for the path or for the query, thrice as little of each where they have percent signs."""
    if most < _LEAST:
        return None
    ways = [
        _uri_pattern(extra, private, is_reference, most, path_share, unit)
        for path_share in (0.8, 0.2)
        for unit in (1, 3)
    ]
    return alt(*map(_matching, ways))


def _uri_pattern(
    extra: str, private: str, is_reference: bool, most: int, path_share: float, unit: int
) -> str:
    """A pattern of texts with at most `most` characters; a part of n units has at most n times `unit` of them."""
    scheme = min(24, most // 5)
    is_roomy = most >= _ROOMY
    rest = most - scheme - len("://@:65535/?#" if is_roomy else ":///?#")
    user, host = (rest // 16, min(_DOMAIN, rest // 4)) if is_roomy else (0, rest // 2)
    fragment = rest // 8
    path = int((rest - user - host - fragment) * path_share)
    query = rest - user - host - fragment - path

    def some(chars: str, least: int, num_chars: int) -> str:
        one = f"[{chars}]" if unit == 1 else f"([{chars}]|%[0-9A-Fa-f]{{2}})"
        return f"{one}{{{least},{max(num_chars // unit, least)}}}"

    plain = f"A-Za-z0-9._~!$&'()*+,;={extra}-"
    segment = f":@{plain}"
    name = f"({some(plain, 0, host)}" + (rf"|\[{IPV6}\])" if host >= _ADDRESS_LITERAL else ")")
    authority = rf"({some(':' + plain, 0, user)}@)?{name}(:\d{{0,5}})?" if is_roomy else name
    end = rf"(\?{some('/?' + private + segment, 0, query)})?(#{some('/?' + segment, 0, fragment)})?"
    first = some(segment, 1, unit)
    wide = path + user + host  # without an authority the path has its room
    more = some("/" + segment, 0, wide - unit)
    rooted = rf"//{authority}(/{some('/' + segment, 0, path)})?|/({first}{more})?"
    pattern = rf"[A-Za-z][A-Za-z0-9+.-]{{0,{scheme - 1}}}:({rooted}|({first}{more})?){end}"
    if not is_reference:
        return pattern
    start, tail = some("@" + plain, 1, wide // 2), some("/" + segment, 0, wide // 2)
    return rf"{pattern}|({rooted}|({start}(/{tail})?)?){end}"


_URIS = {
    "uri": ("", "", False),
    "uri-reference": ("", "", True),
    "iri": (IRI_CHARS, IRI_PRIVATE, False),
    "iri-reference": (IRI_CHARS, IRI_PRIVATE, True),
}
