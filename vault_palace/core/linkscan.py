"""Where a note's links, tags and headings stand, as Obsidian's metadata cache says, with exact offsets.

markdown-it-py decides what is a paragraph, heading, list item or table cell and what is code, math or HTML;
`inline` reads what stands inside; this module maps the findings back to offsets in the note. Notes of simple
lines (most of them) skip the parser: see `linklines`. Nothing here resolves a link or touches a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token
from mdit_py_plugins.dollarmath.index import math_block_dollar
from mdit_py_plugins.footnote.index import footnote_def

from vault_palace.core import inline
from vault_palace.core.linklines import simple_links
from vault_palace.core.linktext import NEWLINE, Link, split_destination, split_wikilink, wikilink
from vault_palace.core.propertylinks import MOST_HEADER, Unquoted, property_links

# Beyond this a file is a pasted log or a converted book: what follows is not read for links, and flagged.
MOST_CHARACTERS = 1_000_000
MOST_LINES = 25_000
DEEPEST = 95  # levels of quotes, lists and their items; at 100 the parser skips the rest of the note
MOST_NESTING = 40_000  # marks of quotes and lists that open lines, summed; long lines count for several


class Tag(NamedTuple):
    """A tag in the body, without its `#`; `start:end` include the `#`."""

    name: str
    start: int
    end: int
    line: int


class Heading(NamedTuple):
    level: int
    text: str
    start: int
    line: int


@dataclass(frozen=True, slots=True)
class Scan:
    """What was found, in the order of the note. `cut` says that the note was too large or odd to finish.

    `unquoted` are properties such as `parent: [[Name]]`, which Obsidian does not take for links.
    """

    links: tuple[Link, ...]
    tags: tuple[Tag, ...]
    cut: bool = False
    unquoted: tuple[Unquoted, ...] = ()


# ── The parts of a note ──────────────────────────────────────────────────────────────────────────────────

_FENCE = re.compile(r"\ufeff?---[ \t]*\r?\n")
_FENCE_END = re.compile(r"^---[ \t]*(?:\r?\n|\r?\Z)", re.MULTILINE)


def header_span(text: str) -> tuple[int, int, int]:
    """Start and end of the header's YAML, and where the body begins; both zero-length without a header."""
    opening = _FENCE.match(text)
    if opening is not None:
        closing = _FENCE_END.search(text, opening.end())
        if closing is not None:
            return opening.end(), closing.start(), closing.end()
    body = 1 if text.startswith("\ufeff") else 0
    return body, body, body


# ── Blocks ───────────────────────────────────────────────────────────────────────────────────────────────


_CLOSED_MATH = math_block_dollar(allow_labels=False, allow_blank_lines=True)


def _math_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A `$$` block; one that found no end is remembered, or each later `$$` would look for one again."""
    at = state.bMarks[start] + state.tShift[start]
    if not state.src.startswith("$$", at):
        return False
    since, until = state.env.get("unclosed_math", (start, -1))
    if since < start and end <= until:
        return False
    found = _CLOSED_MATH(state, start, end, silent)
    if not found and state.src.find("$$", at + 2, state.eMarks[start]) < 0:
        state.env["unclosed_math"] = (start, end)
    return found


def block_parser() -> MarkdownIt:
    """markdown-it-py with tables, math blocks and footnotes, stopping after the blocks."""
    parser = MarkdownIt("commonmark", {"maxNesting": 100, "html": True}).enable("table")
    parser.block.ruler.before("fence", "math_block", _math_block)
    # Without this, `[^1]: [[Note]]` would be a link definition and hide its link.
    parser.block.ruler.before("reference", "footnote_def", footnote_def, {"alt": ["paragraph", "reference"]})
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


_BLOCKS = block_parser()
# What markdown-it takes off both ends of a paragraph: JavaScript's white space.
_TRIM = "\t\n\v\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


class _Source:
    """A body by lines, each with its offset in the note."""

    def __init__(self, body: str, offset: int) -> None:
        self.lines: list[str] = []
        self.starts: list[int] = []
        at = 0
        for newline in NEWLINE.finditer(body):
            self.lines.append(body[at : newline.start()])
            self.starts.append(offset + at)
            at = newline.end()
        self.lines.append(body[at:])
        self.starts.append(offset + at)


@dataclass(frozen=True, slots=True)
class Piece:
    """One run of inline text, and for each of its lines where it stands in the note.

    `rows` holds (offset in the text, offset in the note, line number in the body from 0). `gaps` are the
    offsets in the text before which the note has a backslash that the table took away.
    """

    text: str
    rows: tuple[tuple[int, int, int], ...]
    gaps: tuple[int, ...] = ()

    def place(self, at: int) -> tuple[int, int]:
        """The offset in the note of an offset in the text, and its line in the body."""
        if len(self.rows) == 1 and not self.gaps:
            return self.rows[0][1] + at - self.rows[0][0], self.rows[0][2]
        index = 0
        if len(self.rows) > 1:
            low, high = 0, len(self.rows)
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if self.rows[middle][0] <= at else (low, middle)
            index = low
        first, source, line = self.rows[index]
        return source + at - first + sum(1 for gap in self.gaps if gap < at), line


def pieces(body: str, offset: int, parser: MarkdownIt = _BLOCKS) -> Iterator[tuple[Piece, Token]]:
    """Every run of inline text of a body with the token that opened its block, in order."""
    tokens = parser.parse(body)
    source: _Source | None = None
    cells: dict[int, list[Piece | None]] = {}
    for number, token in enumerate(tokens):
        if token.type != "inline" or not token.content or token.map is None:
            continue
        source = source or _Source(body.replace("\0", "\ufffd"), offset)
        opener = tokens[number - 1]
        first = token.map[0]
        if opener.type in ("td_open", "th_open"):
            if first not in cells:
                cells = {first: _cells(tokens, number, source)}
            piece = cells[first].pop(0)
        elif opener.type == "heading_open" and opener.markup[0] == "#":
            line = source.lines[first]
            at = line.find(token.content, line.index(opener.markup) + len(opener.markup))
            piece = Piece(token.content, ((0, source.starts[first] + at, first),))
        else:
            piece = _paragraph(token.content, source, first, token.map[1])
        if piece is not None:
            yield piece, opener


def _paragraph(content: str, source: _Source, first: int, end: int) -> Piece | None:
    """Each line of the content is the tail of a line of the source: quotes and indents stand before it."""
    lines = content.split("\n")
    last = len(lines) - 1
    for shift in range(end - first - last):
        rows, at = [], 0
        for index, text in enumerate(lines):
            number = first + shift + index
            line = source.lines[number]
            if index == last:
                line = line.rstrip(_TRIM)
            if not line.endswith(text.lstrip(" ")):
                break
            rows.append((at, source.starts[number] + len(line) - len(text), number))
            at += len(text) + 1
        else:
            return Piece(content, tuple(rows))
    return None


def _cells(tokens: list[Token], number: int, source: _Source) -> list[Piece | None]:
    """The non-empty cells of the table row whose first such cell is *number*."""
    while tokens[number].type != "tr_open":
        number -= 1
    contents: list[str] = []
    while tokens[number].type != "tr_close":
        if tokens[number].type == "inline":
            contents.append(tokens[number].content)
        number += 1
    row = tokens[number - 2].map or [0, 0]
    line, start = source.lines[row[0]], source.starts[row[0]]
    parts = _split_row(line)
    # What stands before the first bar is a cell or only quote and list marks: one of the two readings fits.
    for skip in (0, 1):
        found: list[Piece | None] = []
        for index, content in enumerate(contents):
            if not content:
                continue
            if index + skip >= len(parts):
                break
            left, right = parts[index + skip]
            piece = _cell(content, line[left:right], start + left, row[0], first=index + skip == 0)
            if piece is None:
                break
            found.append(piece)
        else:
            return found
    return [None for content in contents if content]


def _split_row(line: str) -> list[tuple[int, int]]:
    parts, left = [], 0
    for bar in re.finditer(r"(?<!\\)\|", line):
        parts.append((left, bar.start()))
        left = bar.end()
    return [*parts, (left, len(line))]


def _cell(content: str, raw: str, at: int, line: int, *, first: bool) -> Piece | None:
    plain = raw.replace("\\|", "|").rstrip(_TRIM)
    if not plain.endswith(content) or (not first and plain.lstrip(_TRIM) != content):
        return None
    gaps = [bar.start() - count for count, bar in enumerate(re.finditer(r"\\\|", raw))]
    begin = len(plain) - len(content)
    lead = sum(1 for gap in gaps if gap < begin)
    inside = tuple(gap - begin for gap in gaps if gap >= begin)
    return Piece(content, ((0, at + begin + lead, line),), inside)


# ── Body ─────────────────────────────────────────────────────────────────────────────────────────────────

_WORTH = re.compile(r"\[\[|\]\(|#")


def _body(text: str, start: int, line: int) -> tuple[list[Link], list[Tag], bool]:
    body = text[start : start + MOST_CHARACTERS]
    cut = len(body) < len(text) - start
    if not _WORTH.search(body):
        return [], [], cut and _WORTH.search(text, start) is not None
    whole = Piece(body, ((0, start, 0),))
    short = simple_links(body)
    if short is not None:
        return *_sorted_out(whole, ((found, line + row) for found, row in short)), cut
    bearable = _bearable(body)
    if bearable < len(body):
        body, cut = body[:bearable], True
    links: list[Link] = []
    tags: list[Tag] = []
    for piece, opener in pieces(body, start):
        cut = cut or opener.level >= DEEPEST
        if not _WORTH.search(piece.text):
            continue
        scanned = inline.scan(piece.text)
        cut = cut or scanned.cut
        rows = ((found, line + piece.place(found.start)[1]) for found in scanned.found)
        more_links, more_tags = _sorted_out(piece, rows)
        links += more_links
        tags += more_tags
    return links, tags, cut


def _sorted_out(piece: Piece, rows: Iterable[tuple[inline.Found, int]]) -> tuple[list[Link], list[Tag]]:
    links: list[Link] = []
    tags: list[Tag] = []
    for found, line in rows:
        begin = piece.place(found.start)[0]
        if found.kind == "tag":
            tags.append(
                Tag(piece.text[found.left : found.right], begin, begin + found.end - found.start, line)
            )
        else:
            link = _link(piece, found, begin, line)
            if link is not None:
                links.append(link)
    return links, tags


# Lines that open many quotes and lists at once: the parser reads such a line once for each of them.
_NESTING = re.compile(r"^((?:[ \t]*(?:>|[*+\-](?=[ \t])|\d{1,9}[.)](?=[ \t]))){3,}).*", re.MULTILINE)


def _bearable(body: str) -> int:
    """How much of a body the block parser can take in about a second: the offset of a line's start."""
    end = len(body)
    if body.count("\n") > MOST_LINES:
        end = -1
        for _ in range(MOST_LINES):
            end = body.index("\n", end + 1)
        end += 1
    work = 0
    for line in _NESTING.finditer(body, 0, end):
        marks = line.group(1)
        depth = marks.count(">") + 2 * sum(map(marks.count, "-*+.)"))
        work += depth // 2 * (1 + len(line.group()) // 500)
        if depth >= DEEPEST or work > MOST_NESTING:
            return line.start()
    return end


def _link(piece: Piece, found: inline.Found, begin: int, line: int) -> Link | None:
    end = piece.place(found.end - 1)[0] + 1
    raw = piece.text[found.left : found.right]
    if found.kind == "wiki":
        target = split_wikilink(raw)
        left = piece.place(found.left + target.left)[0]
        return wikilink("embed" if found.embed else "wikilink", begin, end, target, left - target.left, line)
    where = split_destination(raw)
    if where is None:
        return None
    left = piece.place(found.left)[0]
    return Link(
        kind="embed" if found.embed else "markdown",
        start=begin,
        end=end,
        path=where.path,
        anchor=where.anchor,
        alias=piece.text[slice(*found.label)],
        line=line,
        spot=(left, left + where.right),
        angled=found.angled,
    )


# ── The whole note ───────────────────────────────────────────────────────────────────────────────────────


def scan(text: str) -> Scan:
    """Links and tags of a note as Obsidian counts them: properties first, then the body in order."""
    start, end, body = header_span(text)
    properties, unquoted = property_links(text, start, end)
    links, tags, cut = _body(text, body, 1 + len(NEWLINE.findall(text, 0, body)))
    return Scan((*properties, *links), tuple(tags), cut or end - start > MOST_HEADER, tuple(unquoted))


def find(text: str) -> list[Link]:
    """The links of `scan`."""
    return list(scan(text).links)


def tags(text: str) -> list[Tag]:
    """Tags in the body; those of the properties belong to the header."""
    return list(scan(text).tags)


def unquoted_links(text: str) -> list[Unquoted]:
    """Properties such as `parent: [[Name]]`, which Obsidian does not take for links: to be reported."""
    start, end, _ = header_span(text)
    return property_links(text, start, end)[1]


def headings(text: str) -> list[Heading]:
    """Headings outside quotes and lists, which are the ones a link can name; `start` is the line's start."""
    _, _, body = header_span(text)
    line = 1 + len(NEWLINE.findall(text, 0, body))
    found: list[Heading] = []
    if "#" not in text and "=" not in text and "-" not in text:
        return found
    part = text[body : body + MOST_CHARACTERS]
    for piece, opener in pieces(part[: _bearable(part)], body):
        if opener.type == "heading_open" and opener.level == 0:
            start, row = piece.place(0)
            start = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start), body - 1) + 1
            found.append(Heading(int(opener.tag[1]), piece.text, start, line + row))
    return found
