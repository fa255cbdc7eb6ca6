"""What stands inside one paragraph, heading or table cell: wikilinks, embeds, Markdown links, images, tags.

This is CommonMark's inline structure as markdown-it-py reads it (code spans, escapes, HTML, autolinks,
brackets), with three rules of Obsidian's: `[[wikilinks]]`, `$math$` and `#tags`. It walks a text once and
never back, because pasted logs hold a hundred thousand brackets; a markdown-it-py inline parser with the
same three rules as plugins is the authority that the tests hold it against.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Literal, NamedTuple

from markdown_it.common.html_re import HTML_TAG_RE
from markdown_it.helpers import parseLinkTitle

# A wikilink never runs over a line end and holds no bracket; `[[]]` and `[[ ]]` are text.
WIKILINK = re.compile(r"\[\[(?=[^\[\]\r\n]*[^\[\]\s])[^\[\]\r\n]+\]\]")

# Obsidian's own set of characters that end a tag.
_TAG_END = r"\u2000-\u206F\u2E00-\u2E7F'!\"#$%&()*+,.:;<=>?@^`{|}~\[\]\\\s"
TAG = re.compile(rf"#(?=[^{_TAG_END}]*[^\d{_TAG_END}])[^{_TAG_END}]+")

_SPECIAL = re.compile(r"\\|`+|\$|<|!?\[|\]|#")
_AUTOLINK = re.compile(
    r"<(?:[a-zA-Z][a-zA-Z0-9+.\-]{1,31}:[^<>\x00-\x20]*"
    r"|[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
    r"(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*)>"
)
_BLANKS = re.compile(r"[ \t\n]*")
_RUN = re.compile("`+")
_ANGLED = re.compile(r"<((?:\\[\s\S]|[^\\<>\n])*)>")
_DESTINATION_STEP = re.compile(r"\\[^ ]|[()]|[\x00-\x20\x7f]|\\|\Z")
_DEEPEST = 32  # nested parentheses in a destination: CommonMark wants at least 3, markdown-it stops here

# Failed destinations cost up to 33 steps each; after so many of them a note is not prose.
MOST_MISSES = 20_000


class Found(NamedTuple):
    """One thing found, as offsets into the text that was scanned.

    For a wikilink or embed `left:right` is what stands between the brackets, for a Markdown link or image
    its destination as written (inside `<…>` when `angled`), for a tag its name without `#`.
    """

    kind: Literal["wiki", "markdown", "tag"]
    start: int
    end: int
    left: int
    right: int
    embed: bool = False
    angled: bool = False
    label: tuple[int, int] = (0, 0)


class _Bracket(NamedTuple):
    at: int
    image: bool
    found: int  # how many things had been found before it


class Inline(NamedTuple):
    found: list[Found]
    cut: bool  # the text was too odd to be read to its end
    closed: bool  # nothing that opened was left open, so text behind it would change nothing


def math_end(text: str, at: int) -> int:
    """The offset behind the math that opens with the `$` at *at*, or -1.

    As in Pandoc, which Obsidian follows: no blank inside the dollars, no digit behind the closing one,
    so that prices are not formulas. `$$…$$` may hold blanks.
    """
    if text.startswith("$$", at):
        end = text.find("$$", at + 2)
        while end >= 0 and _escaped(text, end):
            end = text.find("$$", end + 1)
        return end + 2 if end > at + 2 else -1
    if at + 1 >= len(text) or text[at + 1].isspace():
        return -1
    end = text.find("$", at + 1)
    while end >= 0 and _escaped(text, end):
        end = text.find("$", end + 1)
    if end <= at + 1 or text[end - 1].isspace() or text[end + 1 : end + 2].isdigit():
        return -1
    return end + 1


def _escaped(text: str, at: int) -> bool:
    back = at
    while back and text[back - 1] == "\\":
        back -= 1
    return (at - back) % 2 == 1


def destination(text: str, at: int) -> tuple[int, int, bool] | None:
    """Start, end and whether in `<…>` of the link destination at *at*, as CommonMark delimits it."""
    if text.startswith("<", at):
        angled = _ANGLED.match(text, at)
        return (angled.start(1), angled.end(1), True) if angled else None
    depth, pos = 0, at
    while (step := _DESTINATION_STEP.search(text, pos)) is not None:
        pos = step.start()
        char = step.group()
        if char == "(":
            depth += 1
            if depth > _DEEPEST:
                return None
        elif char == ")" and depth:
            depth -= 1
        elif len(char) < 2 and not (char == "\\" and pos + 1 == len(text)):
            break  # a blank, the closing parenthesis, the end, or a backslash before a blank
        pos = step.end()
    return (at, pos, False) if depth == 0 and pos > at else None


class _Scanner:
    """One walk over one text."""

    def __init__(self, text: str, most_misses: int) -> None:
        self.text = text
        self.most_misses = most_misses
        self.found: list[Found] = []
        self.brackets: list[_Bracket] = []
        self.nested: list[int] = []  # where links begin, ascending: a bracket before one is no link itself
        self.misses = 0
        self.open = False
        self._runs: dict[int, list[int]] | None = None
        self._last: dict[str, int] = {}

    def scan(self) -> Inline:
        text, pos = self.text, 0
        while (special := _SPECIAL.search(text, pos)) is not None:
            at, mark = special.start(), special.group()
            if mark == "\\":
                pos = at + 2
            elif mark[0] == "`":
                pos = self._code_end(at, len(mark))
            elif mark == "$":
                end = math_end(text, at)
                self.open = self.open or end < 0
                pos = max(end, at + 1)
            elif mark == "<":
                pos = self._html_end(at)
                self.open = self.open or pos == at + 1
            elif mark == "]":
                pos = self._close(at)
            elif mark == "#":
                pos = self._tag(at)
            else:
                pos = self._open(at, mark == "![")
            if self.misses > self.most_misses:
                return Inline(self.found, cut=True, closed=False)
        return Inline(self.found, cut=False, closed=not (self.open or self.brackets or self.misses))

    def _code_end(self, at: int, length: int) -> int:
        if self._runs is None:
            self._runs = {}
            for run in _RUN.finditer(self.text, at):
                self._runs.setdefault(run.end() - run.start(), []).append(run.start())
        same = self._runs.get(length, [])
        following = bisect_left(same, at + length)
        if following == len(same):
            self.open = True
            return at + length
        return same[following] + length

    def _html_end(self, at: int) -> int:
        text = self.text
        if self._last_of(">") < at:
            return at + 1
        link = _AUTOLINK.match(text, at)
        if link:
            return link.end()
        # Lazy patterns would look to the end of the text for a terminator that never comes, once a `<`.
        for opening, closing in (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")):
            if text.startswith(opening, at) and self._last_of(closing) < at:
                return at + 1
        tag = HTML_TAG_RE.match(text, at)
        return tag.end() if tag else at + 1

    def _last_of(self, mark: str) -> int:
        if mark not in self._last:
            self._last[mark] = self.text.rfind(mark)
        return self._last[mark]

    def _tag(self, at: int) -> int:
        if at and not self.text[at - 1].isspace():
            return at + 1
        tag = TAG.match(self.text, at)
        if tag is None:
            return at + 1
        self.found.append(Found("tag", at, tag.end(), at + 1, tag.end()))
        return tag.end()

    def _open(self, at: int, bang: bool) -> int:
        inner = at + bang
        link = WIKILINK.match(self.text, inner)
        if link is None:
            self.brackets.append(_Bracket(at, bang, len(self.found)))
            return inner + 1
        self.found.append(Found("wiki", at, link.end(), inner + 2, link.end() - 2, embed=bang))
        if not bang:
            self.nested.append(at)
        return link.end()

    def _close(self, at: int) -> int:
        if not self.brackets:
            return at + 1
        bracket = self.brackets.pop()
        if not self.text.startswith("(", at + 1):
            return at + 1
        if not bracket.image and self.nested and self.nested[-1] > bracket.at:
            return at + 1  # links do not nest: the inner one wins
        target = self._target(at + 2)
        if target is None:
            self.misses += 1
            return at + 1
        left, right, angled, end = target
        if bracket.image:
            # Alternative text is plain text, so what was found in it counts neither as link nor as nested.
            del self.found[bracket.found :]
            while self.nested and self.nested[-1] > bracket.at:
                self.nested.pop()
        else:
            self.nested.append(bracket.at)
        label = (bracket.at + 1 + bracket.image, at)
        item = Found("markdown", bracket.at, end, left, right, bracket.image, angled, label)
        self.found.insert(bracket.found, item)
        return end

    def _target(self, at: int) -> tuple[int, int, bool, int] | None:
        """Destination start, end, whether angled, and the offset behind the closing parenthesis."""
        text = self.text
        if self._last_of(")") < at:
            return None
        left = right = pos = _blanks(text, at)
        angled = False
        where = destination(text, pos)
        if where is not None:
            left, right, angled = where
            behind = right + angled
            pos = _blanks(text, behind)
            if pos > behind:
                title = parseLinkTitle(text, pos, len(text))
                if title.ok:
                    pos = _blanks(text, title.pos)
        return (left, right, angled, pos + 1) if text.startswith(")", pos) else None


def _blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return match.end() if match else at


def scan(text: str, most_misses: int = MOST_MISSES) -> Inline:
    """Everything in *text*, in the order in which it begins, up to the destination that is one too many."""
    return _Scanner(text, most_misses).scan()
