"""What an undo makes of a note: its text without one operation's changes, or why that cannot be had.

Pure decisions by texts. Nothing newer is overwritten: lines that changed since are merged or left, a property
is taken back only where it still has the operation's value, and a note's identity is never taken from it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from vault_palace.core import frontmatter
from vault_palace.core.errors import MalformedNote
from vault_palace.core.frontmatter import DELETE, Change, Header
from vault_palace.core.headerlines import same
from vault_palace.core.merge import merge_bodies, same_lines
from vault_palace.core.model import DERIVED

# What a move changes in the moved note; links are the mover's to keep true.
PLACE = frozenset(
    {
        *("layer", "layer_since", "status", "decay_days", "missed", "streak", "backlinks"),
        *("archived_on", "archived_reason", "archived_from", "decays_on", "rises_on", "rises_to"),
    }
)
# What a note is, whatever it says: an older version of it does not bring this back.
STANDING = frozenset({*DERIVED, "archived_on", "archived_reason", "archived_from"})
_IDENTITY = ("id", "created")  # filled in once, for good
_CONTEXT = 2  # lines shown around each change


@dataclass(frozen=True, slots=True)
class Reverted:
    """The note's text without the operation; None when it is refused, with the reason in words.

    `newer` are the properties that were changed since, and so keep their values.
    """

    text: str | None
    why: str = ""
    newer: tuple[str, ...] = ()


class Changed(NamedTuple):
    """How many lines came and went."""

    added: int
    removed: int

    def __str__(self) -> str:
        return f"lines +{self.added} −{self.removed}"


class Done(Protocol):
    """An operation as the journal has it, as far as is asked for here."""

    @property
    def op(self) -> str: ...
    @property
    def verb(self) -> str: ...
    @property
    def why(self) -> str: ...
    @property
    def state(self) -> str: ...


def because(op: str, why: str) -> str:
    """Why an undo was made, as its own record says it; `target` reads it back."""
    return f"of {op}: {why}"


def target(entry: Done) -> str:
    """The operation that an undo undid; empty for what is no undo."""
    if entry.verb != "undo" or not entry.why.startswith("of "):
        return ""
    return entry.why[len("of ") :].partition(":")[0]


def cancelled(entries: Iterable[Done]) -> set[str]:
    """The operations that are undone now, of *entries* oldest first: an undone undo does not count."""
    found: set[str] = set()
    for entry in reversed(list(entries)):
        if entry.op not in found and entry.state not in ("undone", "superseded") and (op := target(entry)):
            found.add(op)
    return found


def reverted(
    before: str, after: str, now: str, *, only: AbstractSet[str] | None = None, bare_dates: bool = True
) -> Reverted:
    """*now* without what made *after* of *before*.

    With *only* the body stays, and of the properties these alone are taken back.
    """
    was, made, there = frontmatter.read(before), frontmatter.read(after), frontmatter.read(now)
    body = there.body if only is not None else _body(was.body, made.body, there.body)
    if body is None:
        return Reverted(None, "the same lines were changed since")
    top = head(now, there)
    if top == head(after, made) and _is_all(was, made, only):
        return Reverted(head(before, was) + body)
    if head(before, was) == head(after, made):
        return Reverted(top + body)
    for header in (was, made, there):
        if header.problem is not None:
            return Reverted(None, f"a header does not parse (line {header.problem.line})")
    changes, newer = _properties(was, made, there, only)
    try:
        text = frontmatter.patch(top + body, changes, bare_dates=bare_dates)
    except MalformedNote as error:
        return Reverted(None, error.message)
    return Reverted(text, newer=newer)


def in_place(version: str, now: str, *, bare_dates: bool = True) -> Reverted:
    """What *version* says, with the properties that the program derives as they are *now*.

    Its header comes along as it was typed. One that does not parse is left out, and `newer` says so.
    """
    was, there = frontmatter.read(version), frontmatter.read(now)
    if there.problem is not None:
        return Reverted(version)
    if was.problem is not None:
        return Reverted(head(now, there) + was.body, newer=tuple(was.values) or ("all properties",))
    changes = {
        key: _of(there, key)
        for key in (*was.values, *there.values)
        if key in STANDING and not _alike(_of(was, key), _of(there, key))
    }
    try:
        return Reverted(frontmatter.patch(version, changes, bare_dates=bare_dates))
    except MalformedNote as error:
        return Reverted(None, error.message)


def _is_all(was: Header, made: Header, only: AbstractSet[str] | None) -> bool:
    """Whether all that the operation did to the properties may be taken back."""
    changed = {key for key in (*was.values, *made.values) if not _alike(_of(was, key), _of(made, key))}
    fills = any(key in changed and key not in was.values for key in _IDENTITY)
    return not fills and (only is None or changed <= only)


def head(text: str, header: Header) -> str:
    """What of *text* stands above its body."""
    return text[: len(text) - len(header.body)]


def _body(before: str, after: str, now: str) -> str | None:
    """The body without the operation's lines; None when others changed since stand in the way."""
    if same_lines(before, after):
        return now
    if now == after:
        return before
    merged = merge_bodies(after, now, before)
    return merged.text if merged.clean else None


def _properties(
    was: Header, made: Header, there: Header, only: AbstractSet[str] | None
) -> tuple[dict[str, Change], tuple[str, ...]]:
    changes: dict[str, Change] = {}
    newer: list[str] = []
    for key in dict.fromkeys((*was.values, *made.values)):
        old, new, now = (_of(header, key) for header in (was, made, there))
        if _alike(old, new) or _alike(old, now) or (only is not None and key not in only):
            continue
        if key in _IDENTITY and old is DELETE:
            continue
        if _alike(new, now):
            changes[key] = old
        else:
            newer.append(key)
    return changes, tuple(newer)


def _of(header: Header, key: str) -> Change:
    return header.values.get(key, DELETE)


def _alike(one: Change, other: Change) -> bool:
    """Whether two values say the same: Obsidian writes `1.0` as `1`."""
    return same(one, other) or (_is_number(one) and _is_number(other) and one == other)


def _is_number(value: Change) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# -- telling ------------------------------------------------------------------------------------------------


def changed_lines(before: str, after: str) -> Changed:
    """How many lines *after* has that *before* has not, and the other way round."""
    added = removed = 0
    matcher = difflib.SequenceMatcher(None, _lines(before), _lines(after))
    for what, old, old_end, new, new_end in matcher.get_opcodes():
        if what != "equal":
            added += new_end - new
            removed += old_end - old
    return Changed(added, removed)


def difference(before: str, after: str) -> list[str]:
    """The lines that change, as a unified diff without file names; nothing for equal texts."""
    found = difflib.unified_diff(_lines(before), _lines(after), n=_CONTEXT, lineterm="")
    return [line.rstrip("\r") for line in found][2:]


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines
