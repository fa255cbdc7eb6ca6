"""What happened to one note, told from the journals: each operation with when, why and whose words are kept.

A note is followed backwards from where it is, or was last, by its id and by the moves. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from vault_palace.core import names
from vault_palace.core import undo as undoing
from vault_palace.core.errors import InvalidArguments, NotFound, PathViolation, VaultError
from vault_palace.services import arguments, finding, kept
from vault_palace.services.answers import HistoryAnswer, OperationAnswer, VersionAnswer, VersionText
from vault_palace.services.house import House
from vault_palace.services.kept import Kept
from vault_palace.storage.records import Entry, Trace
from vault_palace.storage.vault import Stored

# What the program does for itself: told only when everything is asked for.
SILENT = frozenset({"touch", "settle", "keep", "seen", "map", "index"})
# What people did, as the keeper noticed it: whose session and machine that was says nothing of them.
DEEDS = frozenset({"edited", "created", "renamed", "deleted", "copied"})
PERSON = "a person"
SHOWN = 20  # operations and versions of a history, when no limit is given


@dataclass(frozen=True, slots=True)
class Subject:
    """The note that is meant: its id (may be empty), where it is or was last, and whether it is there."""

    id: str
    path: str
    exists: bool


@dataclass(frozen=True, slots=True)
class Happened:
    """One operation as it concerned the note: where the note was afterwards, and its step, if it had one."""

    entry: Entry
    path: str
    trace: Trace | None

    @property
    def is_its_own(self) -> bool:
        """Whether the operation was about this note, and not about one that it links to or replaces."""
        moves = [step for step in self.entry.steps if step.kind == "move"]
        return self.trace is not None and self.trace == (moves or self.entry.steps)[0]


def history(house: House, note: str, *, limit: int | None = None, everything: bool = False) -> HistoryAnswer:
    """The newest *limit* operations on *note*: a path, an id or a title, also of a note that is gone.

    Its kept versions that none of them names follow, as many again: a person saved them, or they are older.
    What the program wrote for itself (uses, settling, upkeep) is only counted, unless *everything* is asked,
    and so are versions that say nothing else than one shown.
    """
    limit = SHOWN if limit is None else limit
    if isinstance(limit, bool) or limit < 1:
        raise InvalidArguments(f"limit {limit!r} is not a number above 0.", argument="limit")
    entries = house.journal.entries()
    it = subject(house, note, entries)
    found = concerning(entries, it)
    told = [one for one in found if everything or one.entry.verb not in SILENT]
    now = None
    if it.exists:
        with suppress(VaultError):
            now = house.vault.read(it.path)
    undone = undoing.cancelled(entries)
    shown = told[:limit]
    versions, alike = _unnamed(house, it, found, shown, now, everything=everything)
    text = _text(now.data if now is not None else None)
    return HistoryAnswer(
        path=it.path,
        id=it.id,
        exists=it.exists,
        operations=[_told(house, one, now, undone) for one in shown],
        total=len(told),
        silent=len(found) - len(told),
        versions=[_version(house, one, text) for one in versions[:limit]],
        versions_total=len(versions),
        versions_alike=alike,
    )


def version(house: House, note: str, version: str) -> VersionText:
    """The text of one kept version of *note*: to look at before it is put back."""
    arguments.plain(version=version)
    entries = house.journal.entries()
    it = subject(house, note, entries)
    one = kept.chosen(kept_of(house, it, entries), version, it.path)
    return VersionText(
        path=it.path, id=it.id, version=one.name, kept_on=_kept_on(house, one), text=_text(one.data)
    )


def kept_of(house: House, it: Subject, entries: Sequence[Entry]) -> Iterator[Kept]:
    """Every kept version of the note, newest first."""
    return kept.of_note(house, it.id, _marks(concerning(entries, it)))


def _marks(found: Iterable[Happened]) -> set[str]:
    traces = [one.trace for one in found if one.trace is not None]
    return {mark for trace in traces for mark in (trace.before, trace.after) if mark is not None}


def _unnamed(
    house: House,
    it: Subject,
    found: Sequence[Happened],
    shown: Sequence[Happened],
    now: Stored | None,
    *,
    everything: bool,
) -> tuple[list[Kept], int]:
    """The kept versions that *shown* does not name, newest first; how many more say the same as others."""
    named = _marks(shown) | ({now.fingerprint} if now is not None else set())
    versions = list(kept.of_note(house, it.id, _marks(found)))
    unnamed = [one for one in versions if one.fingerprint not in named]
    if everything:
        return unnamed, 0
    said = {kept.said(house, it.path, one.data) for one in versions if one.fingerprint in named}
    if now is not None:
        said.add(kept.said(house, it.path, now.data))
    told: list[Kept] = []
    for one in unnamed:
        words = kept.said(house, it.path, one.data)
        if words not in said:
            said.add(words)
            told.append(one)
    return told, len(unnamed) - len(told)


def _version(house: House, one: Kept, now: str) -> VersionAnswer:
    added, removed = undoing.changed_lines(now, _text(one.data))
    return VersionAnswer(
        version=one.name, kept_on=_kept_on(house, one), lines_added=added, lines_removed=removed
    )


def _kept_on(house: House, one: Kept) -> str:
    wall = house.policy().wall(datetime.fromtimestamp(one.at, UTC))
    return wall.isoformat(sep=" ", timespec="seconds")


def _told(house: House, one: Happened, now: Stored | None, undone: set[str]) -> OperationAnswer:
    entry, trace = one.entry, one.trace
    before, after = (trace.before, trace.after) if trace is not None else (None, None)
    old, new = (None if mark is None else kept.bytes_of(house, mark, now) for mark in (before, after))
    summary = ""
    if trace is not None and (old is not None or before is None) and (new is not None or after is None):
        changed = undoing.changed_lines(_text(old), _text(new))
        summary = str(changed) if any(changed) else ""
    if trace is not None and trace.kind == "move":
        summary = f"from {trace.path}" + (f", {summary}" if summary else "")
    by_a_person = entry.verb in DEEDS
    session, machine = ("", "") if by_a_person else (entry.session, entry.machine)
    return OperationAnswer(
        op=entry.op,
        when=house.policy().wall(entry.at).isoformat(sep=" ", timespec="seconds"),
        verb=entry.verb,
        why=entry.why,
        who=PERSON if by_a_person else " on ".join(filter(None, (session, machine))),
        session=session,
        machine=machine,
        path=one.path,
        state="undone later" if entry.op in undone else entry.state,
        before_version=kept.name(before),
        after_version=kept.name(after),
        before_kept=None if before is None else old is not None,
        after_kept=None if after is None else new is not None,
        summary=summary,
    )


def _text(data: bytes | None) -> str:
    return "" if data is None else data.decode("utf-8", "replace")


# -- which note, and what happened to it --------------------------------------------------------------------


def subject(house: House, note: str, entries: Sequence[Entry]) -> Subject:
    """The note that *note* means: what is in the vault now, else what the journals remember by that name."""
    arguments.plain(note=note)
    if not note.strip():
        raise InvalidArguments("No note is named.", hint="Give a path, an id or a title.", argument="note")
    house.refresh(if_older=0)
    if _there(house, note.strip()):
        found = finding.one(house, id=note)
        return Subject(found.id, found.path, True)
    try:
        found = finding.find(house, note)
    except (NotFound, PathViolation, InvalidArguments) as error:
        gone = _remembered(entries, note.strip())
        if gone is None:
            raise error from None
        if gone.id and len(paths := _there(house, gone.id)) == 1:
            return Subject(gone.id, paths[0], True)
        return gone
    return Subject(found.id, found.path, True)


def _there(house: House, id: str) -> list[str]:
    """The notes with this id; one that the cache does not believe gone yet is asked of the disk."""
    return [path for path in house.shelf.paths_of_id(id) if house.vault.exists(path)]


def _remembered(entries: Sequence[Entry], name: str) -> Subject | None:
    """The note that had this id, path or file name last, as far as the journals go back."""
    wanted = {names.key(name), names.key(f"{name}.md")}
    for entry in reversed(entries):
        for fact in entry.notes:
            if fact.id == name:
                return Subject(fact.id, fact.path, False)
        for path in _paths(entry):
            if {names.key(path), names.key(path.rpartition("/")[2])} & wanted:
                return Subject(id_at(entries, path), path, False)
    return None


def id_at(entries: Iterable[Entry], path: str) -> str:
    """The id of the note that was at *path* last; empty when the journals do not say."""
    known = ""
    for entry in entries:
        known = next((fact.id for fact in entry.notes if fact.path == path), known)
    return known


def _paths(entry: Entry) -> Iterator[str]:
    for fact in entry.notes:
        yield fact.path
    for step in entry.steps:
        yield from filter(None, (step.to, step.path))


def concerning(entries: Sequence[Entry], it: Subject) -> list[Happened]:
    """The operations on the note, newest first, each with where it was afterwards."""
    found: list[Happened] = []
    place = it.path
    for entry in reversed(entries):
        own = [fact for fact in entry.notes if it.id and fact.id == it.id]
        others = {fact.path for fact in entry.notes} - {fact.path for fact in own}
        if own:
            place = next((fact.path for fact in own if fact.path == place), own[0].path) or place
        trace = next((step for step in entry.steps if (step.to or step.path) == place), None)
        if not own and (trace is None or (it.id and place in others)):
            continue
        found.append(Happened(entry, place, trace))
        if trace is None or entry.state in ("undone", "superseded"):
            continue
        if trace.kind == "move":
            place = trace.path
        elif trace.kind == "put" and trace.before is None and not it.id:
            break  # what had this name before was another note
    return found
