"""The short way to a note's links: line by line, for notes in which blocks and paragraphs cannot matter.

The block parser costs more than all else that is done with a note. It is needed only where a block could
hide or split a link (HTML, math, tables, definitions, indented code, fences in lists) or where something
runs on from one line to the next. Everything else gives the same answer line by line, which the tests prove
on generated notes; in doubt the answer here is None, and the parser decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from vault_palace.core import inline
from vault_palace.core.inline import Found

# Each line is looked at with the line break before it, because a search for that is quick.
_ODD_PLACES = ("\t", "\0", "]:", ">#", "|#")  # definitions and footnotes; tags that begin a quote or cell
_TAG_BEGINS = re.compile(r"<(?![ \n])")  # HTML or an address, perhaps
_LONE_RETURN = re.compile(r"\r(?!\n)")  # a line end that the patterns here do not know
_ODD_LINE = re.compile(
    r"\n[ >*+\-\d.)]* {4}"  # indented code, perhaps
    r"|\n[ >*+\-\d.)]*(?:~~~|```)"  # a fence in a quote or list
    r"|\n[ >]*[-: ]*\|[-:| ]*(?:\r?\n|\Z)"  # a table
    r"|\n(?: *(?:>|[*+\-] |\d{1,9}[.)] )){20}"
)
# Tables of one column, whose head begins or ends with a bar.
_ODD_TABLE = re.compile(r"\|[^\S\n]*\n[ >]*[-:]|\n(?:[>*+\-\d.)]|[^\S\n])*\|.*\n[ >]*[-:]")

# A fence at the very start of a line stands in no list or quote, and ends whatever was open.
_FENCE = re.compile(r"^(?:(`{3,})[^`\n]*|(~{3,}).*)$", re.MULTILINE)
_FENCE_OR_TABLE = re.compile(r"^(?:```|~~~).*\|", re.MULTILINE)  # markdown-it looks for a table's head first

_WANTED = re.compile(rf"{inline.WIKILINK.pattern}|{inline.TAG.pattern}")
_INTRICATE = ("`", "\\", "$", "](")


def simple_links(body: str) -> list[tuple[Found, int]] | None:
    """What a simple body holds, with offsets in it and the line of each, from 0; None for any other body."""
    if ("\r" in body and _LONE_RETURN.search(body)) or ("|" in body and _FENCE_OR_TABLE.search(body)):
        return None
    found: list[tuple[Found, int]] = []
    line = at = 0
    for start, end in _outside_fences(body):
        text = body[start:end]
        if _is_odd("\n" + text):
            return None
        line += body.count("\n", at, start)
        at = start
        here = _read(text, start, line)
        if here is None:
            return None
        found += here
    return found


def _is_odd(text: str) -> bool:
    return (
        any(place in text for place in _ODD_PLACES)
        or ("<" in text and _TAG_BEGINS.search(text) is not None)
        or _ODD_LINE.search(text) is not None
        or ("|" in text and _ODD_TABLE.search(text) is not None)
        or text.count("$") > 1
    )


def _outside_fences(body: str) -> Iterator[tuple[int, int]]:
    start = 0
    while (opening := _FENCE.search(body, start)) is not None:
        yield start, opening.start()
        mark = opening.group(1) or opening.group(2)
        closing = re.compile(rf"^ {{0,3}}{mark[0]}{{{len(mark)},}}[ \t]*\r?$", re.MULTILINE).search(
            body, opening.end()
        )
        if closing is None:
            return
        start = closing.end()
    yield start, len(body)


def _read(text: str, offset: int, line: int) -> list[tuple[Found, int]] | None:
    if not any(mark in text for mark in _INTRICATE):
        return [*_wanted(text, offset, line)]
    # Where there is a Markdown link, a bracket left open on an earlier line may be its beginning.
    marks = (*_INTRICATE, "[") if "](" in text else _INTRICATE
    found: list[tuple[Found, int]] = []
    at = 0
    for row in text.split("\n"):
        if any(mark in row for mark in marks):
            scanned = inline.scan(row.removesuffix("\r"), 0)
            if not scanned.closed:
                return None
            found += ((_moved(item, offset + at), line) for item in scanned.found)
        else:
            found += _wanted(row, offset + at, line)
        at += len(row) + 1
        line += 1
    return found


def _wanted(text: str, offset: int, line: int) -> Iterator[tuple[Found, int]]:
    at = 0
    for match in _WANTED.finditer(text):
        start, end = match.span()
        line += text.count("\n", at, start)
        at = start
        before = text[start - 1] if start else ""
        if text[start] == "[":
            bang = before == "!"
            yield (
                Found(
                    "wiki", offset + start - bang, offset + end, offset + start + 2, offset + end - 2, bang
                ),
                line,
            )
        elif not before.strip():
            yield Found("tag", offset + start, offset + end, offset + start + 1, offset + end), line


def _moved(found: Found, by: int) -> Found:
    label = (found.label[0] + by, found.label[1] + by)
    return found._replace(
        start=found.start + by, end=found.end + by, left=found.left + by, right=found.right + by, label=label
    )
