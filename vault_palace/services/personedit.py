"""What one edit by a person changed, told from the journals and the kept versions: for taking it back.

The record of an edit holds no versions, only what the note said afterwards. Going back from it, the
operations that found and left the note say which versions the edit lies between; where they do not, nothing
is guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from vault_palace.core import frontmatter
from vault_palace.core import undo as undoing
from vault_palace.core.errors import VaultError
from vault_palace.services import kept
from vault_palace.services.history import DEEDS
from vault_palace.services.house import House
from vault_palace.storage.records import Entry, NoteFact, Trace

KEEP = "keep"  # the keeper's verb for what follows from an edit


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
    earlier = list(_about(entries[:at], fact.id))[::-1]
    known, exact = fact, None
    if earlier and earlier[0][0].verb != KEEP:  # else the keeper wrote first what follows from the edit
        exact = _next_seen(house, _about(entries[at + 1 :], fact.id), fact)
    for entry, theirs, trace in earlier:
        left = kept.bytes_of(house, trace.after) if trace is not None and trace.after else None
        if not _alike(known, theirs) or (exact and left and _differ(house, fact, exact, left)):
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


def _about(entries: Iterable[Entry], id: str) -> Iterator[tuple[Entry, NoteFact, Trace | None]]:
    """The entries about a note, each with what it says of it and its step, if it had one."""
    for entry in entries:
        theirs = next((one for one in entry.notes if one.id == id), None)
        if theirs is not None and entry.state not in ("undone", "superseded"):
            yield (
                entry,
                theirs,
                next((one for one in entry.steps if (one.to or one.path) == theirs.path), None),
            )


def _next_seen(
    house: House, later: Iterable[tuple[Entry, NoteFact, Trace | None]], fact: NoteFact
) -> bytes | None:
    """The bytes that the next operation after the edit found, or those there are now, if they fit *fact*."""
    first = next(iter(later), None)
    if first is not None:
        trace = first[2]
        found = _found_by(house, trace) if trace is not None else None
    else:
        found = None
        with suppress(VaultError):
            found = house.vault.read(fact.path).data
    facts = house.note_facts(fact.path, found) if found is not None else []
    return found if facts and facts[0].id == fact.id and _alike(facts[0], fact) else None


def _found_by(house: House, trace: Trace) -> bytes | None:
    return kept.bytes_of(house, trace.before) if trace.before else None


def _alike(one: NoteFact, other: NoteFact) -> bool:
    """Whether two records may be of the same words; what a record does not say is no difference."""
    pairs = ((one.density, other.density), (one.pinned, other.pinned))
    return one.body == other.body and all(a is None or b is None or a == b for a, b in pairs)


def _differ(house: House, fact: NoteFact, one: bytes, other: bytes) -> bool:
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
