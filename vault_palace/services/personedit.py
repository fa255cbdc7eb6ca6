"""What one edit by a person changed, told from the journals and the kept versions: for taking it back.

The record of an edit holds no versions, only what the note said afterwards. Going back from it, the
operations that found and left the note say which versions the edit lies between; where they do not, nothing
is guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from vault_palace.core import frontmatter
from vault_palace.core import undo as undoing
from vault_palace.services import kept
from vault_palace.services.history import DEEDS
from vault_palace.services.house import House
from vault_palace.storage.records import Entry, NoteFact, Trace


@dataclass(frozen=True, slots=True)
class Side:
    """A note as it was on one side of the edit. `whole`: the properties are known, not the body alone."""

    data: bytes
    whole: bool = True


class Edit(NamedTuple):
    """The texts around an edit, as far as a person's words go; `whole`: with the properties."""

    before: str
    after: str
    whole: bool


def of(house: House, entries: Sequence[Entry], deed: Entry, fact: NoteFact) -> Edit | None:
    """What the edit that *deed* tells made of the note that *fact* is about; None when nobody can say."""
    found = _around(house, entries, deed, fact)
    if found is None:
        return None
    old, new = found
    try:
        before, after = old.data.decode("utf-8"), new.data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if old.whole and new.whole:
        standing = undoing.in_place(before, after, bare_dates=house.bare_dates())
        if standing.text is not None and not standing.newer:
            return Edit(standing.text, after, whole=True)
    was, made = frontmatter.read(before), frontmatter.read(after)
    return Edit(undoing.head(after, made) + was.body, after, whole=False)


def _around(house: House, entries: Sequence[Entry], deed: Entry, fact: NoteFact) -> tuple[Side, Side] | None:
    at = next((number for number, one in enumerate(entries) if one.op == deed.op), 0)
    known, exact = fact, None
    for entry in reversed(entries[:at]):
        theirs = next((one for one in entry.notes if one.id == fact.id), None)
        if theirs is None or entry.state in ("undone", "superseded"):
            continue
        trace = next((step for step in entry.steps if (step.to or step.path) == theirs.path), None)
        left = kept.bytes_of(house, trace.after) if trace is not None and trace.after else None
        if not _alike(known, theirs) or (exact and left and _said(house, fact, exact, left)):
            old = Side(left) if left is not None else _looked_up(house, theirs)
            new = Side(exact) if exact is not None else _looked_up(house, known)
            return (old, new) if old is not None and new is not None else None
        if trace is None:
            if entry.verb in DEEDS:
                return None  # two edits that the record tells nothing apart of
            continue
        # The operation left the note as the edit's record has it, so the edit was before it.
        exact = _found_by(house, trace)
        facts = house.note_facts(theirs.path, exact) if exact is not None else []
        if not facts or facts[0].id != fact.id:
            return None
        known = facts[0]
    return None


def _found_by(house: House, trace: Trace) -> bytes | None:
    return kept.bytes_of(house, trace.before) if trace.before else None


def _alike(one: NoteFact, other: NoteFact) -> bool:
    """Whether two records may be of the same words; what a record does not say is no difference."""
    pairs = ((one.density, other.density), (one.pinned, other.pinned))
    return one.body == other.body and all(a is None or b is None or a == b for a, b in pairs)


def _said(house: House, fact: NoteFact, one: bytes, other: bytes) -> bool:
    """Whether two versions say different things, what the program derives aside."""
    return kept.said(house, fact.path, one) != kept.said(house, fact.path, other)


def _looked_up(house: House, fact: NoteFact) -> Side | None:
    """The kept version that says what *fact* records."""
    found: dict[str | bytes, bytes] = {}
    for one in kept.of_note(house, fact.id):
        facts = house.note_facts(fact.path, one.data)
        if facts and _alike(facts[0], fact):
            found.setdefault(kept.said(house, fact.path, one.data), one.data)
    return Side(next(iter(found.values())), whole=len(found) == 1) if found else None
