"""Fits text into a token budget.

`tokens` is an estimate that needs no vocabulary: it walks the pieces into which the o200k tokenizer splits
text before it looks anything up, and gives each what such pieces cost on average. Measured against
o200k_base on 60,000 characters a kind, it counts 6 to 14 % too many for English notes, 14 to 21 % for
Russian, 12 to 25 % for Chinese, 12 to 30 % for code, and right for dates, digits and emoji. It errs the other
way where words look English and are not: Finnish 17 % too few, Polish 9 %, Swedish 7 %, base64 14 %. Random
letters are hopeless.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache
from math import ceil

# The pieces: words by case, numbers by three digits, punctuation with the line ends behind it, white space,
# words of other alphabets, and what is left.
_PIECE = re.compile(
    r"(?P<word>[A-Z]*[a-z]+(?![a-z\u00aa-\u02af\u1e00-\u1eff])"
    r"|[A-Z]+(?![A-Za-z\u00aa-\u02af\u1e00-\u1eff]))"
    r"|(?P<latin>[A-Za-z\u00aa\u00b5\u00ba\u00c0-\u02af\u1e00-\u1eff]+)"
    r"|(?P<digits>[0-9]{1,3})"
    r"|(?P<break>[ \t\r\n]*[\r\n])"
    r"|(?P<blank> (?![ \t0-9]))"
    r"|(?P<space>[ \t]+)"
    r"|(?P<joined>[!-/:-@\[-`{-~](?=[A-Za-z]))"
    r"|(?P<mark>[!-/:-@\[-`{-~]+[\r\n]*)"
    r"|(?P<other>[^\x00-\x7f])"
    r"|(?P<control>.)",
    re.DOTALL,
)
# Tokens of a word by its number of letters; past the end each further letter costs the same.
_WORD = (0.0, 1.0, 1.0, 1.04, 1.06, 1.15, 1.16, 1.22, 1.32, 1.42, 1.55, 1.72, 1.85)
_FURTHER_LETTER = 0.24
# Tokens of one character from the given code point on. Scripts that share long tokens cost little; a
# character that is never part of one costs its bytes.
_BLOCKS = (
    (0x0080, 1.0),  # Latin-1 signs
    (0x0300, 1.7),  # combining marks
    (0x0370, 0.44),  # Greek
    (0x0400, 0.36),  # Cyrillic
    (0x0530, 0.75),  # Armenian
    (0x0590, 0.52),  # Hebrew
    (0x0600, 0.42),  # Arabic
    (0x0700, 1.5),
    (0x0900, 0.46),  # Devanagari
    (0x0980, 0.60),  # Bengali
    (0x0A00, 0.70),  # Gurmukhi, Gujarati, Oriya, Tamil, Telugu, Kannada, Malayalam
    (0x0D80, 0.80),  # Sinhala
    (0x0E00, 0.48),  # Thai
    (0x0E80, 1.2),
    (0x10A0, 0.42),  # Georgian
    (0x1100, 2.0),
    (0x1F00, 1.0),  # Greek with accents
    (0x2000, 1.05),  # punctuation
    (0x2070, 1.6),  # signs, arrows, mathematics
    (0x2600, 2.0),  # pictures
    (0x2800, 2.2),
    (0x3000, 1.05),  # East Asian punctuation
    (0x3040, 0.80),  # kana
    (0x3100, 2.4),
    (0x4E00, 1.65),  # Han, all but the common ones
    (0xA000, 2.4),
    (0xAC00, 0.86),  # Hangul
    (0xD7B0, 2.4),
    (0xFE00, 1.2),  # variation selectors
    (0xFE10, 2.0),
    (0xFF00, 1.1),  # full-width forms
    (0xFFF0, 2.0),
    (0x10000, 3.2),
    (0x1F000, 2.3),  # emoji
    (0x1FB00, 3.5),
)
_STARTS = [start for start, _ in _BLOCKS]
_COMMON_HAN = 0.92
# A single blank belongs to what stands behind it, but not to a number; so does mostly a single mark.
_FIXED = {"digits": 1.0, "blank": 0.0, "joined": 0.62, "control": 1.0}


@cache
def _common_han() -> frozenset[str]:
    """The 3,755 most frequent characters, as GB 2312 lists them on its first level."""
    rows = (bytes((row, cell)) for row in range(0xB0, 0xD8) for cell in range(0xA1, 0xFF))
    return frozenset(pair.decode("gb2312", "ignore") for pair in rows) - {""}


def _weight(piece: re.Match[str]) -> float:
    kind, text = piece.lastgroup or "", piece[0]
    if kind == "word":
        return _word(text)
    if kind == "latin":
        return max(1.15, 0.43 * len(text))
    if kind == "mark":
        if len(text) < 3:
            return 1.0
        # A rule drawn with one sign is a token for every sixteen; a mixture shares few.
        return 1.0 + len(text) / 16 if text == text[0] * len(text) else 0.66 * len(text)
    if kind in {"space", "break"}:
        return 1.0 + len(text) // 64  # longer runs of white space than this are no single token
    if kind == "other":
        return _COMMON_HAN if text in _common_han() else _BLOCKS[bisect_right(_STARTS, ord(text)) - 1][1]
    return _FIXED[kind]


def _word(text: str) -> float:
    count, most = len(text), len(_WORD) - 1
    if count > 1 and text[1].isupper():
        # Capitals in a row are seldom a known word, and with small letters behind them nearly never.
        return max(1.0, (0.36 if text.isupper() else 0.6) * count)
    return _WORD[count] if count <= most else _WORD[most] + _FURTHER_LETTER * (count - most)


# What is longer than any budget is not walked to its end: the rest is taken to cost what the beginning does.
_WALKED = 400_000


def tokens(text: str) -> int:
    """About how many tokens *text* costs a model, rather too many than too few; 0 for an empty text."""
    cost = sum(map(_weight, _PIECE.finditer(text, 0, _WALKED)))
    return ceil(cost * max(1.0, len(text) / _WALKED))


# What changes or joins the character before it; U+200D joins the one behind it as well, and letters that
# stand for a region come in pairs.
_JOINS_BACK = re.compile("[\u0300-\u036f\u200d\u20d0-\u20ff\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]")
_REGION = re.compile("[\U0001f1e6-\U0001f1ff]")


def _joined_to_last(text: str, at: int) -> bool:
    if _REGION.match(text, at):
        first = at
        while first and _REGION.match(text, first - 1):
            first -= 1
        return (at - first) % 2 == 1
    return _JOINS_BACK.match(text, at) is not None or text[max(at - 1, 0)] == "\u200d"


def cut(text: str, max_tokens: int) -> tuple[str, bool]:
    """The longest beginning of *text* that costs at most *max_tokens*, and whether anything was left out.

    It ends with a whole word, with a whole line where that costs little, and never inside a character. One
    word that alone is too long is cut off in its middle.
    """
    spent, words, lines = 0.0, 0, 0
    for piece in _PIECE.finditer(text):
        spent += _weight(piece)
        # Between the pieces here, what is kept costs what it cost as part of the whole.
        if piece.lastgroup in {"break", "blank", "space"}:
            words = piece.start()
            lines = words if piece.lastgroup == "break" else lines
        elif piece.lastgroup == "other" and not _joined_to_last(text, piece.start()):
            words = piece.start()
        if spent > max_tokens:
            break
    else:
        return text, False
    end = lines if lines * 10 > words * 9 else words
    if end == 0:
        end = bisect_right(range(len(text)), max_tokens, key=lambda length: tokens(text[:length])) - 1
    kept = text[: max(end, 0)]
    return kept.rstrip() or kept, True  # blanks alone are kept, so that who reads on comes further
