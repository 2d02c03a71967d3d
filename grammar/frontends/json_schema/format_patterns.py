"""The formats that are patterns: dates, addresses, identifiers.

Owns the table of patterns and what each is taken from. All are ECMA-262 patterns over decoded characters. Knows nothing of schemas.
"""

from __future__ import annotations

# RFC 3339, section 5.6, with the days of each month and leap years; no year 0000, which many programs cannot hold; a leap second only where
# it can be, at 23:59:60 UTC
_YEAR = r"(\d{3}[1-9]|\d\d[1-9]0|\d[1-9]00|[1-9]000)"
_DATE = (
    rf"({_YEAR}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))"
    r"|(\d\d(0[48]|[2468][048]|[13579][26])|([2468][048]|0[48]|[13579][26])00)-02-29)"
)
_OFFSET = r"([zZ]|[+-]([01]\d|2[0-3]):[0-5]\d)"
_TIME = rf"(([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{{1,9}})?{_OFFSET}|23:59:60(\.\d{{1,9}})?([zZ]|[+-]00:00))"
# RFC 3339, appendix A; so few digits of each unit that the sum fits what programs keep durations in
_HOURS, _MINUTES, _SECONDS = r"\d{1,6}H", r"\d{1,6}M", r"\d{1,6}S"
_YEARS, _MONTHS, _WEEKS, _DAYS = r"\d{1,4}Y", r"\d{1,4}M", r"\d{1,5}W", r"\d{1,6}D"
_DURATION_TIME = rf"T({_HOURS}({_MINUTES}({_SECONDS})?)?|{_MINUTES}({_SECONDS})?|{_SECONDS})"
_DURATION = (
    rf"P({_WEEKS}|{_DAYS}({_DURATION_TIME})?|{_MONTHS}({_DAYS})?({_DURATION_TIME})?"
    rf"|{_YEARS}({_MONTHS}({_DAYS})?)?({_DURATION_TIME})?|{_DURATION_TIME})"
)


# RFC 1123, section 2.1: labels of at most 63 characters. At most 253 in all: the more labels, the shorter each may be here, since an
# automaton that counts both labels and the whole would have tens of thousands of states
def labels(num_labels: int | None, max_label: int | None) -> str:
    """Host names of at most so many labels of at most so many characters (> 5); None: any number."""
    ends, inside = "[A-Za-z0-9]", "[A-Za-z0-9-]"
    # no hyphens at both places 3 and 4: such labels are encoded ones, and which of those mean something only Punycode tells
    middle = f"{inside}*" if max_label is None else rf"{inside}{{0,{max_label - 5}}}"
    fourth = rf"({inside}{ends}|({ends}{inside}|-{ends}){middle}{ends})"
    label = rf"{ends}({inside}?{ends}|{inside}{fourth})?"
    return rf"{label}(\.{label})" + ("*" if num_labels is None else rf"{{0,{num_labels - 1}}}")


_SIZES = ((3, 63), (4, 62), (8, 30), (15, 15), (30, 7))
_HOSTNAME = "(" + "|".join(labels(*sizes) for sizes in _SIZES) + ")"
_BYTE = r"(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
IPV4 = rf"{_BYTE}(\.{_BYTE}){{3}}"
# RFC 4291, section 2.2, as the rule IPv6address of RFC 3986 spells it out
_H16 = r"[0-9A-Fa-f]{1,4}"
_LS32 = rf"({_H16}:{_H16}|{IPV4})"
IPV6 = (
    rf"(({_H16}:){{6}}{_LS32}|::({_H16}:){{5}}{_LS32}|({_H16})?::({_H16}:){{4}}{_LS32}"
    rf"|(({_H16}:){{0,1}}{_H16})?::({_H16}:){{3}}{_LS32}|(({_H16}:){{0,2}}{_H16})?::({_H16}:){{2}}{_LS32}"
    rf"|(({_H16}:){{0,3}}{_H16})?::{_H16}:{_LS32}|(({_H16}:){{0,4}}{_H16})?::{_LS32}"
    rf"|(({_H16}:){{0,5}}{_H16})?::{_H16}|(({_H16}:){{0,6}}{_H16})?::)"
)

# RFC 5891: of the labels beyond ASCII only those of small Latin, Greek and Cyrillic letters, kana, Han and Hangul, which need no rule on
# their neighbours; at most 11 characters of these, which fit the 63 of the encoded label in every case
_LETTERS = r"\u00e0-\u00f6\u00f8-\u00ff\u03ac-\u03ce\u0430-\u045f\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fa5\uac00-\ud7a3"
_WIDE_LABEL = rf"[a-z0-9{_LETTERS}]{{1,11}}"
_IDN_HOSTNAME = rf"({_HOSTNAME}|{_WIDE_LABEL}(\.{_WIDE_LABEL}){{0,3}})"


# Section 4.1.2: dot-string or quoted string, then a domain or an address literal
def _email(extra: str, domain: str) -> str:
    """RFC 5321; with more characters, RFC 6531."""
    atom = rf"[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~{extra}-]+"
    local = rf'({atom}(\.{atom})*|"([ !#-\[\]-~{extra}]|\\[ -~])*")'
    return rf"{local}@({domain}|\[({IPV4}|IPv6:{IPV6})\])"


_BEYOND_ASCII = r"\u0080-\ud7ff\ue000-\u{10ffff}"
_HEX = "[0-9A-Fa-f]"
_JSON_POINTER = r"(/([^~/]|~[01])*)*"


def _uri(extra: str, private: str) -> tuple[str, str]:
    """The patterns of a URI and of a relative reference: RFC 3986; with more characters, some for queries only, RFC 3987."""
    pchar = rf"([A-Za-z0-9._~!$&'()*+,;=:@{extra}-]|%[0-9A-Fa-f]{{2}})"
    no_colon = rf"([A-Za-z0-9._~!$&'()*+,;=@{extra}-]|%[0-9A-Fa-f]{{2}})"
    reg_name = rf"([A-Za-z0-9._~!$&'()*+,;={extra}-]|%[0-9A-Fa-f]{{2}})*"
    user_info = rf"([A-Za-z0-9._~!$&'()*+,;=:{extra}-]|%[0-9A-Fa-f]{{2}})*"
    future = r"[vV][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+"
    authority = rf"({user_info}@)?(\[({IPV6}|{future})\]|{reg_name})(:\d*)?"
    end = rf"(\?({pchar}|[/?{private}])*)?(#({pchar}|[/?])*)?"
    rooted = rf"//{authority}(/{pchar}*)*|/({pchar}+(/{pchar}*)*)?"
    absolute = rf"[A-Za-z][A-Za-z0-9+.-]*:({rooted}|({pchar}+(/{pchar}*)*)?){end}"
    relative = rf"({rooted}|({no_colon}+(/{pchar}*)*)?){end}"
    return absolute, relative


_URI, _RELATIVE = _uri("", "")
IRI_CHARS = r"\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef" + "".join(
    rf"\u{{{plane:x}{0x1000 if plane == 14 else 0:04x}}}-\u{{{plane:x}fffd}}"
    for plane in range(1, 15)
)
IRI_PRIVATE = r"\ue000-\uf8ff\u{f0000}-\u{ffffd}\u{100000}-\u{10fffd}"
_IRI, _IRI_RELATIVE = _uri(IRI_CHARS, IRI_PRIVATE)
# RFC 6570, with erratum 6937
_VARIABLE = r"([A-Za-z0-9_]|%[0-9A-Fa-f]{2})(\.?([A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*(:[1-9]\d{0,3}|\*)?"
_TEMPLATE = (
    rf"([!#$&'(-;=?-\[\]_a-z~{IRI_CHARS}{IRI_PRIVATE}]|%[0-9A-Fa-f]{{2}}"
    rf"|\{{[+#./;?&=,!@|]?{_VARIABLE}(,{_VARIABLE})*\}})*"
)

PATTERNS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": rf"{_DATE}[Tt]{_TIME}",
    "duration": _DURATION,
    "uuid": r"[0-9A-Fa-f]{8}-([0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}",
    **{
        f"uuid{version}": rf"{_HEX}{{8}}-{_HEX}{{4}}-{version}{_HEX}{{3}}-[89ABab]{_HEX}{{3}}-{_HEX}{{12}}"
        for version in range(1, 9)
    },
    "email": _email("", _HOSTNAME),
    "idn-email": _email(_BEYOND_ASCII, _IDN_HOSTNAME),
    "hostname": _HOSTNAME,
    "idn-hostname": _IDN_HOSTNAME,
    "ipv4": IPV4,
    "ip-address": IPV4,
    "ipv6": IPV6,
    "uri": _URI,
    "uri-reference": rf"({_URI}|{_RELATIVE})",
    "iri": _IRI,
    "iri-reference": rf"({_IRI}|{_IRI_RELATIVE})",
    "uri-template": _TEMPLATE,
    "json-pointer": _JSON_POINTER,
    "relative-json-pointer": rf"(0|[1-9]\d*)(#|{_JSON_POINTER})",
    "byte": r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?",
}
"""The pattern of each format, to be met by the whole string."""
