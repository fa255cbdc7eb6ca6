"""The header of a note: reads its properties, edits the lines of single ones, never rewrites the rest.

A header exists when the note begins (after a byte order mark) with a line `---` and a later line is
`---` again; blanks behind the dashes are tolerated on both, as anything else would stack a second header
on such a note. A first rule that never closes is body. Line ends are LF and CR LF; NEL, U+2028, a form
feed and the like are ordinary characters, as they are for Obsidian. A header that does not parse is
reported with its line and never altered: `patch` refuses, `append_body` still works.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from vault_palace.core.errors import MalformedNote
from vault_palace.core.headerlines import DELETE, FIRST_LINE, Change, Delete, edit, edit_items, same
from vault_palace.core.model import PROPERTIES, Value
from vault_palace.core.yaml12 import MAX_SAFE, Document, Entry, Unreadable, load
from vault_palace.core.yamltext import as_read, property_lines

__all__ = [
    "DELETE",
    "Change",
    "Delete",
    "Header",
    "HeaderProblem",
    "aliases",
    "append_body",
    "compose",
    "display_title",
    "patch",
    "patch_items",
    "read",
    "replace_body",
    "shown",
    "tags",
]

MAX_HEADER: Final = 1_000_000  # characters; far beyond any person's header, below what stalls a run
BOM: Final = "\ufeff"
_OPEN: Final = re.compile(r"---[ \t]*\r?\n")
_CLOSE: Final = re.compile(r"^---[ \t]*(?:\r?\n|\r?\Z)", re.MULTILINE)
_OLD_MAC: Final = re.compile(r"---[ \t]*\r(?!\n)")
_MARKER: Final = re.compile(r"^(?:(?:<{7}|>{7}|\|{7})(?=[ \t\r\n])|={7}(?=\r?$))", re.MULTILINE)
_CONFLICT: Final = (
    re.compile(r"<{7}[ \t]"),
    re.compile(r"^={7}\r?$", re.MULTILINE),
    re.compile(r"^>{7}[ \t\r\n]", re.MULTILINE),
)
_LIST_LINE: Final = re.compile(r"[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]")
_NUMBERS: Final = frozenset(p.name for p in PROPERTIES if p.type == "number")


@dataclass(frozen=True, slots=True)
class HeaderProblem:
    """Why the properties cannot be used; `line` counts from 1 in the file."""

    line: int
    message: str
    conflict: bool = False  # merge markers: two versions of the note stand in one file


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a note's header says. Without a usable one the mappings are empty.

    `values` are typed by YAML 1.2 core, a date is text. `sources` hold the text of every scalar as it
    was typed (without quotes), `lines` the line of each property in the file, from 1. `body` is all
    that follows the header, without a byte order mark, and begins on `body_line`.
    """

    present: bool
    body: str
    body_line: int
    problem: HeaderProblem | None = None
    values: Mapping[str, Value] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    views: Mapping[str, object] = field(default_factory=dict)  # `values` with odd numbers as text
    items: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)  # the texts of lists

    @property
    def usable(self) -> bool:
        """Whether properties can be read and changed: a sound header, or none."""
        return self.problem is None


class _Note(NamedTuple):
    """A note cut into its parts, which joined give the text again."""

    bom: str
    fence: str  # the opening line; empty without a header
    inner: str
    close: str
    body: str
    document: Document
    problem: HeaderProblem | None


def read(text: str) -> Header:
    """The header of *text*. Never raises: what is wrong is in `problem`."""
    note = _cut(text)
    entries = note.document.entries
    return Header(
        present=bool(note.fence),
        body=note.body,
        body_line=1 + (note.fence + note.inner + note.close).count("\n"),
        problem=note.problem,
        values={entry.name: entry.value for entry in entries},
        sources={entry.name: entry.text for entry in entries if entry.text is not None},
        lines={entry.name: entry.key.line + FIRST_LINE for entry in entries},
        views={entry.name: entry.shown for entry in entries},
        items={entry.name: entry.items for entry in entries if isinstance(entry.value, list)},
    )


def patch(text: str, changes: Mapping[str, Change], *, bare_dates: bool = True) -> str:
    """*text* with the asked properties set, or removed by `DELETE`; all else byte-identical.

    A note without a header gets one. The result is read again and must differ in the asked properties
    only. Raises `MalformedNote`, with the line, when that cannot be had; *text* is then to stay.
    Without *bare_dates* dates are written in quotes, for readers that choke on dates (Sediment Palace).
    """
    note = _cut(text)
    if note.problem is not None:
        raise _unusable(note.problem)
    eol = _end_of(note.fence) if note.fence else _style(text) or "\n"
    inner = edit(note.inner, note.document, changes, eol, bare_dates=bare_dates)
    if inner == note.inner:
        return text
    fence, close = (note.fence, note.close) if note.fence else (f"---{eol}", f"---{eol}")
    patched = note.bom + fence + inner + close + note.body
    _check(note, _cut(patched), changes)
    return patched


def patch_items(text: str, name: str, items: list[Value], *, bare_dates: bool = True) -> str:
    """*text* with exactly *items* in the list *name*; the lines of those that stay are as they were.

    A list that gets empty goes, unless comments stand in it. Raises `MalformedNote` where the property has
    something that is no list with one item a line.
    """
    note = _cut(text)
    entry = next((entry for entry in note.document.entries if entry.name == name), None)
    if note.problem is not None or entry is None or entry.value in (None, []):
        return patch(text, {name: items or DELETE}, bare_dates=bare_dates) if items or entry else text
    inner = edit_items(note.inner, note.document, entry, items)
    patched = _cut(note.bom + note.fence + inner + note.close + note.body)
    empty = None if any(one.name == name for one in patched.document.entries) else DELETE
    _check(note, patched, {name: items or empty})
    return "".join(patched[:5])


def compose(values: Mapping[str, Value], body: str, *, bare_dates: bool = True) -> str:
    """A new note. Its header has the line ends of *body*, which follows as it is given; see `patch`."""
    body = body.removeprefix(BOM)
    eol = _style(body) or "\n"
    if not values:
        return _headless(body, eol)
    lines: list[str] = []
    for name, value in values.items():
        lines += property_lines(name, value, eol=eol, bare_dates=bare_dates)
    text = f"---{eol}{''.join(lines)}---{eol}{body}"
    _check(_Note("", "", "", "", body, Document(), None), _cut(text), values)
    return text


def replace_body(text: str, body: str) -> str:
    """*text* with another body in the note's line ends. Refuses a note whose header is not sound."""
    note = _cut(text)
    if note.problem is not None:
        raise _unusable(note.problem)
    body = _in_style(body.removeprefix(BOM), _style(text))
    if not note.fence:
        return note.bom + _headless(body, _style(text) or "\n")
    close = note.close
    if body and not close.endswith("\n"):
        close += _end_of(note.fence)
    return note.bom + note.fence + note.inner + close + body


def append_body(text: str, addition: str) -> str:
    """*text* with *addition* at its end, as a paragraph of its own, in the note's line ends.

    A blank line comes between, except where a list goes on or the addition begins with its own. Works
    on a header that does not parse as well: nothing that stands in the note is touched.
    """
    note = _cut(text)
    style = _style(text)
    eol = style or "\n"
    addition = _in_style(addition.removeprefix(BOM), style)
    if not addition:
        return text
    lead = "" if not text.removeprefix(BOM) or text.endswith("\n") else eol
    body = note.body + lead
    last = body.removesuffix(eol).rpartition("\n")[2]
    goes_on = _LIST_LINE.match(last) and _LIST_LINE.match(addition)
    if last.strip() and not goes_on and not addition.startswith(("\n", "\r\n")):
        lead += eol
    grown = text + lead + addition
    if not note.fence and note.problem is None and _cut(grown).fence:
        # The addition would close the note's first rule, and make a header of the text between.
        return f"{note.bom}---{eol}---{eol}{grown.removeprefix(BOM)}"
    return grown


def shown(header: Header) -> dict[str, object]:
    """The properties as a tool answers them: JSON values, of which none loses digits on the way.

    A number whose text is not canonical (`01234`, 17 digits) is its text, but for the properties that
    are numbers by definition; titles, ids, tags and aliases are text always.
    """
    answer = dict(header.views)
    for name in _NUMBERS & answer.keys():
        value = header.values[name]
        if isinstance(value, int | float) and abs(value) <= MAX_SAFE:
            answer[name] = value
    for name in ("title", "id"):
        if header.values.get(name) is not None and name in header.sources:
            answer[name] = header.sources[name]
    for name, found in (("tags", tags(header)), ("aliases", aliases(header))):
        if name in answer and (found or not isinstance(answer[name], str)):
            answer[name] = found
    return answer


def tags(header: Header) -> list[str]:
    """The tags as Obsidian takes them: a list, or one string without comma and blank; `#` dropped."""
    name = _spelled(header, "tags")
    found = [tag.strip().lstrip("#") for tag in _texts(header, name)]
    if not isinstance(header.values.get(name), list):
        found = [tag for tag in found if not re.search(r"[\s,]", tag)]
    return list(dict.fromkeys(tag for tag in found if tag))


def aliases(header: Header) -> list[str]:
    """The other names of the note, as text."""
    found = (alias.strip() for alias in _texts(header, _spelled(header, "aliases")))
    return list(dict.fromkeys(alias for alias in found if alias))


def display_title(header: Header, stem: str) -> str:
    """The title as the person typed it; without one, the file's name *stem*."""
    if header.values.get("title") is None:
        return stem
    return " ".join(header.sources.get("title", "").split("\n")).strip() or stem


def _spelled(header: Header, name: str) -> str:
    """The property as the note spells it: Obsidian does not mind the case of `Tags`."""
    if name in header.values:
        return name
    return next((key for key in header.values if key.casefold() == name), name)


def _texts(header: Header, name: str) -> list[str]:
    """The texts of a list, or of a single value; nulls and nested values are no texts."""
    if name in header.items:
        return [text for text in header.items[name] if text is not None]
    if header.values.get(name) is None or name not in header.sources:
        return []
    return [header.sources[name]]


def _cut(text: str) -> _Note:
    bom = BOM if text.startswith(BOM) else ""
    opened = _OPEN.match(text, len(bom))
    closed = _CLOSE.search(text, opened.end()) if opened else None
    if opened is None or closed is None:
        return _Note(bom, "", "", "", text[len(bom) :], Document(), _headless_problem(text, len(bom)))
    inner = text[opened.end() : closed.start()]
    document, problem = Document(), None
    marker = _MARKER.search(inner)
    if marker:
        line = inner.count("\n", 0, marker.start()) + FIRST_LINE
        problem = HeaderProblem(line, "merge markers: two versions of the note stand here", conflict=True)
    elif len(inner) > MAX_HEADER:
        problem = HeaderProblem(1, "the header is too long to be read")
    else:
        try:
            document = load(inner)
        except Unreadable as error:
            problem = HeaderProblem(error.line + FIRST_LINE, error.message)
    return _Note(bom, opened[0], inner, closed[0], text[closed.end() :], document, problem)


def _headless_problem(text: str, start: int) -> HeaderProblem | None:
    """What forbids to put a header in front of a note that has none to our eyes."""
    ours, middle, theirs = _CONFLICT
    if ours.match(text, start) and (met := middle.search(text, start)) and theirs.search(text, met.end()):
        return HeaderProblem(1, "merge markers: two versions of the note stand here", conflict=True)
    if _OLD_MAC.match(text, start):
        return HeaderProblem(1, "its lines end in carriage returns alone")
    return None


def _headless(body: str, eol: str) -> str:
    """*body* as a whole note; with an empty header where its first lines would be taken for one."""
    return f"---{eol}---{eol}{body}" if _cut(body).fence else body


def _check(before: _Note, after: _Note, changes: Mapping[str, Change]) -> None:
    """Refuse an edit that does not read back as asked, or that changed anything else."""
    wanted: dict[str, object] = {entry.name: _essence(entry) for entry in before.document.entries}
    found: dict[str, object] = {entry.name: _essence(entry) for entry in after.document.entries}
    asked: dict[str, object] = {}
    for name, change in changes.items():
        wanted.pop(name, None)
        got = found.pop(name, None)
        if isinstance(change, Delete):
            if got is not None:
                raise _failed(f"the property `{name}` would not go away")
        elif got is None:
            raise _failed(f"the property `{name}` would not be read back")
        else:
            asked[name] = as_read(change)
    values = {entry.name: entry.value for entry in after.document.entries if entry.name in asked}
    for name, value in asked.items():
        if not same(values[name], value) and values[name] != value:
            raise _failed(f"the property `{name}` would not read back as written")
    if after.problem is not None:
        raise _unusable(after.problem)
    # Compared as text: the order of the other properties counts, and so does each one's type.
    if not same(list(wanted.items()), list(found.items())) or before.body != after.body:
        raise _failed("another part of the note would change with it")


def _essence(entry: Entry) -> tuple[object, ...]:
    return entry.value, entry.text, entry.items


def _unusable(problem: HeaderProblem) -> MalformedNote:
    return MalformedNote(
        f"The note's properties cannot be changed, line {problem.line}: {problem.message}.",
        hint="Mend the header in an editor and try again; nothing was written.",
        line=problem.line,
    )


def _failed(why: str) -> MalformedNote:
    return MalformedNote(
        f"The note's properties cannot be changed safely: {why}.",
        hint="Write the header as plain `name: value` lines; nothing was written.",
    )


def _style(text: str) -> str:
    """The line end that most lines of *text* have; empty when it has no line end."""
    crlf = text.count("\r\n")
    lf = text.count("\n") - crlf
    return "" if not crlf and not lf else "\r\n" if crlf > lf else "\n"


def _end_of(line: str) -> str:
    return "\r\n" if line.endswith("\r\n") else "\n"


def _in_style(text: str, eol: str) -> str:
    """*text* with the line ends *eol*; as it is when there are none to keep to."""
    return text.replace("\r\n", "\n").replace("\n", eol) if eol else text
