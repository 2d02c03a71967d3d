"""Texts that tokenizers get wrong, and hypothesis strategies for more of them."""

from __future__ import annotations

from hypothesis import strategies as st

SAMPLES = {
    "prose": "The quick brown fox doesn't jump; it's 3 o'clock, they'll say we've, I'd, you're, I'm.",
    "code": 'def f(x: int) -> str:\n    """Doc."""\n\treturn f"{x!r:>10}"  # ok\n\n\n@dataclass\nclass A(B): pass\n',
    "json": '{"a": [1, 2.5e-3, null], "b\\n": {"ü": "\\u00e9"}}',
    "emoji": "ok 👍🏽 👨‍👩‍👧‍👦🇩🇪 ❤️‍🔥 end",
    "cjk": "日本語のテキスト。中文,测试！한국어 문장입니다",
    "marks": "e\u0301 n\u0303o a\u030a\u0323 Z\u0334a\u0335lgo \u0e01\u0e33 नमस्ते مرحبا שָׁלוֹם",
    "white": " \t\n\r\n  a\u00a0b\u2003c\u3000d \u2028 e\u200bf\ufeffg   ",
    "runs": "a" + " " * 70 + "b" + "\n" * 30 + "\t" * 20 + "c" + " " * 33,
    "digits": "1234567890 12,345.678 ٣٤٥ ½ ² Ⅷ v2.0\n\n1. one\n    2. two",
    "quotes": "''s 'S \"'ll' 've've can''t o'clock’s `x`",
    "controls": "a\x00b\x01c\x7fd\x1be",
    "letters": "ÄÖÜß ﬁ ſ K ŒøΑΩ ЖЯ Ǆ ǅ ª º",
    "empty": "",
}

# Small pieces that meet badly: ends and beginnings of contractions, whitespace of all kinds, halves of combined characters.
_PIECES = [
    *(" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\x0b", "\x1c", "\x85"),
    *("'", "’", "'s", "'S", "'l", "l", "L", "'re", "r", "e", "v", "d", "m", "t", "ſ", "ﬆ"),
    *("a", "word", "Word", "é", "e\u0301", "\u0301", "中", "日本", "한", "ا", "Ǆ", "ª"),
    *("1", "12", "٣", "½", "²", "Ⅷ"),
    *(
        ".",
        ",",
        "!",
        "...",
        "/",
        "//",
        "-",
        "_",
        "(",
        ")",
        '"',
        "<",
        ">",
        "{",
        "}",
        "$",
        "。",
        "「",
    ),
    *("👍", "🏽", "\u200d", "\ufe0f", "👨‍👩‍👧", "\ufeff", "\u200b", "\U0001fae8", "\u1c80"),
    *("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<s>", "</s>", "\x00", "\x04", "\x7f"),
]

odd_texts = st.one_of(
    st.lists(st.sampled_from(_PIECES), max_size=12).map("".join),
    st.text(max_size=20),
    st.text(alphabet=" \n\r\t'sltrevdma1.(", max_size=16),
)
