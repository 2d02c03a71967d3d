"""Unicode general categories as code point ranges, by the names that `\\p{...}` has for them.

Owns the names and the lookup in the running interpreter's tables. Knows nothing of patterns.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from ...expr import MAX_CODE_POINT, normal_ranges

Ranges = tuple[tuple[int, int], ...]

_NAMES = {
    "Letter": "L", "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Titlecase_Letter": "Lt", "Modifier_Letter": "Lm",
    "Other_Letter": "Lo", "Mark": "M", "Nonspacing_Mark": "Mn", "Spacing_Mark": "Mc", "Enclosing_Mark": "Me", "Number": "N",
    "Decimal_Number": "Nd", "Letter_Number": "Nl", "Other_Number": "No", "Punctuation": "P", "Connector_Punctuation": "Pc",
    "Dash_Punctuation": "Pd", "Open_Punctuation": "Ps", "Close_Punctuation": "Pe", "Initial_Punctuation": "Pi",
    "Final_Punctuation": "Pf", "Other_Punctuation": "Po", "Symbol": "S", "Math_Symbol": "Sm", "Currency_Symbol": "Sc",
    "Modifier_Symbol": "Sk", "Other_Symbol": "So", "Separator": "Z", "Space_Separator": "Zs", "Line_Separator": "Zl",
    "Paragraph_Separator": "Zp", "Other": "C", "Control": "Cc", "Format": "Cf", "Private_Use": "Co", "Unassigned": "Cn",
    "ASCII": "ASCII", "Any": "Any", "digit": "Nd", "punct": "P",
}  # fmt: skip


@lru_cache(maxsize=64)
def category_ranges(name: str) -> Ranges:
    """Code points of a Unicode general category ("Lu", or "L" for all of its kinds, or its long name), of "ASCII" or "Any"; () when unknown."""
    name = _NAMES.get(name, name)
    if name in ("ASCII", "Any"):
        return normal_ranges([(0, 0x7F if name == "ASCII" else MAX_CODE_POINT)])
    if not re.fullmatch(r"[LMNPSZC][a-z]?", name):
        return ()
    hits = (c for c in range(MAX_CODE_POINT + 1) if unicodedata.category(chr(c)).startswith(name))
    ranges: list[tuple[int, int]] = []
    for code_point in hits:
        if ranges and ranges[-1][1] == code_point - 1:
            ranges[-1] = (ranges[-1][0], code_point)
        else:
            ranges.append((code_point, code_point))
    return normal_ranges(ranges)
