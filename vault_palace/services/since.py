"""What changed in a note since a rev: what a caller who comes too late needs to merge without another read.

The version that had the rev is one that this process showed, or one that is kept. Nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from vault_palace.core import budget, frontmatter
from vault_palace.core import undo as undoing
from vault_palace.core.errors import Conflict
from vault_palace.core.frontmatter import Header
from vault_palace.core.model import DERIVED
from vault_palace.services import history, kept, origins
from vault_palace.services.house import House, Note

MOST_TOKENS = 1_500  # of a difference, or of the text in its place; hosts cut long errors
LONGEST_LINE = 1_200  # characters of one line
COMPARED = 2_000  # lines of either text; comparing more takes long
CHARACTERS = 400_000


def conflict(house: House, note: Note, if_rev: str) -> Conflict:
    """The refusal of a change of *note* that was made from *if_rev*: with its rev now and what differs."""
    rev = house.rev(note)
    was = _with_rev(house, note, if_rev)
    facts: dict[str, object] = {"path": note.path, "rev": rev}
    hint = f"Read it again, merge your change, then repeat with if_rev {rev}."
    lines = None if was is None else _difference(was, note.header)
    if lines:
        facts["diff"], cut = _bounded(lines)
        what = "what changed since"
    else:
        said = [f"{key}: {value}" for key, value in _properties(note.header).items()]
        facts["now"], cut = _bounded([*said, "", *_body(note.header).split("\n")])
        what = "the note as it is now, for the version you read is not kept"
    if not cut:
        hint = f"Below is {what}: merge your change into it, then repeat with if_rev {rev}."
    return Conflict(
        f"{note.path} has changed since you read it: its rev is {rev}, not {if_rev}.", hint=hint, **facts
    )


def _with_rev(house: House, note: Note, rev: str) -> Header | None:
    """The header and body of *note* when it had that rev; None when no version of it is to be found."""
    for data in _versions(house, note, rev):
        header = origins.of_bytes(data)
        if header is not None and kept.said(house, note.path, data) == rev:
            return header
    return None


def _versions(house: House, note: Note, rev: str) -> Iterator[bytes]:
    shown = house.shown.get(note, rev)
    if shown is not None:
        yield shown
    subject = history.Subject(note.id, note.path, True)
    seen: set[str] = set()
    for ask in (house.journal.recent, house.journal.entries):
        for one in history.concerning(ask(), subject):
            marks = (one.trace.after, one.trace.before) if one.trace is not None else ()
            for mark in marks:
                if mark is not None and mark not in seen:
                    seen.add(mark)
                    data = kept.bytes_of(house, mark, note.stored)
                    if data is not None:
                        yield data


def _properties(header: Header) -> dict[str, str]:
    """What people and agents say in the header; what the program derives is nobody's to merge."""
    return {key: str(value) for key, value in frontmatter.shown(header).items() if key not in DERIVED}


def _body(header: Header) -> str:
    """The text as a read shows it, so that the line numbers fit."""
    return re.sub(r"\A\r?\n", "", header.body) if header.present else header.body


def _difference(was: Header, now: Header) -> list[str] | None:
    """The properties that differ, then a diff of the bodies; None when that is too much to compare."""
    before, after = _properties(was), _properties(now)
    found: list[str] = []
    for key in {**before, **after}:
        if before.get(key) != after.get(key):
            found += [
                f"{sign}{key}: {said[key]}" for sign, said in (("-", before), ("+", after)) if key in said
            ]
    mine, theirs = _body(was), _body(now)
    if max(len(mine), len(theirs)) > CHARACTERS:
        return None
    old, new = mine.split("\n"), theirs.split("\n")
    first = _alike(old, new)
    last = _alike(old[first:][::-1], new[first:][::-1])
    if max(len(old), len(new)) - first - last > COMPARED:
        return None
    return found + undoing.difference(mine, theirs)


def _alike(one: list[str], other: list[str]) -> int:
    """How many lines both begin with."""
    for at, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return at
    return min(len(one), len(other))


def _bounded(lines: Iterable[str]) -> tuple[str, bool]:
    """As many of *lines* as the budget holds, and whether any or a part of one is left out."""
    shown: list[str] = []
    left, cut = MOST_TOKENS, False
    every = list(lines)
    for at, line in enumerate(every):
        if len(line) > LONGEST_LINE:
            line, cut = f"{line[:LONGEST_LINE]}… ({len(line) - LONGEST_LINE} more characters)", True
        left -= budget.tokens(line) + 1
        if left < 0:
            shown.append(f"… ({len(every) - at} more lines)")
            return "\n".join(shown), True
        shown.append(line)
    return "\n".join(shown), cut
