"""Fits text into a token budget, and takes notes apart by heading so that a part can be asked for.

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
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import ceil
from unicodedata import normalize

from markdown_it import MarkdownIt

from vault_palace.core.errors import InvalidArguments, NotFound

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
    (0x0300, 1.0),  # combining marks
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
    return text[: max(end, 0)].rstrip(), True


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a note: where it starts and ends, and the headings above it."""

    title: str
    level: int
    line: int  # 0-based
    path: tuple[str, ...]  # titles from the outermost heading to this one


# Headings are blocks; what stands inside a paragraph would cost seconds in a note that is all brackets.
_MD = MarkdownIt("commonmark", {"html": True}).disable("inline")


def _headings(text: str) -> list[Heading]:
    """The headings as the parser sees them: none in code, none inside quotes and lists."""
    tokens_ = _MD.parse(text)
    found: list[Heading] = []
    above: list[Heading] = []
    for token, inline in pairwise(tokens_):
        if token.type != "heading_open" or token.level or token.map is None:
            continue
        level, title = int(token.tag[1:]), normalize("NFC", " ".join(inline.content.split()))
        above = [heading for heading in above if heading.level < level]
        path = (*(heading.title for heading in above), title)
        above.append(Heading(title, level, token.map[0], path))
        found.append(above[-1])
    return found


def outline(text: str) -> list[str]:
    """Each heading of *text* as `section` takes it: its title, or its path `A/B` where titles repeat."""
    headings = _headings(text)
    known = Counter(heading.title for heading in headings)
    titles = (heading.title if known[heading.title] == 1 else "/".join(heading.path) for heading in headings)
    names = (_short(title) for title in titles)
    return [name for name in dict.fromkeys(names) if name]


def section(text: str, heading: str) -> str:
    """The part of *text* under *heading*, with the heading, up to the next one that is not below it.

    *heading* is a title, with or without its `#`, or a path `A/B` to tell equal titles apart; the case may
    differ where that is not ambiguous. Several that fit: `InvalidArguments` with all of them. None:
    `NotFound` with the outline.
    """
    headings = _headings(text)
    chosen = _named(headings, heading)
    if not chosen:
        names = outline(text)
        listed = "; ".join(names[:_LISTED]) + ("; …" if len(names) > _LISTED else "")
        raise NotFound(
            f"No section {_short(heading)!r}.",
            hint=f"The headings are: {listed}." if names else "The note has no headings; leave section out.",
            section=heading,
            outline=names[:_LISTED],
        )
    if len(chosen) > 1:
        places = [f"{_short('/'.join(found.path))} (line {found.line + 1})" for found in chosen[:_LISTED]]
        raise InvalidArguments(
            f"Several sections are called {_short(heading)!r}: {'; '.join(places)}.",
            hint="Give the path of one, such as A/B, or leave section out.",
            argument="section",
            candidates=places,
        )
    start = chosen[0]
    # The parser counts these line ends alone, and so must the cut.
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)
    later = (found.line for found in headings if found.line > start.line and found.level <= start.level)
    return "".join(lines[start.line : next(later, len(lines))])


_LISTED = 40
_LONGEST = 120  # characters of a heading in a message


def _short(title: str) -> str:
    return title if len(title) <= _LONGEST else f"{title[: _LONGEST - 1]}…"


def _named(headings: list[Heading], wanted: str) -> list[Heading]:
    """The headings that *wanted* fits best: exactly, else but for case; by title, else by path."""
    marks, title = re.fullmatch(r"\s*(#{0,6})\s*(.*?)\s*", wanted, re.DOTALL).groups()  # type: ignore[union-attr]
    title = normalize("NFC", " ".join(title.split()))
    level = len(marks)
    # A path names the end of the way down, so `B/C` finds `A/B/C`.
    way = tuple(part.strip() for part in title.split("/"))
    tests: tuple[Callable[[Heading], bool], ...] = (
        lambda found: found.title == title,
        lambda found: found.path[-len(way) :] == way,
        lambda found: found.title.casefold() == title.casefold(),
        lambda found: _folded(found.path[-len(way) :]) == _folded(way),
        # As `outline` shows a long one.
        lambda found: _short(found.title) == title or _short("/".join(found.path)) == title,
    )
    for fits in tests:
        chosen = [found for found in headings if fits(found) and level in {0, found.level}]
        if chosen:
            return chosen
    return []


def _folded(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.casefold() for part in path)
