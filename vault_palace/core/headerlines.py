"""Edits the lines of single properties inside a header, and leaves every other character alone.

What a person wrote around a value stays: the order, the comments, the blank lines, the quotes of the
key, each line's end. A property whose lines cannot be told apart for certain is refused, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from enum import Enum
from typing import Final, NoReturn, TypeAlias, cast

from vault_palace.core.errors import MalformedNote
from vault_palace.core.model import Value
from vault_palace.core.yaml12 import Document, Entry, Form
from vault_palace.core.yamltext import TEXTS, as_read, item_line, property_lines, value_form


class Delete(Enum):
    """The type of `DELETE`, which stands for "remove this property's lines"."""

    DELETE = "delete"


DELETE: Final = Delete.DELETE
Change: TypeAlias = Value | Delete
_Code: TypeAlias = tuple[str, int, int, int, int]  # an opcode of difflib

FIRST_LINE: Final = 2  # of the header's content within the file
_COLON: Final = re.compile(r"[ \t]*:")
_TAIL: Final = re.compile(r"[ \t]*(?:[ \t]#.*)?\Z", re.DOTALL)
_BLOCK_HEAD: Final = re.compile(r"(?:[!&]\S*[ \t]+)*[|>][-+0-9]*")
_ITEM: Final = re.compile(r"[ \t]*-(?:[ \t]|\Z)")
# An item that is nothing or one plain word, up to its comment.
_COMMENTED: Final = re.compile(r"""[ \t]*-(?:[ \t]+["']?[\w-]+["']?)?[ \t]+(?=#)""")


def same(one: object, other: object) -> bool:
    """Equal in type and value at every depth (`True` is not `1`, a `nan` equals itself)."""
    return repr(one) == repr(other)


def edit(
    inner: str, document: Document, changes: Mapping[str, Change], eol: str, *, bare_dates: bool = True
) -> str:
    """The header's text with only the asked properties changed; new ones come last, in the order given.

    A property that holds the value already keeps its lines as they are. *eol* is the line end to use
    where there is no line before. Raises `MalformedNote` for a property that cannot be edited safely.
    """
    lines = [line + "\n" for line in inner.split("\n")[:-1]]
    known = {entry.name: entry for entry in document.entries}
    asked = {
        name: change if isinstance(change, Delete) else as_read(change) for name, change in changes.items()
    }
    edits = [(known[name], change) for name, change in asked.items() if name in known]
    # From the last line to the first, so that the lines of the others keep their numbers.
    for entry, change in sorted(edits, key=lambda pair: pair[0].key.line, reverse=True):
        if isinstance(change, Delete) or not _holds(entry, change):
            _edit_entry(lines, document, entry, change, bare_dates)
    fresh = {n: c for n, c in asked.items() if n not in known and not isinstance(c, Delete)}
    if fresh and document.flow:
        raise _refusal(FIRST_LINE, "the properties are written in braces")
    for name, value in fresh.items():
        end = _line_end(lines[-1]) if lines else eol
        lines += property_lines(name, value, indent=" " * document.indent, eol=end, bare_dates=bare_dates)
    return "".join(lines)


def edit_items(inner: str, document: Document, entry: Entry, items: list[Value]) -> str:
    """The header's text with *items* in the list of *entry*, whose items stand one a line.

    The lines of the others stay, comments too. Without any item the property goes, or is left empty where
    comments stand in it. Raises `MalformedNote` for a list in any other form.
    """
    lines = [line + "\n" for line in inner.split("\n")[:-1]]
    _within_reach(lines, document, entry)
    if not _has_item_lines(lines, entry):
        _refuse(entry, "its items do not stand one a line")
    last = max(entry.key.line, entry.end.line)
    edited = _edit_items(lines, entry, items, _in_order(cast("list[Value]", entry.value), items))
    lines[entry.key.line : last + 1] = edited if items or "#" in "".join(edited) else []
    return "".join(lines)


def _holds(entry: Entry, value: Value) -> bool:
    """Whether the property has *value* already. A number is the same number in either form."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (
            isinstance(entry.value, int | float)
            and not isinstance(entry.value, bool)
            and entry.value == value
        )
    return same(entry.value, value)


def _edit_entry(lines: list[str], document: Document, entry: Entry, change: Change, bare_dates: bool) -> None:
    _within_reach(lines, document, entry)
    first, last = entry.key.line, max(entry.key.line, entry.end.line)
    if isinstance(change, list) and change and _has_item_lines(lines, entry):
        lines[first : last + 1] = _edit_items(lines, entry, change, _nearest(entry, change))
    else:
        lines[first : last + 1] = _replaced(lines, document, entry, change, bare_dates)


def _within_reach(lines: Sequence[str], document: Document, entry: Entry) -> None:
    """Refuse a property whose lines cannot be told apart for certain."""
    if document.flow:
        _refuse(entry, "the properties are written in braces")
    if entry.fixed:
        _refuse(entry, "an anchor or alias is part of it, on which other lines may depend")
    key_line = lines[entry.key.line]
    if (
        entry.key_end.line != entry.key.line
        or key_line[: entry.key.column] != " " * document.indent
        or not _COLON.match(key_line, entry.key_end.column)
    ):
        _refuse(entry, "its name is not written as a plain `name:`")


def _replaced(
    lines: Sequence[str], document: Document, entry: Entry, change: Change, bare_dates: bool
) -> list[str]:
    """The property's lines with the whole value exchanged; none but its comments for a removal."""
    first = entry.key.line
    indent = " " * document.indent
    line, eol = _split(lines[first])
    kept = _inner_comments(lines, entry, indent)
    if isinstance(change, Delete):
        return kept
    colon = cast("re.Match[str]", _COLON.match(line, entry.key_end.column)).end()
    gap, head_comment = " ", ""
    if entry.start.line == first and entry.text != "":
        gap = line[colon : entry.start.column] or " "
    elif entry.start.line != first:
        head_comment = _tail(entry, line[colon:])
    comment = _comment_after(lines, entry)
    if head_comment.strip() and comment.strip():
        kept.append(indent + comment.strip() + eol)
    comment = head_comment if head_comment.strip() else comment
    if isinstance(change, list) and change:
        items = [item_line(item, indent=indent + "  ", eol=eol) for item in change]
        return [line[:colon] + comment + eol, *kept, *items]
    form = value_form(change, dates=bare_dates and entry.name not in TEXTS)
    if not form:
        return [line[:colon] + comment + eol, *kept]
    return [line[:colon] + gap + form + comment + eol, *kept]


def _comment_after(lines: Sequence[str], entry: Entry) -> str:
    """The comment behind the value with the blanks before it; the blanks alone are the value's own."""
    if entry.form is Form.BLOCK:
        head = _split(lines[entry.start.line])[0][entry.start.column :]
        mark = _BLOCK_HEAD.match(head)
        return _tail(entry, head[mark.end() :]) if mark else _refuse(entry, "it is not understood")
    if entry.form in (Form.SEQUENCE, Form.MAPPING):
        return ""
    return _tail(entry, _split(lines[entry.end.line])[0][entry.end.column :])


def _tail(entry: Entry, rest: str) -> str:
    if not _TAIL.match(rest):
        _refuse(entry, "something else follows on its line")
    return rest if rest.strip(" \t") else ""


def _inner_comments(lines: Sequence[str], entry: Entry, indent: str) -> list[str]:
    """Comment lines between the lines of a value, moved to where no block text can swallow them."""
    covered = {number for first, last in entry.leaves for number in range(first, last + 1)}
    inner = range(entry.key.line + 1, entry.end.line + 1)
    free = (lines[number] for number in inner if number not in covered)
    return [indent + line.lstrip(" \t") for line in free if line.lstrip(" \t").startswith("#")]


def _has_item_lines(lines: Sequence[str], entry: Entry) -> bool:
    """Whether each item of a block list has lines of its own that begin with its dash."""
    if entry.form is not Form.SEQUENCE or not entry.parts:
        return False
    before = entry.key.line
    for first, last in entry.parts:
        if first <= before or not _ITEM.match(_split(lines[first])[0]):
            return False
        before = last
    return True


def _nearest(entry: Entry, change: list[Value]) -> Sequence[_Code]:
    """How the list becomes *change*, with much of it kept."""
    old = [repr(item) for item in cast("list[Value]", entry.value)]
    return SequenceMatcher(None, old, [repr(item) for item in change], autojunk=False).get_opcodes()


def _in_order(old: list[Value], new: list[Value]) -> list[_Code]:
    """How *old* becomes *new* where all items of *new* that *old* has stand there in the same order."""
    codes: list[_Code] = []
    texts, at, done = [repr(item) for item in old], 0, 0
    for number, item in enumerate(new):
        try:
            found = texts.index(repr(item), at)
        except ValueError:
            continue
        codes += [("replace", at, found, done, number), ("equal", found, found + 1, number, number + 1)]
        at, done = found + 1, number + 1
    return [*codes, ("replace", at, len(old), done, len(new))]


def _edit_items(lines: Sequence[str], entry: Entry, change: list[Value], codes: Sequence[_Code]) -> list[str]:
    """The lines of a block list with items added and removed; those that stay keep their lines."""
    start = lines[entry.parts[0][0]]
    indent = start[: start.index("-")]
    edited: list[str] = []
    at = entry.key.line
    for what, old_first, old_last, new_first, new_last in codes:
        for number in range(old_first, old_last):
            first, last = entry.parts[number]
            edited += lines[at : first if what != "equal" else last + 1]
            at = last + 1
            # The comment of an item that goes stays, for it is the person's: all of `- # later` is one.
            if what != "equal" and first == last and (comment := _COMMENTED.match(lines[first])):
                edited.append(indent + lines[first][comment.end() :])
        if what in ("insert", "replace") and new_first < new_last:
            if not edited:
                edited, at = [lines[at]], at + 1
            eol = _line_end(edited[-1])
            edited += [item_line(item, indent=indent, eol=eol) for item in change[new_first:new_last]]
    return edited


def _split(line: str) -> tuple[str, str]:
    end = _line_end(line)
    return line[: -len(end)], end


def _line_end(line: str) -> str:
    return "\r\n" if line.endswith("\r\n") else "\n"


def _refuse(entry: Entry, why: str) -> NoReturn:
    raise _refusal(entry.key.line + FIRST_LINE, f"`{entry.name}` is out of reach, {why}")


def _refusal(line: int, why: str) -> MalformedNote:
    return MalformedNote(
        f"The note's properties cannot be changed, line {line}: {why}.",
        hint="Write it as one plain `name: value` line; nothing was changed.",
        line=line,
    )
