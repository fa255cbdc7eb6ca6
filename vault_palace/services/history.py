"""What happened to one note, told from the journals: each operation with when, why and whose words are kept.

A note is followed backwards from where it is, or was last, by its id and by the moves. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from vault_palace.core import names
from vault_palace.core import undo as undoing
from vault_palace.core.errors import InvalidArguments, NotFound, PathViolation, VaultError
from vault_palace.services import arguments, finding
from vault_palace.services.answers import HistoryAnswer, OperationAnswer
from vault_palace.services.house import House
from vault_palace.storage.records import Entry, Trace
from vault_palace.storage.vault import Stored

# What the program does for itself: told only when everything is asked for.
SILENT = frozenset({"touch", "settle", "keep", "seen", "map", "index"})
SHOWN = 20  # operations of a history, when no limit is given


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

    What the program wrote for itself (uses, settling, upkeep) is only counted, unless *everything* is asked.
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
    return HistoryAnswer(
        path=it.path,
        id=it.id,
        exists=it.exists,
        operations=[_told(house, one, now, undone) for one in told[:limit]],
        total=len(told),
        silent=len(found) - len(told),
    )


def _told(house: House, one: Happened, now: Stored | None, undone: set[str]) -> OperationAnswer:
    entry, trace = one.entry, one.trace
    before, after = (trace.before, trace.after) if trace is not None else (None, None)
    old, new = (None if mark is None else bytes_of(house, mark, now) for mark in (before, after))
    summary = ""
    if trace is not None and (old is not None or before is None) and (new is not None or after is None):
        changed = undoing.changed_lines(_text(old), _text(new))
        summary = str(changed) if any(changed) else ""
    if trace is not None and trace.kind == "move":
        summary = f"from {trace.path}" + (f", {summary}" if summary else "")
    return OperationAnswer(
        op=entry.op,
        when=house.policy().wall(entry.at).isoformat(sep=" ", timespec="seconds"),
        verb=entry.verb,
        why=entry.why,
        session=entry.session,
        machine=entry.machine,
        path=one.path,
        state="undone later" if entry.op in undone else entry.state,
        before_kept=None if before is None else old is not None,
        after_kept=None if after is None else new is not None,
        summary=summary,
    )


def _text(data: bytes | None) -> str:
    return "" if data is None else data.decode("utf-8", "replace")


def bytes_of(house: House, fingerprint: str, now: Stored | None = None) -> bytes | None:
    """The bytes of that fingerprint: the note's own, or a kept version; None when there are none."""
    if now is not None and now.fingerprint == fingerprint:
        return now.data
    with suppress(VaultError):
        return house.versions.get(fingerprint)
    return None


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
