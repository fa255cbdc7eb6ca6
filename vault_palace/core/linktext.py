"""What the text of one link says and how it is written: path, anchor, alias, escapes of Markdown.

Offsets are those of the note the link stands in. Nothing here knows where a link leads.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Literal, NamedTuple
from urllib.parse import quote, unquote

Kind = Literal["wikilink", "embed", "markdown", "property"]

NEWLINE = re.compile(r"\r\n?|\n")


class Link(NamedTuple):
    """One link of a note. `start:end` is its text in the note, `spot` the part that names the path.

    `path` is decoded and trimmed, empty for a link into its own note; `anchor` is verbatim with its `#`.
    A Markdown image is an `embed` too; `[` at `start` tells a Markdown link from `[[`. `key` is the property
    as Obsidian names it (`related.0`), empty in the body.
    """

    kind: Kind
    start: int
    end: int
    path: str
    anchor: str
    alias: str | None
    line: int
    spot: tuple[int, int]
    key: str = ""
    angled: bool = False


class Target(NamedTuple):
    """The parts of a link's text; `left:right` is the path's place in it."""

    path: str
    anchor: str
    alias: str | None
    left: int
    right: int


def split_wikilink(inner: str) -> Target:
    """Take the text between `[[` and `]]` apart: path up to the first `#`, alias from the first `|`.

    Obsidian takes a bar with nothing before it for part of the name, and drops the backslash that a table
    asks for before a bar.
    """
    bar = inner.find("|")
    if bar >= 0 and not inner[:bar].strip():
        bar = -1
    alias = inner[bar + 1 :] if bar >= 0 else None
    target = inner if bar < 0 else inner[:bar]
    if bar >= 0 and target.endswith("\\") and target != "\\":
        target = target[:-1]
    mark = target.find("#")
    raw = target if mark < 0 else target[:mark]
    path = raw.strip()
    left = len(raw) - len(raw.lstrip())
    return Target(path, "" if mark < 0 else target[mark:].rstrip(), alias, left, left + len(path))


def wikilink(kind: Kind, start: int, end: int, target: Target, inner: int, line: int, key: str = "") -> Link:
    """A link with brackets, in the body or in a property, whose inner text begins at *inner*."""
    return Link(
        kind=kind,
        start=start,
        end=end,
        path=target.path,
        anchor=target.anchor,
        alias=target.alias,
        line=line,
        key=key,
        spot=(inner + target.left, inner + target.right),
    )


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:|//")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


def decode(destination: str) -> str:
    """A Markdown destination as the name it means; broken percent signs are taken as they stand."""
    plain = (
        unescape(_ESCAPE.sub(r"\1", destination))
        if "\\" in destination or "&" in destination
        else destination
    )
    if "%" not in plain or _BAD_PERCENT.search(plain):
        return plain
    try:
        return unquote(plain, errors="strict")
    except UnicodeDecodeError:
        return plain


def split_destination(raw: str) -> Target | None:
    """Take a Markdown destination apart; None when it leads out of the vault or nowhere."""
    if not raw.strip() or _SCHEME.match(raw):
        return None
    mark = raw.find("#")
    name = raw if mark < 0 else raw[:mark]
    return Target(decode(name).strip(), "" if mark < 0 else raw[mark:], None, 0, len(name))


_ENTITY = re.compile(r"&(?=#?\w+;)")
_UNSAFE = re.compile(
    r"[\x00-\x20\x7f\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000%#?()<>\[\]\\\"`$|]"
)


def encode(path: str, like: str, *, angled: bool) -> str:
    """*path* as a Markdown destination that `decode` reads back, in the manner of *like*, the old one.

    Blanks, brackets and what would begin code or math elsewhere in the paragraph become percent signs; in
    `<…>` blanks and parentheses stay. Letters beyond ASCII stay as well unless the old text encoded its own.
    """
    if angled:
        plain = _ENTITY.sub("%26", re.sub(r"[%#<>\\\n\r`$|]", _percent, path))
    else:
        plain = _ENTITY.sub("%26", _UNSAFE.sub(_percent, path))
    if _SCHEME.match(plain):
        plain = plain.replace(":", "%3A", 1)
    if like.isascii() and re.search(r"%[89A-Fa-f][0-9A-Fa-f]", like):
        return quote(plain, safe="".join(map(chr, range(33, 127))) + " ")
    return plain


def _percent(match: re.Match[str]) -> str:
    return quote(match.group(), safe="")
